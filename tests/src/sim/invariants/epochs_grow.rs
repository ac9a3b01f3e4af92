//! Each start of a node has a larger epoch than every earlier start, and a start that comes back keeps its own or gets
//! a larger one: no two starts are ever told apart wrongly.
//!
//! Holds: H-09, H-16.

use std::collections::BTreeMap;

use super::super::network::Place;
use super::{Invariant, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct EpochsGrow {
    /// The largest epoch given to each node id.
    largest: BTreeMap<String, u64>,
    starts: BTreeMap<(String, u64), Place>,
}

impl Invariant for EpochsGrow {
    fn name(&self) -> &'static str {
        "epochs_grow"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        let Seen::Welcome { node, start, claimed, epoch } = *seen else { return Ok(()) };
        let node = node.to_owned();
        hold(epoch > 0, || format!("{node} gets no epoch"))?;
        let largest = self.largest.entry(node.clone()).or_default();
        let new = claimed == 0 || epoch != claimed;
        hold(!new || epoch > *largest, || {
            format!("{node} {start} gets epoch {epoch}, {largest} was given before")
        })?;
        *largest = epoch.max(*largest);
        let owner = *self.starts.entry((node.clone(), epoch)).or_insert(start);
        hold(owner == start, || format!("{node} {start} gets epoch {epoch}, which is {owner}'s"))
    }
}
