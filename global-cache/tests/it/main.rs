//! The arbiter over real sockets on loopback: logging in, handing over, coming back, bad words, stopping.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod handing;
mod refusing;
mod world;
