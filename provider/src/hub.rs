//! What everything in one provider shares.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use base::{Epoch, Generation, Generations, NodeId, ServerId};
use net::{Security, hello};
use node::{Clock, Directory};
use parking_lot::Mutex;
use tables::{Db, Table};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wire::link::message;

use crate::auth::Judge;
use crate::config::Config;
use crate::conns::Conns;
use crate::kick::Kicking;
use crate::load::Report;
use crate::meters::Meters;
use crate::module::Descriptor;
use crate::online::Online;
use crate::overload::Gauge;
use crate::records::Records;
use crate::tx::Done;

/// Who this provider is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub cluster: String,
    pub node: NodeId,
    pub epoch: Epoch,
    pub server_id: ServerId,
}

pub(crate) struct Hub {
    pub identity: Identity,
    /// How this provider proves who it is, and asks linkds to.
    pub security: Security,
    /// Hears of the epochs of linkds that are met.
    pub directory: Option<Directory>,
    pub config: Config,
    pub clock: Clock,
    pub meters: Meters,
    pub gauge: Gauge,
    pub online: Online,
    /// Who judges logins here.
    pub judge: Option<Judge>,
    pub conns: Conns,
    /// Its records, once a module has asked for a table.
    pub db: OnceLock<Db>,
    pub records: OnceLock<Arc<Records>>,
    pub once: OnceLock<Table<(String, u64), Done>>,
    /// An operator or the game has closed this provider to new players.
    pub closed: AtomicBool,
    /// It stops, and is closed for good.
    pub stopping: AtomicBool,
    /// Sessions that are being kicked.
    pub kicking: Kicking,
    /// Nothing new is begun.
    pub draining: AtomicBool,
    /// A connection has become idle while draining.
    pub idle: Notify,
    /// Connections say goodbye and end.
    pub goodbye: CancellationToken,
    /// Another start of this node was admitted since: this one can serve nobody any more.
    pub outlived: CancellationToken,
    /// What every linkd was told last.
    pub report: watch::Sender<Report>,
    /// Counts introductions and ends of connections.
    pub changed: watch::Sender<u64>,
    generations: Mutex<Generations>,
    /// Where handlers go that don't end at once. Bounded by the requests in flight.
    pool: Handle,
    tasks: TaskTracker,
}

impl Hub {
    pub fn new(
        identity: Identity,
        security: Security,
        directory: Option<Directory>,
        config: Config,
        judge: Option<Judge>,
        pool: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            identity,
            security,
            directory,
            gauge: Gauge::new(&config.overload),
            closed: AtomicBool::new(config.initially_disabled),
            config,
            clock: Clock::start(),
            meters: Meters::new(),
            online: Online::default(),
            judge,
            conns: Conns::default(),
            db: OnceLock::new(),
            records: OnceLock::new(),
            once: OnceLock::new(),
            stopping: AtomicBool::new(false),
            kicking: Kicking::new(),
            draining: AtomicBool::new(false),
            idle: Notify::new(),
            goodbye: CancellationToken::new(),
            outlived: CancellationToken::new(),
            report: watch::Sender::default(),
            changed: watch::Sender::default(),
            generations: Mutex::default(),
            pool,
            tasks: TaskTracker::new(),
        })
    }

    pub fn pool(&self) -> &Handle {
        &self.pool
    }

    /// Runs on the pool; a stop waits for it as long as its budget allows.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tasks.spawn_on(future, &self.pool)
    }

    /// Waits until every task on the pool has ended.
    pub async fn settled(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub fn next_generation(&self) -> Generation {
        self.generations.lock().begin()
    }

    /// How we introduce ourselves to worker `worker` of a linkd.
    pub fn ours(&self, worker: u8) -> hello::Ours {
        hello::Ours {
            cluster: self.identity.cluster.clone(),
            node: self.identity.node.clone(),
            role: hello::Role::Provider,
            epoch: self.identity.epoch,
            worker: worker.into(),
        }
    }

    pub fn announce(&self, disabled: bool) -> message::Announce {
        message::Announce {
            server_id: self.identity.server_id.0,
            app_version: self.config.version().0,
            disabled,
            region: self.config.region.clone(),
            prefix: self.config.prefix.clone(),
            authenticator: self.judge.is_some(),
        }
    }

    /// Whether linkds are to choose this provider for nothing new.
    pub fn is_disabled(&self) -> bool {
        self.closed.load(Ordering::SeqCst) || self.stopping.load(Ordering::SeqCst)
    }

    /// A module with what the configuration changes about it.
    pub fn describe(&self, module: &Descriptor) -> message::Module {
        module.message(self.config.modules.get(module.name), self.config.in_flight_max)
    }

    /// A connection was introduced or has ended.
    pub fn connections_changed(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    pub fn in_flight(&self) -> usize {
        self.conns.all().iter().map(|conn| conn.in_flight()).sum()
    }
}
