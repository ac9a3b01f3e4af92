//! What a node leaves behind is handed over once it is gone for good, to others that name the same until one takes it, and
//! then to nobody any more. A node that is back within the linger has left nothing.

use std::collections::{BTreeMap, BTreeSet};

use base::Mono;

use super::super::cluster::{Cluster, LINGER};
use super::super::network::Place;
use super::{Invariant, Seen, Told, Verdict, hold};

/// A node, and an id that it named.
type Key = (String, String);

#[derive(Debug, Default)]
pub struct LeftBehind {
    /// Under which epoch each node is here.
    here: BTreeMap<String, u64>,
    /// When each start was last here.
    last: BTreeMap<(String, u64), Mono>,
    named: BTreeMap<Key, Named>,
    /// Every question, by the life of the directory that asks.
    asked: BTreeMap<(Place, u64), (Key, u64)>,
    /// What was taken over of which start.
    taken: BTreeSet<(Key, u64)>,
}

#[derive(Debug)]
struct Named {
    epoch: u64,
    /// The life of the directory that heard it.
    directory: Place,
}

impl Invariant for LeftBehind {
    fn name(&self) -> &'static str {
        "left_behind"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        match *seen {
            Seen::Welcome { node, at, epoch, .. } => {
                if let Some(before) = self.here.insert(node.to_owned(), epoch) {
                    self.last.insert((node.to_owned(), before), at);
                }
            }
            Seen::Lost { node, at } => {
                if let Some(epoch) = self.here.remove(node) {
                    self.last.insert((node.to_owned(), epoch), at);
                }
            }
            // The directory is gone, and its next life has let nobody in yet.
            Seen::Restarts { at } => {
                for (node, epoch) in std::mem::take(&mut self.here) {
                    self.last.insert((node, epoch), at);
                }
            }
            Seen::Named { directory, node, ids } => {
                let epoch = self.here.get(node).copied().unwrap_or_default();
                self.named.retain(|(named, _), _| named != node);
                for id in ids {
                    let key = (node.to_owned(), id.clone());
                    self.taken.retain(|(taken, _)| *taken != key);
                    self.named.insert(key, Named { epoch, directory });
                }
            }
            Seen::HandedOver { directory, at, question } => {
                let key = ((question.node.clone(), question.id.clone()), question.epoch);
                self.judge(at, &key)?;
                self.asked.insert((directory, question.seq), key);
            }
            Seen::TakenOver { directory, seq } => {
                let asked = self.asked.get(&(directory, seq));
                hold(asked.is_some(), || format!("{directory} has not asked {seq}"))?;
                self.taken.extend(asked.cloned());
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, cluster: &Cluster) -> Verdict {
        let (alive, directory) = (cluster.members(), cluster.directory().map(|directory| directory.me));
        for (key, named) in self.named.iter().filter(|((node, _), _)| !alive.contains(node)) {
            // Without a store it is known to the life that heard it, and that may be over.
            let known = cluster.plan.store || Some(named.directory) == directory;
            // After a restart it counts as what its last start left.
            let taken = self.taken.range((key.clone(), named.epoch)..).any(|(taken, _)| taken == key);
            hold(!known || taken, || format!("{key:?} was left behind and nobody has taken it over"))?;
        }
        Ok(())
    }
}

impl LeftBehind {
    fn judge(&self, at: Mono, start: &(Key, u64)) -> Verdict {
        let ((node, id), epoch) = start;
        let here = self.here.get(node);
        let named = self.named.get(&start.0).filter(|named| here == Some(&named.epoch));
        hold(named.is_none(), || format!("{id} of {node} is handed over and the node has it"))?;
        let gone = at.since(self.last.get(&(node.clone(), *epoch)).copied().unwrap_or_default());
        hold(here != Some(epoch) && gone >= LINGER, || {
            format!("{id} of {node} is handed over after the node was gone for {gone}")
        })?;
        hold(!self.taken.contains(start), || {
            format!("{id} of {node} is handed over and was taken over before")
        })
    }
}
