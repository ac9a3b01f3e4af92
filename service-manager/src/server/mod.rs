//! The shell of the directory: tonic sessions in front, one loop around the core, the ops port beside it.

mod codec;
mod dialer;
mod disk;
mod front;
mod hub;
mod operate;
mod outbox;
mod session;

use std::sync::Arc;

use base::NodeId;
use net::{NetIo, Security};
use node::config::{BadSetting, NodeConfig};
use node::lifecycle::BadBudgets;
use node::listen::{Bounded, Incoming};
use node::ops::{self, Ops, Readiness};
use node::telemetry::Metrics;
use node::{Clock, Shutdown};
use store::StoreError;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::ServiceManagerConfig;
use crate::directory::{DIALLING_MAX, Directory, Save};
use disk::Disk;
use front::Front;
use hub::Hub;
use operate::Operator;
pub use outbox::{Answers, Outbox, outbox};
pub use session::{Input, session};

/// Messages of all sessions on their way to the core; when it is full, sessions are read no further.
const INPUTS_MAX: usize = 1_024;
/// How long open connections may hold up the end.
const GOODBYE: std::time::Duration = std::time::Duration::from_millis(500);

/// What every process has made before it serves.
#[derive(Debug)]
pub struct Parts {
    pub node: NodeId,
    pub cluster: String,
    pub clock: Clock,
    /// Epochs begin above this, which no earlier start of this directory may have reached: without a durable store the
    /// wall clock's microseconds.
    pub epoch_start: u64,
    pub shutdown: Shutdown,
    pub readiness: Readiness,
    pub metrics: Option<Metrics>,
    /// The ops port; None: none is served.
    pub ops: Option<TcpListener>,
    /// How nodes prove who they are.
    pub security: Security,
}

impl Parts {
    /// From `[node]`, without certificates. Without an id it is `service-manager-1`.
    pub fn new(
        config: &NodeConfig,
        ops: Option<TcpListener>,
        metrics: Option<Metrics>,
    ) -> Result<Self, ServeError> {
        let id = if config.id.is_empty() { "service-manager-1" } else { config.id.as_str() };
        let node = NodeId::new(id).map_err(|error| ServeError::NodeId(error.to_string()))?;
        let clock = Clock::start();
        let shutdown = Shutdown::new(config.budgets(), clock)?;
        let readiness = Readiness::new(&[]);
        let (cluster, security) = (config.cluster.clone(), Security::Insecure);
        let epoch_start = node::clock::unix_micros();
        Ok(Self { node, cluster, clock, epoch_start, shutdown, readiness, metrics, ops, security })
    }
}

