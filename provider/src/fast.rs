//! A hash map for our own numeric keys: one multiplication instead of a keyed hash. Peers of ours choose the keys, so
//! there is nobody to flood it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Never iterated where order could reach an action.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// Spreads one number. Other input is folded in eight bytes at a time.
#[derive(Debug, Default, Clone, Copy)]
pub struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = base::hash::mix(self.0 ^ base::hash::bytes(bytes));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = base::hash::mix(self.0 ^ n);
    }
}
