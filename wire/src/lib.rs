//! Every message of the house and its bytes. Pure: decoders take a buffer, answer `Incomplete` as a value, never
//! panic and never allocate what was only announced.
//!
//! | who | to whom | what | where |
//! |---|---|---|---|
//! | client | linkd | frames of 12-byte header and payload, handshake, Auth | [`frame`], [`payload`], [`handshake`], [`auth`] |
//! | login service | linkd, through the client | tickets | [`ticket`] |
//! | linkd | client | the same frames, ReportError | [`frame`], [`report`] |
//! | node | node | hello, calls, replies, cancels, pings | [`node`], [`hello`] |
//! | provider | linkd | Announce, Bind, Subscribe, UnBind, Load, Disable, Send, Broadcast, Kick, UserState | [`link`] |
//! | linkd | provider | Opened, Dispatch, UserState, LinkBroken | [`link`] |
//! | provider | arbiter | Login, Renew, Acquire, Reduced, Refused, Reassert, Bye | [`cache`] |
//! | arbiter | provider | Grant, Deny, Reduce, Reasserted | [`cache`] |
//! | node | directory | register, lease, watch | [`directory`] |
//! | operator | node | status, kick, stop | [`admin`] |

pub mod auth;
pub mod cache;
pub mod call;
pub mod code;
pub mod frame;
pub mod handshake;
pub mod level;
pub mod link;
pub mod node;
pub mod payload;
pub mod report;
pub mod skim;
pub mod tagged;
pub mod ticket;
pub mod varint;
#[cfg(test)]
mod vectors;

/// Messages of `proto/hello.proto`.
pub mod hello {
    #![allow(clippy::pedantic, missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/linkstead.hello.rs"));
}

/// Messages of `proto/directory.proto`.
pub mod directory {
    #![allow(clippy::pedantic, missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/linkstead.directory.rs"));
}

/// Messages of `proto/admin.proto`.
pub mod admin {
    #![allow(clippy::pedantic, missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/linkstead.admin.rs"));
}

pub use call::{Notify, Push, Rpc};
pub use code::Code;
pub use frame::{Decoded, Frame};
pub use level::Level;
pub use ticket::Ticket;
