//! Core: merges what the directory tells into what this node believes, so that each change is seen once and in order
//! and nothing is lost across gaps, reconnects and restarts of the directory. Never forgets because of silence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Epoch, Mono, NodeId};

use super::service::{Instance, Services};

/// No epoch is ever beyond this. Whoever speaks of a larger one is not believed: the directory would refuse who repeats it.
pub const EPOCH_MAX: Epoch = Epoch(i64::MAX as u64);

/// Which instance of which service.
pub type Key = (String, NodeId);

/// What happened, in the order of one session.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// This node wants `name` followed: exact, or a prefix when it ends in '/'.
    Follow { name: String },
    /// A session was admitted: whatever was said before it counts no more, but what is known stays.
    Connected,
    /// A page of the whole list of `name`; the last one has `more` false.
    Snapshot { name: String, revision: u64, warming: bool, instances: Vec<Instance>, more: bool },
    /// What changed under `name` since `previous`.
    Delta { name: String, previous: u64, revision: u64, added: Vec<Instance>, removed: Vec<Key> },
    /// The directory has waited long enough: what it did not list is gone.
    Warm,
    /// A peer said hello under this epoch, and no list may have shown it.
    Met { epoch: Epoch },
}

/// What the shell does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Ask the directory for a snapshot of `name` and its deltas.
    Subscribe { name: String },
    /// Publish [`View::services`] of `name`. Both lists are empty when the first list of a name changed nothing.
    Changed { name: String, added: Vec<Key>, removed: Vec<Key> },
    /// A delta did not follow the one before it: the list is asked for anew.
    Gap { name: String, expected: u64, previous: u64 },
}

/// What this node believes about every name it follows.
#[derive(Debug, Default)]
pub struct View {
    follows: BTreeMap<String, Follow>,
    epoch_seen_max: Epoch,
}

#[derive(Debug, Default)]
struct Follow {
    entries: Arc<Services>,
    /// Where this session's list stands; `None` while a snapshot is awaited, and then deltas say nothing.
    revision: Option<u64>,
    /// Pages of the snapshot that is arriving.
    pages: Services,
    /// Known from before and not listed by a warming directory: kept until it is warm.
    unconfirmed: BTreeSet<Key>,
    /// A whole list has been seen at least once.
    listed: bool,
}

impl View {
    pub fn step(&mut self, _now: Mono, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Follow { name } => {
                if !self.follows.contains_key(&name) {
                    self.follows.insert(name.clone(), Follow::default());
                    actions.push(Action::Subscribe { name });
                }
            }
            Event::Connected => {
                for (name, follow) in &mut self.follows {
                    follow.revision = None;
                    follow.pages.clear();
                    actions.push(Action::Subscribe { name: name.clone() });
                }
            }
            Event::Snapshot { name, revision, warming, instances, more } => {
                self.see_all(&instances);
                if let Some(follow) = self.follows.get_mut(&name) {
                    follow.pages.extend(instances.into_iter().map(|instance| (instance.key(), instance)));
                    if !more {
                        follow.list(name, revision, warming, actions);
                    }
                }
            }
            Event::Delta { name, previous, revision, added, removed } => {
                self.see_all(&added);
                if let Some(follow) = self.follows.get_mut(&name) {
                    follow.change(name, previous, revision, (added, removed), actions);
                }
            }
            Event::Warm => {
                for (name, follow) in &mut self.follows {
                    follow.warm(name, actions);
                }
            }
            Event::Met { epoch } => self.see(epoch),
        }
    }

    /// The present list of `name`; empty before the first one came.
    pub fn services(&self, name: &str) -> Arc<Services> {
        self.follows.get(name).map(|follow| follow.entries.clone()).unwrap_or_default()
    }

    /// Whether a whole list of `name` has ever come.
    pub fn listed(&self, name: &str) -> bool {
        self.follows.get(name).is_some_and(|follow| follow.listed)
    }

    /// How many names are followed.
    pub fn followed(&self) -> usize {
        self.follows.len()
    }

    /// The highest epoch of anyone ever listed or met: a directory that forgot counts on from here.
    pub fn epoch_seen_max(&self) -> Epoch {
        self.epoch_seen_max
    }

    fn see_all(&mut self, instances: &[Instance]) {
        instances.iter().for_each(|instance| self.see(instance.epoch));
    }

    fn see(&mut self, epoch: Epoch) {
        if epoch <= EPOCH_MAX {
            self.epoch_seen_max = self.epoch_seen_max.max(epoch);
        }
    }

    /// Asserts what always holds.
    pub fn check(&self) {
        for (name, follow) in &self.follows {
            let known = follow.unconfirmed.iter().all(|key| follow.entries.contains_key(key));
            assert!(known, "{name}: something unconfirmed is not listed");
            assert!(follow.revision.is_none() || follow.listed, "{name}: has a revision but no list");
            let keyed = follow.entries.iter().all(|(key, instance)| *key == instance.key());
            assert!(keyed, "{name}: an instance stands under another key");
        }
    }
}

