//! Being written.
pub struct Outbox;
