//! What transactions wait for beside records: a lease, room for their commits, and the storage.

use std::time::Duration;

use super::{Committed, RUN_TIMEOUT};
use crate::cache::Cache;
use crate::error::Error;

impl Cache {
    /// Whether commits may be made.
    pub fn is_leased(&self) -> bool {
        self.lease.term(self.now()).is_some()
    }

    /// Waits until commits may be made.
    pub(super) async fn leased(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_leased() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no transaction is begun any more.
    pub(super) async fn stopped(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_stopping() {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn may_begin_now(&self) -> bool {
        !self.is_stopping() && !self.pipeline.open.is_full()
    }

    /// Waits until there is room for another commit.
    pub(crate) async fn may_begin(&self) -> Result<(), Error> {
        if self.is_stopping() {
            return Err(Error::Stopping);
        }
        while self.pipeline.open.is_full() {
            let changed = self.changed.notified();
            if !self.pipeline.open.is_full() {
                break;
            }
            // Also when the last word of it was missed.
            let _ = tokio::time::timeout(Duration::from_millis(100), changed).await;
        }
        Ok(())
    }

    /// Waits until a commit is as durable as it must be before anybody hears of it.
    pub(crate) async fn durable(&self, committed: Committed) -> Result<(), Error> {
        if !committed.waits {
            return Ok(());
        }
        self.flush(true);
        let waited = self.pipeline.wait(committed.cut, committed.losses);
        // The storage may be away for long: whoever waits is told that nobody knows.
        tokio::time::timeout(RUN_TIMEOUT.into(), waited).await.unwrap_or(Err(Error::Unknown))
    }
}
