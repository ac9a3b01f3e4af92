//! After healing every client logs in and gets an answer from every module, and when all is quiet nothing is left over:
//! each session is a client's, at its linkd and at every provider.
//!
//! Holds: Z-20.

use std::collections::BTreeSet;

use super::super::cluster::{Cluster, PROGRESS};
use super::super::provider::Stage;
use super::{Invariant, Verdict, hold};

#[derive(Debug, Default)]
pub struct Progress;

impl Invariant for Progress {
    fn name(&self) -> &'static str {
        "progress"
    }

    fn end(&mut self, cluster: &Cluster) -> Verdict {
        for client in cluster.clients() {
            let (account, owed) = (client.account(), &client.owed);
            hold(client.is_content(), || {
                format!(
                    "{account}, {PROGRESS} after healing: logged in {}, no answer from {owed:?}",
                    client.logged_in
                )
            })?;
        }
        let here = cluster.clients().filter(|client| client.is_here()).count();
        let sessions: usize =
            cluster.linkds().flat_map(|linkd| &linkd.workers).map(|worker| worker.router.sessions()).sum();
        hold(here == sessions, || {
            format!("{here} clients are connected and linkds hold {sessions} sessions")
        })?;
        let workers: usize = cluster.linkds().map(|linkd| linkd.workers.len()).sum();
        for provider in cluster.providers() {
            let links = provider.links.len();
            hold(links == workers, || format!("a provider has {links} connections to {workers} workers"))?;
            for link in provider.links.values() {
                hold(link.stage == Stage::Introduced, || {
                    format!("a connection to {:?} is {:?}", link.key, link.stage)
                })?;
                let linkd = cluster.linkds().find(|linkd| *linkd.name() == link.key.node);
                let live: BTreeSet<_> = linkd.into_iter().flat_map(|linkd| linkd.sids()).collect();
                let left: Vec<_> = link.sids.difference(&live).collect();
                hold(left.is_empty(), || format!("a provider keeps {left:?} of {:?}", link.key))?;
                hold(link.sessions.in_flight() == 0, || {
                    format!("{} requests never end", link.sessions.in_flight())
                })?;
            }
        }
        Ok(())
    }
}
