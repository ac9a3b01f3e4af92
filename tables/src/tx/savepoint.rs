//! Parts of a transaction that are undone alone. Beginning one costs the same whatever was done before it.

use super::Tx;

/// Where a part begins. To be given to [`Tx::rollback`] or [`Tx::keep`], the latest first.
#[derive(Debug)]
#[must_use = "a part that is neither kept nor rolled back goes on"]
pub struct Savepoint {
    mark: (usize, usize),
    calls: (usize, usize),
}

impl Tx {
    /// Begins a part.
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint { mark: self.set.mark(), calls: self.calls.mark() }
    }

    /// What was done since is undone: writes and what was to happen at the commit. What was read stays read, and what was
    /// to happen if this part is not committed happens at the end.
    pub fn rollback(&mut self, to: Savepoint) {
        self.set.back(to.mark);
        self.calls.back(to.calls);
    }

    /// What was done since belongs to the part around it.
    pub fn keep(&mut self, from: Savepoint) {
        self.set.keep(from.mark);
    }

    /// Runs `part`, whose changes are kept if it succeeds and undone if it fails.
    pub fn nested<T, E>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let savepoint = self.savepoint();
        let result = part(self);
        match result {
            Ok(_) => self.keep(savepoint),
            Err(_) => self.rollback(savepoint),
        }
        result
    }
}
