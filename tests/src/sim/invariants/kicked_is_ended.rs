//! A session that a provider has kicked begins nothing there any more, over whatever connection it comes; and in the end
//! its linkd has ended it.
//!
//! Holds: Q63, Z-67.

use std::collections::BTreeSet;

use linkstead::{LinkRef, sessions};

use super::super::cluster::Cluster;
use super::super::network::Place;
use super::{Invariant, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct KickedIsEnded {
    /// By whom, as long as that provider runs: its successor knows nothing of it.
    kicked: BTreeSet<(Place, LinkRef)>,
}

impl Invariant for KickedIsEnded {
    fn name(&self) -> &'static str {
        "kicked_is_ended"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        match seen {
            Seen::Kicked { at, link } => {
                self.kicked.insert((*at, (*link).clone()));
            }
            Seen::Ended { place } => self.kicked.retain(|(at, _)| at != place),
            Seen::Sessions { at, key, actions, .. } => {
                for action in *actions {
                    let sessions::Action::Run { sid, .. } = action else { continue };
                    let link = LinkRef { linkd: key.node.clone(), epoch: key.epoch, sid: *sid };
                    hold(!self.kicked.contains(&(at.place, link)), || {
                        format!("{sid} is kicked and runs on")
                    })?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, cluster: &Cluster) -> Verdict {
        for (place, link) in &self.kicked {
            let there = cluster.holds(link);
            hold(!there, || format!("{link} was kicked by {place:?} and is still there"))?;
        }
        Ok(())
    }
}
