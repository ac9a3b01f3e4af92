//! What stands around a store that panics on damage instead of saying so, and whose state is unknown after an error of
//! the disk: one failure ends its use.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use base::fault::panic_text;
use parking_lot::RwLock;

use crate::StoreError;
use crate::seal::unseal;

#[derive(Debug)]
pub(crate) struct Guard {
    path: PathBuf,
    failed: RwLock<Option<StoreError>>,
}

/// What went wrong inside.
pub(crate) enum Trouble {
    /// The store itself.
    Store(StoreError),
    /// One record: the others can still be read.
    Record(StoreError),
}

impl Guard {
    pub fn new(path: PathBuf) -> Self {
        Self { path, failed: RwLock::new(None) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` unless the store has failed; a failure or a panic is remembered.
    pub fn run<T>(&self, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, StoreError> {
        if let Some(failed) = &*self.failed.read() {
            return Err(StoreError::Failed(failed.to_string()));
        }
        let error = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(Trouble::Record(error))) => return Err(error),
            Ok(Err(Trouble::Store(error))) => error,
            Err(panic) => StoreError::damaged(&self.path, panic_text(&*panic).unwrap_or("it panicked")),
        };
        tracing::error!(%error, "the store has failed");
        *self.failed.write() = Some(error.clone());
        Err(error)
    }

    /// The value of a stored one.
    pub fn unsealed<'a>(&self, key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8], Trouble> {
        unseal(key, sealed).ok_or_else(|| {
            let what = format!("the checksum of the record {} is wrong", key.escape_ascii());
            Trouble::Record(StoreError::damaged(&self.path, what))
        })
    }
}
