//! The connections to linkds, and which of them reaches a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use base::{Generation, LinkSid};
use parking_lot::Mutex;
use wire::code;

use crate::conn::Conn;
use crate::error::{Error, Result};
use crate::linkds::Key;
use crate::links::LinkRef;

/// Every connection, by the linkd's start and worker. Read on each send, changed when one comes or goes. Two starts of a
/// linkd may both be connected for a while: the one before is listed no longer, and holds its sessions until it ends.
#[derive(Default)]
pub(crate) struct Conns {
    map: ArcSwap<Map>,
    change: Mutex<()>,
}

type Map = BTreeMap<Key, Arc<Conn>>;
/// Sessions by the connection that reaches them.
pub(crate) type Groups = BTreeMap<Generation, (Arc<Conn>, Vec<LinkSid>)>;

impl Conns {
    /// The newest connection wins.
    pub fn insert(&self, conn: Arc<Conn>) {
        let _one = self.change.lock();
        let mut map = Map::clone(&self.map.load());
        map.insert(conn.key(), conn);
        self.map.store(Arc::new(map));
    }

    /// Removes that connection, and not one that came after it.
    pub fn remove(&self, conn: &Conn) {
        let (key, generation) = (conn.key(), conn.link.generation);
        let _one = self.change.lock();
        if self.map.load().get(&key).is_some_and(|conn| conn.link.generation == generation) {
            let mut map = Map::clone(&self.map.load());
            map.remove(&key);
            self.map.store(Arc::new(map));
        }
    }

    pub fn all(&self) -> Vec<Arc<Conn>> {
        self.map.load().values().cloned().collect()
    }

    /// Those on which something may be said already.
    pub fn announced(&self) -> Vec<Arc<Conn>> {
        self.map.load().values().filter(|conn| conn.is_announced()).cloned().collect()
    }

    /// How many of these take requests for this provider.
    pub fn introduced(&self, keys: &BTreeSet<Key>) -> usize {
        let map = self.map.load();
        keys.iter().filter(|key| map.get(key).is_some_and(|conn| conn.is_introduced())).count()
    }

    /// The connection to a session's linkd worker, in the start that holds the session.
    pub fn find(&self, link: &LinkRef) -> Result<Arc<Conn>> {
        let map = self.map.load();
        let key = Key { node: link.linkd.clone(), epoch: link.epoch, worker: link.sid.worker() };
        if base::planted::is("link_ref_ignores_epoch") {
            let other = map.values().find(|conn| conn.key().node == key.node && conn.is_announced());
            return other.cloned().ok_or_else(|| Error::framework(&code::UNAVAILABLE, "planted"));
        }
        // A linkd cuts off whoever speaks before it has announced itself.
        if let Some(conn) = map.get(&key).filter(|conn| conn.is_announced()) {
            return Ok(conn.clone());
        }
        let later = map.range(key..).take_while(|(key, _)| key.node == link.linkd);
        if later.into_iter().any(|(key, conn)| key.epoch > link.epoch && conn.is_announced()) {
            let text = format!("{} has started anew, and its sessions are gone", link.linkd);
            return Err(Error::framework(&code::UNKNOWN_SESSION, text));
        }
        Err(Error::framework(&code::UNAVAILABLE, format!("no connection to {}", link.linkd)))
    }

    /// Sessions by connection, and those that no connection reaches.
    pub fn group(&self, links: &[LinkRef]) -> (Groups, Vec<LinkRef>) {
        let (mut groups, mut lost) = (Groups::new(), Vec::new());
        for link in links {
            match self.find(link) {
                Ok(conn) => {
                    let group = groups.entry(conn.link.generation).or_insert_with(|| (conn, Vec::new()));
                    group.1.push(link.sid);
                }
                Err(_) => lost.push(link.clone()),
            }
        }
        (groups, lost)
    }
}
