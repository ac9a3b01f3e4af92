//! Being written.
pub struct Peer;
