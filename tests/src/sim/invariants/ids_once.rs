//! Ids are given once, whatever becomes of the directory; by one without a store never.

use std::ops::Range;

use super::super::cluster::Cluster;
use super::{Invariant, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct IdsOnce {
    given: Vec<Range<u64>>,
}

impl Invariant for IdsOnce {
    fn name(&self) -> &'static str {
        "ids_once"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        let Seen::Ids { at, code: 0, ids } = seen else { return Ok(()) };
        let again = self.given.iter().find(|given| given.start < ids.end && ids.start < given.end);
        hold(again.is_none(), || format!("{at} is given {ids:?}, and {again:?} were given before"))?;
        self.given.push(ids.clone());
        Ok(())
    }

    fn end(&mut self, cluster: &Cluster) -> Verdict {
        let (remembers, blocks) = (cluster.plan.store, self.given.len());
        hold(remembers != self.given.is_empty(), || {
            format!("{blocks} blocks of ids were given; the directory has a store: {remembers}")
        })
    }
}
