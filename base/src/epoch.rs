//! One start of a node. A newer epoch wins, an older one is refused.

use std::fmt;

/// Given by the directory, strictly larger at each start of the same node. 0 means "not given yet" and is
/// never a live epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub u64);

/// How a claimed epoch stands to the one known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The claim is older: refuse it, execute nothing.
    Stale,
    /// The claim is the one known.
    Current,
    /// The claim is newer: we are the stale side and must look again.
    Newer,
}

impl Epoch {
    pub const NONE: Self = Self(0);

    pub const fn is_given(self) -> bool {
        self.0 != 0
    }

    /// Compares in order, never only for difference: the stale side is always known.
    pub fn judge(self, claimed: Epoch) -> Standing {
        match claimed.cmp(&self) {
            std::cmp::Ordering::Less => Standing::Stale,
            std::cmp::Ordering::Equal => Standing::Current,
            std::cmp::Ordering::Greater => Standing::Newer,
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame stamped with 42 after the owner restarted as 43 is stale; one stamped 44 makes us the stale side.
    ///
    /// Holds: H-16.
    #[test]
    fn epochs_are_judged_in_order() {
        assert_eq!(Epoch(43).judge(Epoch(42)), Standing::Stale);
        assert_eq!(Epoch(43).judge(Epoch(43)), Standing::Current);
        assert_eq!(Epoch(43).judge(Epoch(44)), Standing::Newer);
        assert!(!Epoch::NONE.is_given());
    }
}
