//! The arbiter of records: which provider may hold which record, to read or to change it.
//!
//! [`Arbiter`](arbiter::Arbiter) decides; it is a pure core that knows time, sessions and keys, and no value of any record.

pub mod arbiter;

pub use arbiter::Arbiter;
