//! The binary as people use it, and the pages that are written from the code.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod bazaar;
mod cert;
mod clock;
mod cluster;
mod data;
mod doors;
mod holder;
mod identity;
mod javascript;
mod process;
mod processes;
mod reference;
mod remember;
mod roles;
mod run;
mod tickets;
mod up;
