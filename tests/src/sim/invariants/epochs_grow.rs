//! Each start of a node has a larger epoch than every earlier start, and a start that comes back keeps its own or gets
//! a larger one: no two starts are ever told apart wrongly. A directory that forgot and whose clock was set back may give
//! less while it is warming; it takes that back when it hears of more, and in the end nobody lives under it. Only what
//! nobody who runs has ever seen can't be known by it, and is told apart from nothing.
//!
//! Holds: H-09, H-16.

use std::collections::BTreeMap;

use super::super::cluster::Cluster;
use super::super::network::Place;
use super::{Invariant, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct EpochsGrow {
    /// The largest epoch given to each node id.
    largest: BTreeMap<String, u64>,
    starts: BTreeMap<(String, u64), Place>,
    /// Who was given less than an earlier start had.
    doubtful: BTreeMap<String, (Place, u64)>,
    /// The largest epoch that each process that runs has seen, of whoever.
    seen: BTreeMap<Place, u64>,
    /// The directory has a store.
    remembers: bool,
}

impl Invariant for EpochsGrow {
    fn name(&self) -> &'static str {
        "epochs_grow"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        let (node, start, claimed, epoch, warming) = match *seen {
            // One with a store has forgotten nothing, and may never give less.
            Seen::Welcome { node, start, claimed, epoch, warming, remembers, .. } => {
                self.remembers = remembers;
                (node.to_owned(), start, claimed, epoch, warming && !remembers)
            }
            Seen::Met { at, epoch } => {
                let most = self.seen.entry(at).or_default();
                *most = epoch.max(*most);
                return Ok(());
            }
            Seen::Ended { place } => {
                self.seen.remove(&place);
                self.doubtful.retain(|_, (start, _)| *start != place);
                return Ok(());
            }
            _ => return Ok(()),
        };
        hold(epoch > 0, || format!("{node} gets no epoch"))?;
        if !warming && self.is_forgotten(&node) {
            self.largest.remove(&node);
            self.starts.retain(|(of, _), _| *of != node);
        }
        let largest = self.largest.entry(node.clone()).or_default();
        let known = self.doubtful.get(&node) == Some(&(start, epoch)) && epoch == claimed;
        if (known || claimed == 0 || epoch != claimed) && epoch <= *largest {
            self.doubtful.insert(node.clone(), (start, epoch));
            return hold(warming || known, || {
                format!("{node} {start} gets epoch {epoch}, {largest} was given before")
            });
        }
        self.doubtful.remove(&node);
        *largest = epoch.max(*largest);
        let owner = *self.starts.entry((node.clone(), epoch)).or_insert(start);
        hold(owner == start, || format!("{node} {start} gets epoch {epoch}, which is {owner}'s"))
    }

    fn end(&mut self, _cluster: &Cluster) -> Verdict {
        let left = self.doubtful.iter().find(|(node, _)| !self.is_forgotten(node));
        hold(left.is_none(), || format!("somebody still lives under an epoch too small: {left:?}"))
    }
}

impl EpochsGrow {
    /// Nobody who runs has seen the largest epoch of this node, nor one above it.
    fn is_forgotten(&self, node: &str) -> bool {
        let largest = self.largest.get(node).copied().unwrap_or_default();
        !self.remembers && self.seen.values().all(|&seen| seen < largest)
    }
}
