//! The storage makes no batch under a fence below the one that it was told of.
//! Holds: I9, Z-52.

use std::collections::BTreeMap;

use base::{Fence, NodeId};

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct Fences {
    below: BTreeMap<Option<NodeId>, Fence>,
}

impl Invariant for Fences {
    fn name(&self) -> &'static str {
        "I9: no write under a raised fence"
    }

    fn see(&mut self, _ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        match seen {
            Seen::Raised { node, below } => {
                let known = self.below.entry(node.cloned()).or_default();
                *known = (*known).max(*below);
                Ok(())
            }
            Seen::Applied { batch, .. } => {
                let own = self.below.get(&Some(batch.node.clone())).copied().unwrap_or_default();
                let all = self.below.get(&None).copied().unwrap_or_default();
                hold(own.max(all).admits(batch.fence), || {
                    format!("{} writes under {}, below {}", batch.node, batch.fence, own.max(all))
                })
            }
            _ => Ok(()),
        }
    }
}
