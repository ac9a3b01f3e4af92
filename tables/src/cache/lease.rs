//! Until when commits may be made, and in which session: two words that every commit reads.

use std::sync::atomic::{AtomicU64, Ordering};

use base::Mono;

/// One writer, which keeps the session; any number of readers.
#[derive(Debug, Default)]
pub struct LeaseWord {
    until: AtomicU64,
    term: AtomicU64,
}

impl LeaseWord {
    /// The session that is current, if commits may be made at `now`.
    pub fn term(&self, now: Mono) -> Option<u64> {
        // The time first: if it is the next session's, so is the number that is read after it, and whatever was read in an
        // earlier one is refused.
        let until = self.until.load(Ordering::Acquire);
        let term = self.term.load(Ordering::Acquire);
        (now.0 < until || base::planted::is("commit_ignores_the_lease")).then_some(term)
    }

    /// The session that is current, whatever may be done in it.
    pub fn current(&self) -> u64 {
        self.term.load(Ordering::Acquire)
    }

    /// No commits from now on.
    pub fn close(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// The next session begins, in which no commits are made before [`extend`](Self::extend).
    pub fn next(&self) -> u64 {
        self.close();
        self.term.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub fn extend(&self, until: Mono) {
        self.until.store(until.0, Ordering::Release);
    }

    pub fn until(&self) -> Mono {
        Mono(self.until.load(Ordering::Acquire))
    }
}
