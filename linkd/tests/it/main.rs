//! A worker over real sockets: what strangers send, what slow readers get, what a provider sees.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod auth;
mod bad_input;
mod client;
mod entry;
mod flow;
mod secrets;
mod world;
