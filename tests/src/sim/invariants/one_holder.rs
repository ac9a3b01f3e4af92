//! A key that somebody claimed is nobody else's until its time is over or, where it ends with its node, that node is gone
//! or lives under another epoch. A directory without a store knows a claim again once it is said again, and gives nothing
//! away before it has waited for that. In the end exactly one node has what one of all may have.

use std::collections::BTreeMap;

use base::Mono;

use super::super::cluster::Cluster;
use super::super::network::Place;
use super::super::wants::OWNED;
use super::{Claimed, Invariant, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct OneHolder {
    held: BTreeMap<String, Held>,
    /// The life of the directory that let a node in last, and under which epoch.
    here: BTreeMap<String, (Place, u64)>,
}

#[derive(Debug)]
struct Held {
    value: Vec<u8>,
    until: Mono,
    /// Whose end ends it.
    node: Option<String>,
    /// The life of the directory that heard it last.
    directory: Place,
}

impl Invariant for OneHolder {
    fn name(&self) -> &'static str {
        "one_holder"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        match *seen {
            Seen::Claimed(ref claimed) => return self.claimed(claimed),
            Seen::Lost { node, .. } => {
                self.here.remove(node);
                self.free(node);
            }
            Seen::Welcome { directory, node, epoch, claimed, .. } => {
                if epoch != claimed {
                    self.free(node);
                }
                self.here.insert(node.to_owned(), (directory, epoch));
            }
            // Who has not come back by then is gone.
            Seen::Warm { directory } => {
                let here = &self.here;
                let back = |node: &String| here.get(node).is_some_and(|(life, _)| *life == directory);
                self.held.retain(|_, held| held.node.as_ref().is_none_or(back));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, cluster: &Cluster) -> Verdict {
        let holds = |member: &&super::super::member::Member| member.wants.holds(OWNED);
        let holders: Vec<_> = cluster.joined().filter(holds).map(|member| member.node.to_string()).collect();
        hold(holders.len() == 1, || format!("what one of all may have belongs to {holders:?}"))
    }
}

impl OneHolder {
    fn free(&mut self, node: &str) {
        self.held.retain(|_, held| held.node.as_deref() != Some(node));
    }

    fn claimed(&mut self, claimed: &Claimed<'_>) -> Verdict {
        let Claimed { directory, remembers, warming, node, claim, at, until } = *claimed;
        let (key, value) = (claim.key.as_str(), claim.value.to_vec());
        let owner = (!claim.outlives_node).then(|| node.to_owned());
        let known = self.held.get(key).filter(|held| held.until > at);
        let Some(held) = known.filter(|held| remembers || held.directory == directory) else {
            self.held.insert(key.to_owned(), Held { value, until, node: owner, directory });
            return hold(remembers || claim.replay || !warming, || {
                format!("{node} is given {key} while its holder may not be back")
            });
        };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        hold(held.value == value, || {
            format!("{key} is {:?}'s and is given to {:?}", text(&held.value), text(&value))
        })?;
        let (until, node) = (held.until.max(until), held.node.clone().and(owner));
        self.held.insert(key.to_owned(), Held { value, until, node, directory });
        Ok(())
    }
}
