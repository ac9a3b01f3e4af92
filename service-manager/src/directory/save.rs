//! Core: what a directory with a store never forgets. What is saved comes back as it was said, so that one type serves
//! both ways.

use base::{Epoch, Mono, NodeId, Span};

use super::{Action, Directory, Last};

/// One fact that is on the disk before anybody hears of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Save {
    /// The last epoch of a node id.
    Epoch {
        node: NodeId,
        epoch: u64,
    },
    /// A node id that is gone for so long that its epoch is forgotten.
    ForgetEpoch {
        node: NodeId,
    },
    /// No epoch above this was given or heard of.
    EpochMax {
        epoch: u64,
    },
    /// A claim. Wall clocks decide nothing, so after a restart its whole time begins anew.
    Claim {
        key: String,
        value: Box<[u8]>,
        ttl: Span,
        node: Option<NodeId>,
    },
    Unclaim {
        key: String,
    },
    /// Ids of this name below `next` were given away.
    Ids {
        name: String,
        next: u64,
    },
    /// What a node would leave behind, and has left behind. None: nothing.
    Offline {
        node: NodeId,
        ids: Vec<String>,
    },
}

impl Action {
    pub(super) fn save(save: Save) -> Self {
        Self::Save(save)
    }
}

impl Directory {
    /// Takes back what an earlier life of this directory saved, before the first event.
    pub fn restore(&mut self, now: Mono, saved: impl IntoIterator<Item = Save>) {
        let mut left = Vec::new();
        for save in saved {
            match save {
                Save::Epoch { .. } | Save::EpochMax { .. }
                    if base::planted::is("directory_forgets_its_epochs") => {}
                Save::Ids { .. } if base::planted::is("directory_forgets_its_ids") => {}
                Save::Epoch { node, epoch } => {
                    self.epoch_max = self.epoch_max.max(epoch);
                    // It was given by us, and we remember giving it: nothing about it is doubtful.
                    self.epochs.insert(node, Last { epoch, given_here: false });
                }
                Save::ForgetEpoch { node } => drop(self.epochs.remove(&node)),
                Save::EpochMax { epoch } => self.epoch_max = self.epoch_max.max(epoch),
                Save::Claim { key, value, ttl, node } => self.claims.restore(now, &key, value, ttl, node),
                Save::Unclaim { key } => self.claims.forget(&key),
                Save::Ids { name, next } => self.ids.restore(name, next),
                Save::Offline { node, ids } => left.push((node, ids)),
            }
        }
        // Whoever does not come back is gone since this restart, as far as anybody knows.
        let due = now + self.settings.terms.offline_linger;
        for (node, ids) in left {
            let epoch = Epoch(self.epochs.get(&node).map_or(0, |last| last.epoch));
            self.offline.restore(&node, epoch, ids, due);
        }
    }
}
