//! Core: which node offers what, who follows which names, and the deltas between. It knows sessions only by number and
//! judges nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use base::{Epoch, Generation, Mono, NodeId};
use node::directory::{Instance, NodeInfo, Service};
use wire::directory::{self as msg, from_directory::Kind as From};

use super::Action;
use super::pace::{Key, Pace};

/// The services of one node by name.
pub(super) type Set = BTreeMap<String, msg::Service>;

/// Followers of one name or prefix.
#[derive(Debug, Default)]
struct Followers {
    /// Each with the revision it was last told.
    told: BTreeMap<Generation, u64>,
    pace: Pace,
}

#[derive(Debug, Default)]
pub(super) struct Catalog {
    /// About how much one message carries.
    page_bytes: usize,
    revision: u64,
    offers: BTreeMap<NodeId, (Epoch, Set)>,
    /// Which nodes offer a name: every name of `offers`, and no other.
    names: BTreeMap<String, BTreeSet<NodeId>>,
    follows: BTreeMap<String, Followers>,
    /// The names in `follows` whose changes wait for the next tick.
    owing: BTreeSet<String>,
    /// Services whose address can't be dialled.
    unreachable: BTreeMap<NodeId, BTreeSet<String>>,
}

/// Whether a subscription stands for more than one name.
fn is_prefix(pattern: &str) -> bool {
    pattern.ends_with('/')
}

/// Every subscription that `name` falls under.
pub(super) fn patterns(name: &str) -> impl Iterator<Item = &str> {
    let prefixes = name.match_indices('/').map(|(at, _)| &name[..=at]).filter(|prefix| *prefix != "/");
    ["/", name].into_iter().chain(prefixes)
}

