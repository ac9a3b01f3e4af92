//! What a table is keyed by.

use std::fmt::Debug;
use std::hash::Hash;

/// The key of a record. Its bytes sort as its values do, and no key's bytes begin another's of the same type.
pub trait Key: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static {
    /// Appends its bytes: 1 to [`KEY_BYTES_MAX`](crate::backend::KEY_BYTES_MAX) for a whole key.
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes one off the front of some bytes; `None`: they are no such key.
    fn decode(bytes: &mut &[u8]) -> Option<Self>;
}

impl Key for u64 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(Self::from_be_bytes(*head))
    }
}