/// Why the directory does not serve, or no more.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The operator's to mend.
    #[error("{}", .0.iter().map(BadSetting::to_string).collect::<Vec<_>>().join("\n"))]
    Config(Vec<BadSetting>),
    /// The operator's to mend.
    #[error("node.id: {0}")]
    NodeId(String),
    /// The operator's to mend.
    #[error(transparent)]
    Budgets(#[from] BadBudgets),
    #[error("the directory's port failed: {0}; start again")]
    Transport(#[from] tonic::transport::Error),
    #[error("the directory's ops port failed: {0}; start again")]
    Ops(#[from] std::io::Error),
    /// What it can't save it may not answer, so it ends.
    #[error("service_manager.store: {0}")]
    Store(#[from] StoreError),
}

/// Serves on `listener` (from `net`) until `cancel` or until `parts.shutdown` has been through its stages.
pub async fn run(
    config: &ServiceManagerConfig,
    listener: TcpListener,
    parts: Parts,
    cancel: CancellationToken,
) -> Result<(), ServeError> {
    run_over(net::Tcp, config, listener, parts, cancel).await
}

/// The same over another network than TCP: a simulated one. The ops port stays TCP's.
pub async fn run_over<N: NetIo>(
    net: N,
    config: &ServiceManagerConfig,
    listener: N::Listener,
    parts: Parts,
    cancel: CancellationToken,
) -> Result<(), ServeError> {
    config.check().map_err(ServeError::Config)?;
    let (core, disk) = remember(config, &parts).await?;
    let (inputs, receiver) = mpsc::channel(INPUTS_MAX);
    let (dials, to_dial) = mpsc::channel(DIALLING_MAX);
    let hub = Hub::new(core, parts.clock, disk, dials);
    let dialling = dialer::run(net.clone(), to_dial, inputs.clone());
    let operator = Arc::new(Operator::new(&parts, config.store, hub.status(), inputs.clone()));
    // Everything ends with `over`: by cancel, at the end of a stop, or because one part failed.
    let over = cancel.child_token();
    let _over = over.clone().drop_guard();

    let hub = hub.run(receiver, over.clone());
    let incoming = Bounded::over(net, listener, config.sessions_max, config.hello.0.max(config.ttl.0));
    let sessions = serve(config, incoming.incoming(parts.security), inputs, over.clone());
    let ops = Ops { shutdown: parts.shutdown.clone(), readiness: parts.readiness, metrics: parts.metrics };
    let ops = async {
        match parts.ops {
            Some(listener) => ops::serve(listener, ops, operator, over.clone()).await,
            None => std::future::pending().await,
        }
    };
    let stop = async {
        // Nothing is in flight here that a drain would wait for, and everything that was answered is saved.
        if let Err(error) = parts.shutdown.run(|| async {}, || async { Ok(()) }).await {
            tracing::warn!(%error, "the stop was not clean");
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        () = stop => {}
        ended = hub => ended?,
        () = dialling => {}
        served = sessions => served?,
        served = ops => served?,
    }
    Ok(())
}

/// The core with what an earlier life of it saved, and where it saves on.
async fn remember(
    config: &ServiceManagerConfig,
    parts: &Parts,
) -> Result<(Directory, Option<Disk>), ServeError> {
    let now = parts.clock.now();
    let started = parts.epoch_start;
    let Some(kind) = config.store.on_disk() else {
        tracing::warn!("service_manager.store is \"memory\": a restart forgets everything and is told again");
        return Ok((Directory::new(config.settings(&parts.cluster, started), now), None));
    };
    let dir = config.data_dir.clone();
    let owner = format!("node {} of cluster {}", parts.node, parts.cluster);
    let opening = tokio::task::spawn_blocking(move || Disk::open(&dir, kind, owner)).await;
    let (disk, saved) = opening.map_err(|error| StoreError::Failed(error.to_string()))??;
    // A new store counts on above what a directory without one may have given; an old one on its own.
    let epoch_start = if saved.is_empty() { started } else { 0 };
    if saved.is_empty() {
        disk.save(vec![Save::EpochMax { epoch: started }]).await?;
    }
    tracing::info!(store = config.store.as_str(), facts = saved.len(), "the store is open");
    let mut core = Directory::new(config.settings(&parts.cluster, epoch_start), now);
    core.restore(now, saved);
    Ok((core, Some(disk)))
}

async fn serve<N: NetIo>(
    config: &ServiceManagerConfig,
    incoming: Incoming<N>,
    inputs: mpsc::Sender<Input>,
    over: CancellationToken,
) -> Result<(), ServeError> {
    let service =
        Front(Arc::new(session::Sessions::new(inputs, config.outbox_max, config.outbox_bytes_max.bytes())));
    let serving = tonic::transport::Server::builder()
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .http2_keepalive_interval(Some(config.ttl.0))
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, over.clone().cancelled_owned());
    tokio::select! {
        biased;
        served = serving => Ok(served?),
        () = async { over.cancelled().await; tokio::time::sleep(GOODBYE).await } => Ok(()),
    }
}

/// A node has one session on its connection; a reconnect may overlap the old one.
const STREAMS_PER_CONNECTION_MAX: u32 = 4;
