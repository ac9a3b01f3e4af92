//! The pure bottom of the house: identities, the five primitives, stable hashing and error kinds.
//!
//! Nothing here does I/O, reads a clock or draws a random number; every other crate may use it.
//!
//! | primitive | module | fault it answers |
//! |---|---|---|
//! | request id and dedup window | [`request`] | a lost reply makes work happen twice |
//! | generation | [`generation`] | a late close removes the new one |
//! | epoch | [`epoch`] | a restarted node is taken for the old one |
//! | lease | [`lease`] | clocks |
//! | fence | [`fence`] | a paused owner writes late |

pub mod epoch;
pub mod fault;
pub mod fence;
pub mod generation;
pub mod hash;
pub mod id;
pub mod lease;
pub mod mono;
pub mod planted;
pub mod request;
pub mod ring;
pub mod secret;
pub mod version;

pub use epoch::Epoch;
pub use fault::{Blame, Retry};
pub use fence::Fence;
pub use generation::{Generation, Generations};
pub use id::{Account, LinkSid, ModuleId, NodeId, ProtocolId, Role, ServerId, TypeId, is_unclean};
pub use lease::Lease;
pub use mono::{Mono, Span};
pub use request::RequestId;
pub use ring::Ring;
pub use secret::Secret;
pub use version::AppVersion;
