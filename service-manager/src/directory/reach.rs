//! Core: whether what nodes offer can be dialled. An address that can't is said to its node at once, listed as
//! unreachable, and tried again until it can.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use base::{Mono, NodeId, Span};
use wire::directory::{self as msg, from_directory::Kind as From};

use super::{Action, Cause, Directory};

/// How often an address is tried again that can't be dialled.
const AGAIN: Span = Span::secs(5);
/// Addresses that are dialled at once; others wait.
pub const DIALLING_MAX: usize = 64;

/// What is known of one address of one service.
#[derive(Debug)]
struct Tried {
    address: String,
    unreachable: bool,
    /// When it is dialled; `None`: it is being dialled, or was reached.
    due: Option<Mono>,
}

/// By node and service. Only services with an address.
#[derive(Debug, Default)]
pub(super) struct Reach {
    of: BTreeMap<NodeId, BTreeMap<String, Tried>>,
    /// What is to be dialled when; what is gone or was dialled meanwhile is passed over.
    due: BTreeSet<(Mono, NodeId, String)>,
    dialling: usize,
}

impl Reach {
    pub fn node_gone(&mut self, node: &NodeId) {
        self.of.remove(node);
    }

    pub fn unreachable(&self) -> usize {
        self.of.values().flat_map(BTreeMap::values).filter(|tried| tried.unreachable).count()
    }

    /// The next address whose time has come.
    fn next(&mut self, now: Mono) -> Option<(NodeId, String, String)> {
        while self.due.first().is_some_and(|(due, ..)| *due <= now) {
            let (due, node, name) = self.due.pop_first()?;
            let tried = self.of.get_mut(&node).and_then(|names| names.get_mut(&name));
            if let Some(tried) = tried.filter(|tried| tried.due == Some(due)) {
                tried.due = None;
                return Some((node, name, tried.address.clone()));
            }
        }
        None
    }

    pub fn check(&self) {
        assert!(self.dialling <= DIALLING_MAX, "too many addresses are dialled at once");
        for (node, names) in &self.of {
            for (name, tried) in names.iter().filter(|(_, tried)| tried.due.is_some()) {
                let waits =
                    tried.due.is_some_and(|due| self.due.contains(&(due, node.clone(), name.clone())));
                assert!(waits, "{name} of {node} will never be dialled");
            }
        }
    }
}

impl Directory {
    /// Has every new address of the node dialled. One on loopback is only this machine's.
    pub(super) fn try_addresses(&mut self, now: Mono, node: &NodeId, actions: &mut Vec<Action>) {
        let Some(set) = self.catalog.set(node) else { return };
        let owner = self.nodes.owner(node).and_then(|session| self.sessions.get(&session));
        let elsewhere = owner.is_some_and(|session| !session.loopback);
        let offered: BTreeMap<&String, &String> = set
            .iter()
            .filter(|(name, service)| !service.address.is_empty() && !name.starts_with('_'))
            .map(|(name, service)| (name, &service.address))
            .collect();
        let mut astray = Vec::new();
        let Reach { of, due, .. } = &mut self.reach;
        let known = of.entry(node.clone()).or_default();
        known.retain(|name, tried| offered.get(name).is_some_and(|address| **address == tried.address));
        for (name, address) in offered {
            if known.contains_key(name) {
                continue;
            }
            let lost = elsewhere && is_loopback(address);
            let tried = Tried { address: address.clone(), unreachable: false, due: (!lost).then_some(now) };
            known.insert(name.clone(), tried);
            if lost {
                astray.push((name.clone(), address.clone()));
            } else {
                due.insert((now, node.clone(), name.clone()));
            }
        }
        if known.is_empty() {
            of.remove(node);
        }
        for (name, address) in astray {
            let why = "it is a loopback address, and the node is on another machine".to_owned();
            self.judged(now, node, (&name, &address), Some(why), actions);
        }
        self.dial_due(now, actions);
    }

    /// An address was dialled; `failed`: why it could not be.
    pub(super) fn dialled(
        &mut self,
        now: Mono,
        node: &NodeId,
        (name, address): (&str, &str),
        failed: Option<String>,
        actions: &mut Vec<Action>,
    ) {
        self.reach.dialling = self.reach.dialling.saturating_sub(1);
        // It may be gone, or offer another address by now.
        let tried = self.reach.of.get_mut(node).and_then(|names| names.get_mut(name));
        if let Some(tried) = tried.filter(|tried| tried.address == address && tried.due.is_none()) {
            if failed.is_some() {
                tried.due = Some(now + AGAIN);
                self.reach.due.insert((now + AGAIN, node.clone(), name.to_owned()));
            }
            self.judged(now, node, (name, address), failed, actions);
        }
        self.dial_due(now, actions);
    }

    /// Says what has changed to the node, and to who follows the service.
    fn judged(
        &mut self,
        now: Mono,
        node: &NodeId,
        (name, address): (&str, &str),
        failed: Option<String>,
        actions: &mut Vec<Action>,
    ) {
        let tried = self.reach.of.get_mut(node).and_then(|names| names.get_mut(name));
        let Some(tried) = tried.filter(|tried| tried.unreachable != failed.is_some()) else { return };
        tried.unreachable = failed.is_some();
        self.catalog.reached(now, node, name, failed.is_some(), actions);
        if let Some(session) = self.nodes.owner(node) {
            let (name, address) = (name.to_owned(), address.to_owned());
            let text = failed.unwrap_or_default();
            actions.push(Action::Count(Cause::Unreachable));
            actions.push(Action::send(session, From::Unreachable(msg::Unreachable { name, address, text })));
        }
    }

    /// Dials what is due, a bounded number at once.
    pub(super) fn dial_due(&mut self, now: Mono, actions: &mut Vec<Action>) {
        while self.reach.dialling < DIALLING_MAX {
            let Some((node, name, address)) = self.reach.next(now) else { return };
            self.reach.dialling += 1;
            actions.push(Action::Dial { node, name, address });
        }
    }
}

/// Whether `address`, a `host:port`, is only for the machine itself.
fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}
