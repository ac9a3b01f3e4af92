//! Providers as processes over one storage and one arbiter, which are killed and frozen while they trade: nothing that was
//! acknowledged is lost, and no coin is made or lost.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod bank;
mod part;
mod storage;
mod trading;
