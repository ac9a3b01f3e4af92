//! The client of the directory: one task keeps a session alive, and a cheap handle says what this node offers and
//! shows what others do.
//!
//! The handle never loses what it was told: services, subscriptions and claims are replayed on every new session. Losing the
//! directory changes nothing that was known; an empty directory that has just restarted is warming, not "all gone".

mod asked;
mod claims;
mod dial;
mod error;
mod ids;
mod load;
mod offline;
mod service;
mod session;
pub mod view;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Epoch, NodeId};
use net::NetIo;
use net::Security;
use net::dial::Backoff;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub use claims::{CLAIMS_KEPT_MAX, CLAIMS_WAITING_MAX, Claim, ClaimError};
pub(crate) use dial::chain;
pub use dial::channel;
pub use error::JoinError;
pub use ids::IdsError;
pub use load::{Load, Loads};
pub use offline::Offline;
pub use service::{EXTRA_HOST, EXTRA_ROLE, Instance, NODE_SERVICE, NodeInfo, Service, Services, by_node};
pub use session::{End, PROTO, session};

use crate::clock::Clock;
use view::View;

/// How long [`Directory::nodes`] waits for its first list, and [`Directory::leave`] for its Bye to be sent.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a node says of itself when it joins.
#[derive(Debug, Clone)]
pub struct Join {
    /// Both sides must name the same one.
    pub cluster: String,
    pub node: NodeId,
    /// "linkd", "provider", "arbiter", "directory" or "control".
    pub role: String,
    /// Where this runs; a refused second start of a node id names both hosts.
    pub host: String,
    /// `host:port` of each directory server, tried in turn.
    pub directory: Vec<String>,
    /// Where this node's ops HTTP listens.
    pub ops_address: String,
    /// The waits between sessions.
    pub reconnect: Backoff,
    /// How this node proves itself to the directory, and asks the directory to.
    pub security: Security,
}

/// A handle on this node's membership. Clones share one session.
#[derive(Debug, Clone)]
pub struct Directory {
    shared: Arc<Shared>,
}

/// What the handle and the session task both touch. Locks are held for a few instructions and never across an await.
#[derive(Debug)]
pub(crate) struct Shared {
    join: Join,
    clock: Clock,
    wanted: Mutex<Wanted>,
    /// Something in `wanted` changed.
    changed: Notify,
    known: Mutex<Known>,
    claims: Mutex<claims::Claims>,
    ids: Mutex<ids::Ids>,
    board: Mutex<load::Board>,
    heirs: Mutex<offline::Heirs>,
    epoch: watch::Sender<Epoch>,
    state: watch::Sender<State>,
    /// The node says Bye and the task ends.
    leave: CancellationToken,
    /// The task has ended.
    ended: CancellationToken,
}

/// What the node offers and follows, however often sessions come and go.
#[derive(Debug, Default)]
struct Wanted {
    services: Arc<Vec<Service>>,
    /// Counts calls of register; 0 before the first.
    seq: u64,
    names: Vec<String>,
}

#[derive(Debug, Default)]
struct Known {
    view: View,
    watches: BTreeMap<String, watch::Sender<Arc<Services>>>,
}

#[derive(Debug, Clone, Default)]
struct State {
    connected: bool,
    warming: bool,
    /// How many sessions were admitted.
    admitted: u64,
    /// Why the task ended before it was ever admitted.
    refused: Option<JoinError>,
}

/// Begins to join: spawns the session task, which runs until `cancel` or [`Directory::leave`]. Cancelling says no Bye:
/// the directory keeps this node until its lease runs out, as after a crash.
pub fn join(join: Join, cancel: CancellationToken) -> Directory {
    join_over(net::Tcp, join, cancel)
}

/// The same over another network than TCP: a simulated one.
pub fn join_over<N: NetIo>(net: N, join: Join, cancel: CancellationToken) -> Directory {
    let directory = Directory::alone(join);
    tokio::spawn(dial::keep(net, directory.clone(), cancel));
    directory
}