impl Catalog {
    pub fn new(page_bytes: usize) -> Self {
        Self { page_bytes, ..Self::default() }
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn services(&self) -> usize {
        self.offers.values().map(|(_, set)| set.len()).sum()
    }

    pub fn set(&self, node: &NodeId) -> Option<&Set> {
        self.offers.get(node).map(|(_, set)| set)
    }

    /// Every node with what it offers.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let all = self.offers.iter().flat_map(|(node, (epoch, set))| {
            set.values().map(|service| {
                let service = Service::from(service.clone());
                let unreachable = self.is_unreachable(node, &service.name);
                let instance = Instance { node: node.clone(), epoch: *epoch, service, unreachable };
                (instance.key(), instance)
            })
        });
        node::directory::by_node(&all.collect())
    }

    /// Makes `new` the whole set of `node` and tells every follower what that changed. An empty set is no node.
    pub fn replace(&mut self, now: Mono, node: &NodeId, epoch: Epoch, new: Set, actions: &mut Vec<Action>) {
        let (old_epoch, old) = self.offers.remove(node).unwrap_or_default();
        if let Some(names) = self.unreachable.get_mut(node) {
            // Another address is another matter.
            let address = |set: &Set, name: &str| set.get(name).map(|service| service.address.clone());
            let same = |name: &String| new.contains_key(name) && address(&old, name) == address(&new, name);
            names.retain(|name| same(name));
            if names.is_empty() {
                self.unreachable.remove(node);
            }
        }
        let changed = |name: &String, service| old_epoch != epoch || old.get(name) != Some(service);
        let mut told: Vec<String> = new
            .iter()
            .filter(|(name, service)| changed(name, *service))
            .map(|(name, _)| name.clone())
            .collect();
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            self.unlist(name, node);
            told.push(name.clone());
        }
        for name in new.keys() {
            self.names.entry(name.clone()).or_default().insert(node.clone());
        }
        if !new.is_empty() {
            self.offers.insert(node.clone(), (epoch, new));
        }
        if !told.is_empty() {
            self.revision += 1;
            self.tell(now, node, &told, actions);
        }
    }

    /// Whether the address of a service can be dialled has changed.
    pub fn reached(
        &mut self,
        now: Mono,
        node: &NodeId,
        name: &str,
        unreachable: bool,
        actions: &mut Vec<Action>,
    ) {
        if !self.set(node).is_some_and(|set| set.contains_key(name)) {
            return;
        }
        let names = self.unreachable.entry(node.clone()).or_default();
        if unreachable {
            names.insert(name.to_owned());
        } else {
            names.remove(name);
        }
        if names.is_empty() {
            self.unreachable.remove(node);
        }
        self.revision += 1;
        self.tell(now, node, &[name.to_owned()], actions);
    }

    fn is_unreachable(&self, node: &NodeId, name: &str) -> bool {
        self.unreachable.get(node).is_some_and(|names| names.contains(name))
    }

    fn instance(&self, node: &NodeId, epoch: Epoch, service: &msg::Service) -> msg::Instance {
        let unreachable = self.is_unreachable(node, &service.name);
        msg::Instance {
            node: node.as_str().to_owned(),
            epoch: epoch.0,
            service: Some(service.clone()),
            unreachable,
        }
    }

    fn unlist(&mut self, name: &str, node: &NodeId) {
        if let Some(nodes) = self.names.get_mut(name) {
            nodes.remove(node);
            if nodes.is_empty() {
                self.names.remove(name);
            }
        }
    }

    /// What stands now under these names of `node` goes to every subscription that it concerns: at once, or with the next
    /// tick where changes come too fast.
    fn tell(&mut self, now: Mono, node: &NodeId, names: &[String], actions: &mut Vec<Action>) {
        let mut concerned: BTreeMap<String, BTreeSet<Key>> = BTreeMap::new();
        for name in names {
            for pattern in patterns(name).filter(|pattern| self.follows.contains_key(*pattern)) {
                concerned.entry(pattern.to_owned()).or_default().insert((name.clone(), node.clone()));
            }
        }
        for (pattern, keys) in concerned {
            let Some(Followers { pace, .. }) = self.follows.get_mut(&pattern) else { continue };
            if pace.allows(now) {
                self.send(&pattern, &keys, actions);
            } else if pace.owe(keys.into_iter()) {
                self.settle(now, &pattern, actions);
                self.owing.remove(&pattern);
            } else {
                self.owing.insert(pattern);
            }
        }
    }

    /// Tells what was held back.
    pub fn tick(&mut self, now: Mono, actions: &mut Vec<Action>) {
        for pattern in std::mem::take(&mut self.owing) {
            self.settle(now, &pattern, actions);
        }
    }

    /// Tells what was held back of one subscription, in deltas of about `page_bytes`.
    fn settle(&mut self, now: Mono, pattern: &str, actions: &mut Vec<Action>) {
        let Some(followers) = self.follows.get_mut(pattern) else { return };
        let (mut page, mut bytes) = (BTreeSet::new(), 0);
        for key in followers.pace.settle(now) {
            let service = self.set(&key.1).and_then(|set| set.get(&key.0));
            let size = key.1.as_str().len() + service.map_or(key.0.len(), weight);
            if bytes > 0 && bytes + size > self.page_bytes {
                self.revision += 1;
                self.send(pattern, &std::mem::take(&mut page), actions);
                bytes = 0;
            }
            bytes += size;
            page.insert(key);
        }
        self.revision += 1;
        self.send(pattern, &page, actions);
    }

    /// What now stands under these keys, to each follower.
    fn send(&mut self, pattern: &str, keys: &BTreeSet<Key>, actions: &mut Vec<Action>) {
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for (name, node) in keys {
            let offer = self.offers.get(node);
            match offer.and_then(|(epoch, set)| Some((*epoch, set.get(name)?))) {
                Some((epoch, service)) => added.push(self.instance(node, epoch, service)),
                None => removed.push(msg::Key { name: name.clone(), node: node.as_str().to_owned() }),
            }
        }
        // Most were told the same last, and so are told the same now.
        let mut groups: BTreeMap<u64, Vec<Generation>> = BTreeMap::new();
        let followers = self.follows.get_mut(pattern).into_iter().flat_map(|known| &mut known.told);
        for (session, last) in followers {
            groups.entry(std::mem::replace(last, self.revision)).or_default().push(*session);
        }
        for (previous, sessions) in groups {
            let (name, added, removed) = (pattern.to_owned(), added.clone(), removed.clone());
            let delta = msg::Delta { name, previous, revision: self.revision, added, removed };
            actions.push(Action::SendAll { sessions, message: From::Delta(delta) });
        }
    }

    /// Adds the follower, or begins its list anew, and sends it everything under `pattern` in pages of about
    /// `page_bytes`.
    pub fn follow(&mut self, session: Generation, pattern: &str, warming: bool, actions: &mut Vec<Action>) {
        self.follows.entry(pattern.to_owned()).or_default().told.insert(session, self.revision);
        let mut page = self.page(pattern, warming);
        let mut bytes = 0;
        for (name, node) in self.under(pattern) {
            let Some((epoch, set)) = self.offers.get(node) else { continue };
            let Some(service) = set.get(name) else { continue };
            let size = weight(service) + node.as_str().len();
            if bytes > 0 && bytes + size > self.page_bytes {
                let full = std::mem::replace(&mut page, self.page(pattern, warming));
                actions.push(Action::send(session, From::Snapshot(msg::Snapshot { more: true, ..full })));
                bytes = 0;
            }
            bytes += size;
            page.instances.push(self.instance(node, *epoch, service));
        }
        actions.push(Action::send(session, From::Snapshot(page)));
    }

    fn page(&self, pattern: &str, warming: bool) -> msg::Snapshot {
        msg::Snapshot { name: pattern.to_owned(), revision: self.revision, warming, ..Default::default() }
    }

    fn under<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = (&'a str, &'a NodeId)> {
        let first = if pattern == "/" { "" } else { pattern };
        let falls_under =
            move |name: &str| if is_prefix(pattern) { name.starts_with(first) } else { name == pattern };
        let listed = self
            .names
            .range::<str, _>((Bound::Included(first), Bound::Unbounded))
            .take_while(move |(name, _)| falls_under(name));
        listed.flat_map(|(name, nodes)| nodes.iter().map(move |node| (name.as_str(), node)))
    }

    pub fn unfollow(&mut self, session: Generation, pattern: &str) {
        if let Some(followers) = self.follows.get_mut(pattern) {
            followers.told.remove(&session);
            if followers.told.is_empty() {
                self.follows.remove(pattern);
                self.owing.remove(pattern);
            }
        }
    }

    pub fn check(&self) {
        let listed: usize = self.names.values().map(BTreeSet::len).sum();
        assert_eq!(listed, self.services(), "names and offers disagree");
        for (node, (epoch, set)) in &self.offers {
            assert!(epoch.is_given() && !set.is_empty(), "{node} is listed without epoch or service");
            let whole = set.iter().all(|(name, service)| {
                *name == service.name && self.names.get(name).is_some_and(|nodes| nodes.contains(node))
            });
            assert!(whole, "a service of {node} is not listed under its name");
        }
        for (node, names) in &self.unreachable {
            let offered = self.set(node).is_some_and(|set| names.iter().all(|name| set.contains_key(name)));
            assert!(offered, "a service of {node} is unreachable that nobody offers");
        }
        let known = self.owing.iter().all(|pattern| self.follows.contains_key(pattern));
        assert!(known, "a name owes and nobody follows it");
        for (pattern, followers) in &self.follows {
            assert!(!followers.told.is_empty(), "{pattern} is kept without followers");
            assert!(followers.told.values().all(|last| *last <= self.revision), "{pattern}: told the future");
            let owes = followers.pace.owes();
            assert_eq!(owes, self.owing.contains(pattern), "{pattern}: what is owed is not known to be");
        }
    }

    pub fn follows(&self, session: Generation, pattern: &str) -> bool {
        self.follows.get(pattern).is_some_and(|followers| followers.told.contains_key(&session))
    }
}

/// About how many bytes a service takes on the wire.
pub(super) fn weight(service: &msg::Service) -> usize {
    let extra: usize = service.extra.iter().map(|extra| extra.key.len() + extra.value.len() + 8).sum();
    service.name.len() + service.address.len() + service.region.len() + extra + 48
}
