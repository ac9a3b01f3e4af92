//! The number a storage compares before it writes, so that a paused owner's late write is refused.

use std::fmt;

use crate::Epoch;

/// A provider's session at an arbiter: the arbiter's epoch first, then the session's number in it.
/// Ordered; a storage refuses a smaller one, and the whole batch with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence {
    pub epoch: Epoch,
    pub session: u64,
}

impl Fence {
    pub const fn new(epoch: Epoch, session: u64) -> Self {
        Self { epoch, session }
    }

    /// The smallest fence that refuses this one.
    pub const fn next(self) -> Self {
        Self { epoch: self.epoch, session: self.session.saturating_add(1) }
    }

    /// Whether a storage that has seen `self` lets `writer` write.
    pub fn admits(self, writer: Fence) -> bool {
        writer >= self
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.epoch, self.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_fence_refuses_the_old_writer_and_admits_the_new() {
        let old = Fence::new(Epoch(3), 7);
        assert!(old.admits(old));
        assert!(!old.next().admits(old));
        assert!(old.next().admits(Fence::new(Epoch(4), 1)));
    }
}