impl Directory {
    /// A handle without a task, for whoever runs each [`session`] over a transport of their own.
    pub fn alone(join: Join) -> Self {
        let shared = Shared {
            join,
            clock: Clock::start(),
            wanted: Mutex::default(),
            changed: Notify::new(),
            known: Mutex::default(),
            claims: Mutex::default(),
            ids: Mutex::default(),
            board: Mutex::default(),
            heirs: Mutex::default(),
            epoch: watch::Sender::new(Epoch::NONE),
            state: watch::Sender::default(),
            leave: CancellationToken::new(),
            ended: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// This start's epoch; waits for the first session however long the directory is away.
    pub async fn epoch(&self) -> Result<Epoch, JoinError> {
        let mut state = self.shared.state.subscribe();
        loop {
            if let Some(refused) = state.borrow_and_update().refused.clone() {
                return Err(refused);
            }
            let epoch = self.current_epoch();
            if epoch.is_given() {
                return Ok(epoch);
            }
            tokio::select! {
                biased;
                changed = state.changed() => if changed.is_err() { return Err(JoinError::Ended) },
                () = self.shared.ended.cancelled() => {
                    return Err(state.borrow().refused.clone().unwrap_or(JoinError::Ended));
                }
            }
        }
    }

    /// How others dial a port of this node: `addr`, or this node's host where `addr` is every address of the machine.
    pub fn reachable(&self, addr: SocketAddr) -> String {
        match addr.ip().is_unspecified() {
            true => format!("{}:{}", self.shared.join.host, addr.port()),
            false => addr.to_string(),
        }
    }

    /// [`Epoch::NONE`] before the first session.
    pub fn current_epoch(&self) -> Epoch {
        *self.shared.epoch.borrow()
    }

    /// Shows each epoch this node is given. It changes after the first only when another start of this node was
    /// admitted meanwhile: what was done under the old one is then stale.
    pub fn epoch_changes(&self) -> watch::Receiver<Epoch> {
        self.shared.epoch.subscribe()
    }

    /// Waits until this node is given another epoch than its first: another start of it was admitted meanwhile, and
    /// peers refuse the old epoch. The process ends then and is started again.
    pub async fn outlived(&self) {
        let mut epochs = self.epoch_changes();
        let Ok(first) = epochs.wait_for(|epoch| epoch.is_given()).await.map(|epoch| *epoch) else {
            return std::future::pending().await;
        };
        if epochs.wait_for(|epoch| *epoch != first).await.is_err() {
            std::future::pending().await
        }
    }

    /// A peer said hello under this epoch. A directory that forgot, and whose clock was set back, hears of it with the
    /// next session, also when no list has shown that start: else it could give the number again.
    pub fn met(&self, epoch: Epoch) {
        let mut known = self.shared.known.lock();
        // Meeting somebody changes no list, so that nothing is to be done.
        known.view.step(self.shared.clock.now(), view::Event::Met { epoch }, &mut Vec::new());
    }

    /// Replaces the set of services this node offers, now and on every later session. A refusal by the directory is
    /// logged and counted, and leaves the set before it in place there.
    pub fn register(&self, services: Vec<Service>) {
        let mut wanted = self.shared.wanted.lock();
        wanted.services = Arc::new(services);
        wanted.seq += 1;
        drop(wanted);
        self.shared.changed.notify_one();
    }

    /// Follows a name, or every name under a prefix that ends in '/'; "/" is everything. The receiver shows an empty
    /// list until the first one comes. A name once followed is followed for as long as the process lives.
    pub fn subscribe(&self, name: &str) -> watch::Receiver<Arc<Services>> {
        let mut known = self.shared.known.lock();
        if let Some(watch) = known.watches.get(name) {
            return watch.subscribe();
        }
        let (sender, receiver) = watch::channel(Arc::default());
        known.watches.insert(name.to_owned(), sender);
        drop(known);
        self.shared.wanted.lock().names.push(name.to_owned());
        self.shared.changed.notify_one();
        receiver
    }

    /// A session is admitted now.
    pub fn connected(&self) -> bool {
        self.shared.state.borrow().connected
    }

    /// The directory has just restarted and may not yet list everyone; what it listed before is kept.
    pub fn warming(&self) -> bool {
        self.shared.state.borrow().warming
    }

    /// Every node the directory lists, with what it offers. The first call waits up to 2 s for the list; without a
    /// directory it shows what was known last.
    pub async fn nodes(&self) -> Vec<NodeInfo> {
        let mut everything = self.subscribe("/");
        let listed = async {
            while !self.shared.known.lock().view.listed("/") && everything.changed().await.is_ok() {}
        };
        let _ = tokio::time::timeout(PATIENCE, listed).await;
        let services = everything.borrow().clone();
        by_node(&services)
    }

    /// Says Bye, so that nobody waits for the lease, and ends the session for good. Returns when it is said, or after
    /// 2 s without a directory.
    pub async fn leave(&self) {
        self.shared.leave.cancel();
        let _ = tokio::time::timeout(PATIENCE, self.shared.ended.cancelled()).await;
    }
}
