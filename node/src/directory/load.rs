//! How loaded nodes are: this one says it to the directory, and observes others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Epoch, NodeId};
use tokio::sync::watch;
use wire::directory as msg;

use super::Directory;

/// How loaded a node is, as it last said itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Players.
    pub online: u32,
    /// Logins in the last second.
    pub online_new: u32,
    pub propose_max_online: u32,
    /// Logins a second that it wants at most; 0 is no limit.
    pub max_online_new: u32,
    /// 0 none, 1 it sheds, 2 overload.
    pub overload: u32,
}

/// The newest load of each node that is observed, with the start that said it.
pub type Loads = BTreeMap<NodeId, (Epoch, Load)>;

impl From<msg::Load> for Load {
    fn from(message: msg::Load) -> Self {
        let msg::Load { online, online_new, propose_max_online, max_online_new, overload } = message;
        Self { online, online_new, propose_max_online, max_online_new, overload }
    }
}

impl From<Load> for msg::Load {
    fn from(load: Load) -> Self {
        let Load { online, online_new, propose_max_online, max_online_new, overload } = load;
        Self { online, online_new, propose_max_online, max_online_new, overload }
    }
}

/// Behind the handle's lock.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// What this node says, and how often it has said something.
    own: Option<Load>,
    said: u64,
    /// The names under which it observes.
    names: BTreeSet<String>,
    seen: watch::Sender<Arc<Loads>>,
}

impl Board {
    pub fn observes(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub fn observed(&self) -> Vec<String> {
        self.names.iter().cloned().collect()
    }

    /// What to say, if it was not said yet.
    pub fn own(&self, said: &mut u64) -> Option<msg::Load> {
        let fresh = self.said > *said;
        *said = self.said;
        self.own.filter(|_| fresh).map(msg::Load::from)
    }

    pub fn take(&self, loads: msg::Loads) {
        let entry = |load: msg::NodeLoad| {
            Some((NodeId::new(&load.node).ok()?, (Epoch(load.epoch), load.load?.into())))
        };
        let new = loads.loads.into_iter().filter_map(entry);
        self.seen.send_modify(|seen| Arc::make_mut(seen).extend(new));
    }

    /// Forgets whom nobody follows any more.
    pub fn retain(&self, followed: impl Fn(&NodeId) -> bool) {
        self.seen.send_if_modified(|seen| {
            let gone = seen.keys().any(|node| !followed(node));
            if gone {
                Arc::make_mut(seen).retain(|node, _| followed(node));
            }
            gone
        });
    }
}

impl Directory {
    /// Says how loaded this node is, to whoever observes it, now and on every later session. Cheap; only the newest
    /// counts.
    pub fn report_load(&self, load: Load) {
        let mut board = self.shared.board.lock();
        if board.own == Some(load) {
            return;
        }
        board.own = Some(load);
        board.said += 1;
        drop(board);
        self.shared.changed.notify_one();
    }

    /// Observes how loaded each node is that offers something under `name`, exact or a prefix as in
    /// [`subscribe`](Self::subscribe), also who comes later. All receivers show all loads that this node observes.
    pub fn observe(&self, name: &str) -> watch::Receiver<Arc<Loads>> {
        let mut board = self.shared.board.lock();
        board.names.insert(name.to_owned());
        let seen = board.seen.subscribe();
        drop(board);
        // Loads follow a subscription.
        drop(self.subscribe(name));
        self.shared.changed.notify_one();
        seen
    }
}
