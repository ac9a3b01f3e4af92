//! The arbiter over real sockets on loopback: logging in, handing over, coming back, bad words, what operators ask, stopping.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod asking;
mod handing;
mod refusing;
mod world;
