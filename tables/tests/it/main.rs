//! Transactions over a memory backend and an arbiter in the process: alone, against each other, and two providers.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod alone;
mod calls;
mod faults;
mod faulty;
mod shared;
mod told;
mod world;
