//! The client against a scripted server, without sockets and on a paused clock.
#![allow(
    clippy::unwrap_used,
    reason = "all of this is test code; the lint exempts only the test functions themselves"
)]

mod bots;
mod connect;
mod double;
mod events;
mod reconnect;
mod requests;