impl Follow {
    /// The snapshot is whole. Old and new are compared, so that what vanished meanwhile is seen to vanish.
    fn list(&mut self, name: String, revision: u64, warming: bool, actions: &mut Vec<Action>) {
        let new = std::mem::take(&mut self.pages);
        let mut missing: BTreeSet<Key> =
            self.entries.keys().filter(|key| !new.contains_key(*key)).cloned().collect();
        if warming && !base::planted::is("view_drops_while_warming") {
            self.unconfirmed = std::mem::take(&mut missing);
        } else {
            self.unconfirmed.clear();
        }
        if base::planted::is("view_forgets_removals") {
            missing.clear();
        }
        let first = !self.listed;
        self.listed = true;
        self.revision = Some(revision);
        let before = actions.len();
        self.apply(name.clone(), new.into_values().collect(), missing.into_iter().collect(), actions);
        if first && actions.len() == before {
            actions.push(Action::Changed { name, added: Vec::new(), removed: Vec::new() });
        }
    }

    fn change(
        &mut self,
        name: String,
        previous: u64,
        revision: u64,
        (added, removed): (Vec<Instance>, Vec<Key>),
        actions: &mut Vec<Action>,
    ) {
        // While a snapshot is awaited, it will hold whatever this delta says.
        let Some(expected) = self.revision else { return };
        // Said before; a doubled delta changes nothing.
        if revision <= expected {
            return;
        }
        if previous != expected && !base::planted::is("view_ignores_gaps") {
            // Asked for once: the deltas until the snapshot comes are not looked at.
            self.revision = None;
            self.pages.clear();
            actions.push(Action::Gap { name: name.clone(), expected, previous });
            actions.push(Action::Subscribe { name });
            return;
        }
        self.revision = Some(revision);
        for key in added.iter().map(Instance::key).chain(removed.iter().cloned()) {
            self.unconfirmed.remove(&key);
        }
        self.apply(name, added, removed, actions);
    }

    fn warm(&mut self, name: &str, actions: &mut Vec<Action>) {
        let gone = std::mem::take(&mut self.unconfirmed).into_iter().collect();
        self.apply(name.to_owned(), Vec::new(), gone, actions);
    }

    /// Adds and removes, and says what really changed. What is in both lists stays.
    fn apply(&mut self, name: String, add: Vec<Instance>, remove: Vec<Key>, actions: &mut Vec<Action>) {
        let listed: BTreeSet<Key> = add.iter().map(Instance::key).collect();
        let gone = |key: &Key| self.entries.contains_key(key) && !listed.contains(key);
        let removed: Vec<Key> = remove.into_iter().filter(gone).collect();
        let new = |instance: &Instance| self.entries.get(&instance.key()) != Some(instance);
        let added: Vec<Instance> = add.into_iter().filter(new).collect();
        if added.is_empty() && removed.is_empty() {
            return;
        }
        let entries = Arc::make_mut(&mut self.entries);
        for key in &removed {
            entries.remove(key);
        }
        let keys = added.iter().map(Instance::key).collect();
        entries.extend(added.into_iter().map(|instance| (instance.key(), instance)));
        actions.push(Action::Changed { name, added: keys, removed });
    }
}

#[cfg(test)]
mod tests;
