//! Core: to which linkds this provider keeps a connection. One per worker of each linkd that is listed; one that is
//! listed no longer keeps its connection until that breaks by itself.

use std::collections::{BTreeMap, BTreeSet};

use base::{Epoch, NodeId};

/// A gateway as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linkd {
    pub node: NodeId,
    pub epoch: Epoch,
    /// Its provider port, `host:port`.
    pub address: String,
    /// It has workers 0 to this, not included; each takes a connection of its own.
    pub workers: u16,
}

/// One connection to keep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub node: NodeId,
    pub epoch: Epoch,
    pub worker: u8,
}

#[derive(Debug)]
pub enum Event {
    /// All linkds that are known now.
    Listed(Vec<Linkd>),
    /// A dialler that was told to forget its linkd has lost its last connection.
    Ended(Key),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Keep a connection there.
    Dial { key: Key, address: String },
    /// Once the connection breaks, dial no more. A healthy one stays.
    Forget { key: Key },
}

/// The connections that are kept.
#[derive(Debug, Default)]
pub struct Linkds {
    listed: BTreeMap<Key, String>,
    diallers: BTreeMap<Key, Dialler>,
}

#[derive(Debug)]
struct Dialler {
    address: String,
    forgotten: bool,
}

impl Linkds {
    pub fn step(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Listed(linkds) => {
                self.listed = linkds.into_iter().flat_map(workers).collect();
                for (key, dialler) in &mut self.diallers {
                    let gone = self.listed.get(key) != Some(&dialler.address);
                    if gone && !dialler.forgotten {
                        dialler.forgotten = true;
                        actions.push(Action::Forget { key: key.clone() });
                    }
                }
            }
            Event::Ended(key) => {
                if !base::planted::is("linkds_never_redials") {
                    self.diallers.remove(&key);
                }
            }
        }
        // One that is listed again while its old connection still lives waits for the end of that.
        for (key, address) in &self.listed {
            if !self.diallers.contains_key(key) {
                let dialler = Dialler { address: address.clone(), forgotten: false };
                self.diallers.insert(key.clone(), dialler);
                actions.push(Action::Dial { key: key.clone(), address: address.clone() });
            }
        }
    }

    /// Connections that there should be.
    pub fn wanted(&self) -> BTreeSet<Key> {
        self.listed.keys().cloned().collect()
    }

    /// What always holds between two steps.
    pub fn check(&self) {
        for key in self.listed.keys() {
            assert!(self.diallers.contains_key(key), "{key:?} is listed and nobody dials it");
        }
        for (key, dialler) in &self.diallers {
            let listed = self.listed.get(key) == Some(&dialler.address);
            assert!(listed || dialler.forgotten, "{key:?} is not listed and still dialled");
        }
    }
}

fn workers(linkd: Linkd) -> impl Iterator<Item = (Key, String)> {
    let Linkd { node, epoch, address, workers } = linkd;
    let key = move |worker| (Key { node: node.clone(), epoch, worker }, address.clone());
    (0..=u8::MAX).take(workers.max(1).into()).map(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linkd(name: &str, epoch: u64, port: u16, workers: u16) -> Linkd {
        let address = format!("127.0.0.1:{port}");
        Linkd { node: NodeId::new(name).unwrap(), epoch: Epoch(epoch), address, workers }
    }

    fn step(linkds: &mut Linkds, event: Event) -> Vec<String> {
        let mut actions = Vec::new();
        linkds.step(event, &mut actions);
        linkds.check();
        let name = |key: &Key| format!("{}/{}/{}", key.node, key.epoch, key.worker);
        let text = |action: &Action| match action {
            Action::Dial { key, address } => format!("dial {} {address}", name(key)),
            Action::Forget { key } => format!("forget {}", name(key)),
        };
        actions.iter().map(text).collect()
    }

    /// Holds: Z-20.
    #[test]
    fn each_worker_of_each_listed_linkd_gets_one_connection() {
        let mut linkds = Linkds::default();
        let listed = || Event::Listed(vec![linkd("linkd-1", 5, 1, 2), linkd("linkd-2", 6, 2, 0)]);
        let dialled =
            ["dial linkd-1/5/0 127.0.0.1:1", "dial linkd-1/5/1 127.0.0.1:1", "dial linkd-2/6/0 127.0.0.1:2"];
        assert_eq!(step(&mut linkds, listed()), dialled);
        assert_eq!(step(&mut linkds, listed()), Vec::<String>::new());
        assert_eq!(linkds.wanted().len(), 3);
    }

    /// Holds: Q30.
    #[test]
    fn one_that_comes_back_while_its_connection_lives_is_not_dialled_twice() {
        let mut linkds = Linkds::default();
        let one = || Event::Listed(vec![linkd("linkd-1", 5, 1, 1)]);
        step(&mut linkds, one());
        assert_eq!(step(&mut linkds, Event::Listed(Vec::new())), ["forget linkd-1/5/0"]);
        assert_eq!(step(&mut linkds, one()), Vec::<String>::new());
        let key = Key { node: NodeId::new("linkd-1").unwrap(), epoch: Epoch(5), worker: 0 };
        assert_eq!(step(&mut linkds, Event::Ended(key)), ["dial linkd-1/5/0 127.0.0.1:1"]);
    }

    #[test]
    fn a_restarted_linkd_is_another_one() {
        let mut linkds = Linkds::default();
        step(&mut linkds, Event::Listed(vec![linkd("linkd-1", 5, 1, 1)]));
        let restarted = step(&mut linkds, Event::Listed(vec![linkd("linkd-1", 9, 1, 1)]));
        assert_eq!(restarted, ["forget linkd-1/5/0", "dial linkd-1/9/0 127.0.0.1:1"]);
    }
}
