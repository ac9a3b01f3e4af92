//! Whoever waits for records: for all of them, or for the first that can't be had.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::Error;

/// Counts down as records come.
#[derive(Debug, Default)]
pub struct Waiter {
    missing: AtomicUsize,
    failed: Mutex<Option<Error>>,
    notify: Notify,
}

impl Waiter {
    /// Waits for so many.
    pub fn new(count: usize) -> Self {
        Self { missing: AtomicUsize::new(count), ..Self::default() }
    }

    /// One of them is to be looked at again.
    pub fn came(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.notify.notify_one();
        }
    }

    /// One of them can't be had.
    pub fn fail(&self, error: Error) {
        self.failed.lock().get_or_insert(error);
        self.notify.notify_one();
    }

    /// What became of it, as far as it is known.
    pub fn outcome(&self) -> Option<Result<(), Error>> {
        if let Some(error) = &*self.failed.lock() {
            return Some(Err(error.clone()));
        }
        (self.missing.load(Ordering::Acquire) == 0).then_some(Ok(()))
    }

    /// Waits for the outcome. Cancel-safe.
    pub async fn wait(&self) -> Result<(), Error> {
        loop {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            self.notify.notified().await;
        }
    }
}
