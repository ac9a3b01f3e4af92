//! The directory and its client over real tonic on loopback: joining, dying, restarting, doubling.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod joining;
mod observing;
mod restart;
mod world;
