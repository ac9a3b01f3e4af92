//! After healing the directory lists exactly who is alive, and every node sees exactly that, removals included. Until then a directory that has
//! just restarted and knows nothing makes nobody forget anything.
//!
//! Holds: H-11, H-13, Z-22, Z-23.

use std::collections::BTreeMap;

use base::Epoch;
use node::directory::view;

use super::super::cluster::Cluster;
use super::super::member::Member;
use super::{Invariant, Listing, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct ViewsConverge;

impl Invariant for ViewsConverge {
    fn name(&self) -> &'static str {
        "views_converge"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        let Seen::View { at, listing, actions } = seen else { return Ok(()) };
        let told = matches!(listing, Listing::Delta | Listing::Warm | Listing::Snapshot { warming: false });
        for action in *actions {
            if let view::Action::Changed { name, removed, .. } = action {
                let forgets = !told && !removed.is_empty();
                hold(!forgets, || format!("{at} forgets {removed:?} of {name} by {listing:?}"))?;
            }
        }
        Ok(())
    }

    fn end(&mut self, cluster: &Cluster) -> Verdict {
        let Some(directory) = cluster.directory() else { return Err("there is no directory".into()) };
        let names: Vec<_> = directory.core.nodes().into_iter().map(|info| info.node.to_string()).collect();
        let alive = cluster.members();
        hold(names == alive, || format!("the directory lists {names:?}, alive are {alive:?}"))?;
        let mut listed: BTreeMap<(String, String), (Epoch, String)> = BTreeMap::new();
        for info in directory.core.nodes() {
            for service in info.services {
                listed.insert((service.name, info.node.to_string()), (info.epoch, service.address));
            }
        }
        let same = |member: &Member| {
            let falls = |name: &str| {
                name == member.name || (member.name.ends_with('/') && name.starts_with(member.name))
            };
            let expected: BTreeMap<_, _> = listed.iter().filter(|((name, _), _)| falls(name)).collect();
            let seen = member.view.services(member.name);
            let equal = |((name, node), instance): (&(String, base::NodeId), &node::directory::Instance)| {
                let known = expected.get(&(name.clone(), node.to_string()));
                known.is_some_and(|(epoch, address)| {
                    (*epoch, address) == (instance.epoch, &instance.service.address)
                })
            };
            let equal = seen.len() == expected.len() && seen.iter().all(equal);
            hold(equal, || format!("the directory lists {expected:?}, seen are {:?}", seen.keys()))
        };
        for linkd in cluster.linkds() {
            hold(linkd.member.is_admitted(), || "a linkd has no session with the directory".into())?;
            same(&linkd.member)?;
        }
        cluster.providers().try_for_each(|provider| same(&provider.member))
    }
}
