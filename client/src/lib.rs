//! The Rust client of a Linkstead cluster, and the bots that load one.
//!
//! ```no_run
//! use client::{Client, Event, Options};
//! # use wire::Rpc;
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Say { #[prost(string, tag = "1")] room: String, #[prost(string, tag = "2")] text: String }
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct SayReply {}
//! # struct Rooms;
//! # impl Rooms { const SAY: Rpc<Say, SayReply> = Rpc::new(2, 1, "Rooms.say"); }
//! # async fn example() -> Result<(), client::Error> {
//! let client = Client::connect(Options::new("127.0.0.1:7710", "alice")).await?;
//! client.request(Rooms::SAY, Say { room: "attic".into(), text: "hello".into() }).await?;
//! while let Some(event) = client.events().next().await {
//!     match event {
//!         Event::Push(push) => println!("{push:?}"),
//!         Event::Closed(cause) => println!("{cause}"),
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! | module | is |
//! |---|---|
//! | [`options`] | where to connect, as whom, and every bound |
//! | [`token`] | what a login is proven with |
//! | [`client`] | the door: requests, notices, events |
//! | [`event`] | what comes without being asked for |
//! | [`error`] | what went wrong, whose fault, whether to retry |
//! | `calls` | requests in flight on one connection |
//! | `reader` | what arrives, frame by frame |
//! | `link` | one connection from its dial to its end |
//! | `keeper` | keeps a client connected |
//! | [`bots`] | scripted players with assertions and percentiles |

pub mod bots;
mod calls;
pub mod client;
pub mod error;
pub mod event;
mod keeper;
mod link;
pub mod options;
mod reader;
pub mod token;

pub use client::{Client, Stats};
pub use error::{Cause, Error};
pub use event::{Event, Events, Push, Pushes, Report};
pub use options::{Options, Reconnect};
pub use token::Token;
pub use wire::{Notify, Rpc, code};
