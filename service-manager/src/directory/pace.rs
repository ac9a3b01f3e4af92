//! Core: how often the followers of one name are told. A change is told at once; when changes of a name come faster than
//! anybody needs to hear of them, they gather until the next tick and are told together, as what then stands.

use std::collections::BTreeSet;

use base::{Mono, NodeId, Span};

/// Service and node.
pub(super) type Key = (String, NodeId);

/// One delta of a name each.
const INTERVAL: Span = Span::millis(100);
/// A cluster that starts says several things at once, and none of them should wait: this many deltas beyond the pace.
const AT_ONCE: u64 = 5;
/// More keys are not kept waiting.
pub(super) const OWED_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When all deltas so far are paid for.
    calm_at: Mono,
    /// What changed and was not told.
    owed: BTreeSet<Key>,
}

impl Pace {
    /// Whether a change can be told now. If not, [`owe`](Self::owe) it.
    pub fn allows(&mut self, now: Mono) -> bool {
        let calm = self.owed.is_empty() && self.calm_at.since(now) <= INTERVAL.times(AT_ONCE - 1);
        if calm || base::planted::is("directory_tells_each_flap") {
            self.told(now);
            return true;
        }
        false
    }

    /// A delta was told. Whoever was told late pays no more than whoever was told at once.
    fn told(&mut self, now: Mono) {
        self.calm_at = (self.calm_at.max(now) + INTERVAL).min(now + INTERVAL.times(AT_ONCE));
    }

    /// Whether there is no more room.
    pub fn owe(&mut self, keys: impl Iterator<Item = Key>) -> bool {
        self.owed.extend(keys);
        self.owed.len() > OWED_MAX
    }

    pub fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// What is told now.
    pub fn settle(&mut self, now: Mono) -> BTreeSet<Key> {
        self.told(now);
        std::mem::take(&mut self.owed)
    }
}
