//! Core: how loaded nodes are, for who observes them. An observer follows names, so who offers something under one is
//! observed however late it comes. Between two ticks only a node's newest load counts.

use std::collections::{BTreeMap, BTreeSet};

use base::{Generation, NodeId};
use wire::directory::{self as msg, from_directory::Kind as From};

use super::catalog::patterns;
use super::{Action, Directory};

/// Loads in one message.
const PER_MESSAGE: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Loads {
    of: BTreeMap<NodeId, msg::Load>,
    /// Told to nobody yet, or not to everybody who observes the node now.
    fresh: BTreeSet<NodeId>,
    /// The names under which a session observes.
    observers: BTreeMap<Generation, BTreeSet<String>>,
}

impl Loads {
    /// Its observers may be others now.
    pub fn offers_changed(&mut self, node: &NodeId) {
        if self.of.contains_key(node) {
            self.fresh.insert(node.clone());
        }
    }

    pub fn node_gone(&mut self, node: &NodeId) {
        self.of.remove(node);
        self.fresh.remove(node);
    }

    pub fn session_gone(&mut self, session: Generation) {
        self.observers.remove(&session);
    }

    pub fn unobserve(&mut self, session: Generation, name: &str) {
        if let Some(names) = self.observers.get_mut(&session) {
            names.remove(name);
            if names.is_empty() {
                self.observers.remove(&session);
            }
        }
    }

    pub fn observes(&self, session: Generation) -> impl Iterator<Item = &String> {
        self.observers.get(&session).into_iter().flatten()
    }

    pub fn check(&self, is_node: impl Fn(&NodeId) -> bool) {
        assert!(self.of.keys().all(is_node), "a node that is gone has a load");
        assert!(self.fresh.iter().all(|node| self.of.contains_key(node)), "a load that nobody reported");
        assert!(self.observers.values().all(|names| !names.is_empty()), "an observer of nothing");
    }
}

impl Directory {
    /// A node says how loaded it is; what comes from a session that lost its node counts no more.
    pub(super) fn loaded(&mut self, session: Generation, node: &NodeId, load: msg::Load) {
        if self.nodes.owner(node) == Some(session) {
            self.loads.of.insert(node.clone(), load);
            self.loads.fresh.insert(node.clone());
        }
    }

    /// The session observes whoever offers something under `name`, from now on.
    pub(super) fn observe(&mut self, session: Generation, name: &str, actions: &mut Vec<Action>) {
        self.loads.observers.entry(session).or_default().insert(name.to_owned());
        let known = self.loads.of.keys();
        let under = known.filter(|node| self.falls_under(node).contains(name)).cloned().collect::<Vec<_>>();
        self.tell_loads(&[session], under.iter(), actions);
    }

    /// Every name and prefix under which the node offers something.
    fn falls_under(&self, node: &NodeId) -> BTreeSet<&str> {
        self.catalog.set(node).into_iter().flatten().flat_map(|(name, _)| patterns(name)).collect()
    }

    /// Tells every observer what came since the last time.
    pub(super) fn spread_loads(&mut self, actions: &mut Vec<Action>) {
        let fresh = std::mem::take(&mut self.loads.fresh);
        if fresh.is_empty() || self.loads.observers.is_empty() {
            return;
        }
        let under: Vec<_> = fresh.iter().map(|node| (node, self.falls_under(node))).collect();
        // Most observe the same, and so are told the same.
        let mut groups: BTreeMap<&BTreeSet<String>, Vec<Generation>> = BTreeMap::new();
        for (&session, names) in &self.loads.observers {
            groups.entry(names).or_default().push(session);
        }
        for (names, sessions) in groups {
            let observed =
                |names_of: &BTreeSet<&str>| names.iter().any(|name| names_of.contains(name.as_str()));
            let nodes = under.iter().filter(|(_, names)| observed(names)).map(|(node, _)| *node);
            self.tell_loads(&sessions, nodes, actions);
        }
    }

    fn tell_loads<'a>(
        &self,
        sessions: &[Generation],
        nodes: impl Iterator<Item = &'a NodeId>,
        actions: &mut Vec<Action>,
    ) {
        let entry = |node: &NodeId| {
            let (load, epoch) = (*self.loads.of.get(node)?, self.nodes.get(node)?.epoch.0);
            Some(msg::NodeLoad { node: node.as_str().to_owned(), epoch, load: Some(load) })
        };
        let all: Vec<_> = nodes.filter_map(entry).collect();
        for loads in all.chunks(PER_MESSAGE) {
            let message = From::Loads(msg::Loads { loads: loads.to_vec() });
            actions.push(Action::SendAll { sessions: sessions.to_vec(), message });
        }
    }
}
