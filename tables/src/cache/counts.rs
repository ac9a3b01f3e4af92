//! What the cache has done, for `status` and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// See each.
#[derive(Debug, Default)]
pub struct Counts {
    /// Questions to the arbiter.
    pub asked: Count,
    /// What was given up or lowered for others, or since it was not used.
    pub reduced: Count,
    /// Reads of the storage.
    pub loads: Count,
    /// Of these, that failed.
    pub load_errors: Count,
    /// Of these, that gave an older version than it must have been.
    pub stale: Count,
    /// Batches that the storage refused for ever.
    pub refused: Count,
    /// Sessions that ended with everything dropped.
    pub losses: Count,
    /// Records that left memory since they were used least.
    pub evicted: Count,
}
