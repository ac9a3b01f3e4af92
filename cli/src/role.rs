//! One role as a process of its own: configuration, logs, signals, the ops port, the service, and an orderly end.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use base::NodeId;
use linkd::StartError;
use net::hello::Role;
use net::{Security, Tcp};
use node::config::NodeConfig;
use node::ops::{self, Late, Ops, Readiness};
use node::tls::Proven;
use node::{Clock, Directory, Join, Shutdown, descriptors, signal, telemetry};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Failed;
use crate::config::{Given, default_id};

/// The ops port of a linkd that names none.
const LINKD_OPS_PORT: u16 = 7702;

/// Runs the directory until it is told to stop.
pub async fn service_manager(given: &Given) -> Result<(), Failed> {
    let config = given.load()?.config;
    begin(&config.node)?;
    let node = node_id(&config.node, "service-manager-1")?;
    let proven = secure(&config.node, Role::Directory, &node)?;
    let listener = listen("service_manager.listen", config.service_manager.listen)?;
    let ops = listen("node.ops", config.node.ops_or(service_manager::config::OPS_PORT))?;
    let metrics = telemetry::metrics().context("metrics")?;
    let mut parts =
        service_manager::server::Parts::new(&config.node, Some(ops), Some(metrics)).context("starting")?;
    parts.security = proven.security.clone();
    let _keeping = proven.keep(parts.readiness.clone());
    signal::take_over(parts.shutdown.clone()).context("signals")?;
    println!("service-manager ready on {}", listener.local_addr().context("the directory's port")?);
    let cancel = CancellationToken::new();
    service_manager::run(&config.service_manager, listener, parts, cancel)
        .await
        .context("the directory failed")?;
    Ok(())
}

/// Runs a gateway until it is told to stop.
pub async fn linkd(given: &Given) -> Result<(), Failed> {
    let config = given.load()?.config;
    begin(&config.node)?;
    let node = node_id(&config.node, "linkd-1")?;
    let proven = secure(&config.node, Role::Linkd, &node)?;
    let players = config.linkd.tls.load().map_err(|bad| Failed::Usage(bad.to_string()))?;
    let (clock, readiness) = (Clock::start(), Readiness::new(&["epoch"]));
    readiness.unmet("epoch", "the directory has not let this node in yet");
    let shutdown = Shutdown::new(config.node.budgets(), clock).context("node.grace")?;
    signal::take_over(shutdown.clone()).context("signals")?;
    take_descriptors("linkd.connections_max", config.linkd.connections_max, &readiness);
    let ops_listener = listen("node.ops", config.node.ops_or(LINKD_OPS_PORT))?;
    let ops_address = ops_listener.local_addr().context("the ops port")?.to_string();
    let cancel = CancellationToken::new();
    let security = proven.security.clone();
    let directory = join(&config.node, &node, Role::Linkd, ops_address, security.clone(), cancel.clone());

    let env = linkd::Env {
        security,
        tls: players.as_ref().map(|players| players.tls.clone()),
        ..linkd::Env::insecure(&config.node.cluster, node.clone(), directory.clone())
    };
    let _keeping = (proven.keep(readiness.clone()), players.map(|players| players.keep(readiness.clone())));
    let metrics = Some(telemetry::metrics().context("metrics")?);
    let ops = Ops { shutdown: shutdown.clone(), readiness: readiness.clone(), metrics };
    let late = Arc::new(Late::new(node, Role::Linkd, shutdown.clone()));
    let serving = tokio::spawn(ops::serve_late(ops_listener, ops, late.clone(), cancel.clone()));
    let started = tokio::select! {
        biased;
        started = linkd::start(&config.linkd, env) => started,
        () = shutdown.stopping().cancelled_owned() => return Ok(()),
    };
    let linkd = Arc::new(started.map_err(not_started)?);
    readiness.met("epoch");
    late.serve(linkd::Operator {
        linkd: linkd.clone(),
        directory: directory.clone(),
        shutdown: shutdown.clone(),
    });
    let outlived = Outlived::watch(&directory, &shutdown);
    let ws = linkd.ws_addr.map_or(String::new(), |addr| format!(", WebSocket on {addr}"));
    println!("linkd ready, clients on {}{ws}, providers on {}", linkd.client_addr, linkd.provider_addr);
    let close = || async { linkd.close_port() };
    let save = || async { Ok(()) };
    if let Err(error) = shutdown.run(close, save).await {
        tracing::warn!(%error, "the stop was not clean");
    }
    linkd.stop().await;
    directory.leave().await;
    cancel.cancel();
    // The ops port ends last, so that the stop can be watched.
    let _ = serving.await;
    outlived.end()
}

/// Runs the arbiter of records until it is told to stop.
pub async fn global_cache(given: &Given) -> Result<(), Failed> {
    let config = given.load()?.config;
    begin(&config.node)?;
    let node = node_id(&config.node, default_id(Role::Arbiter))?;
    let proven = secure(&config.node, Role::Arbiter, &node)?;
    let (clock, readiness) = (Clock::start(), Readiness::new(&["epoch"]));
    readiness.unmet("epoch", "the directory has not let this node in yet");
    let shutdown = Shutdown::new(config.node.budgets(), clock).context("node.grace")?;
    signal::take_over(shutdown.clone()).context("signals")?;
    take_descriptors("global_cache.sessions_max", config.global_cache.sessions_max, &readiness);
    let ops_listener = listen("node.ops", config.node.ops_or(global_cache::config::OPS_PORT))?;
    let ops_address = ops_listener.local_addr().context("the ops port")?.to_string();
    let cancel = CancellationToken::new();
    let security = proven.security.clone();
    let directory = join(&config.node, &node, Role::Arbiter, ops_address, security.clone(), cancel.clone());
    let _keeping = proven.keep(readiness.clone());
    let metrics = Some(telemetry::metrics().context("metrics")?);
    let ops = Ops { shutdown: shutdown.clone(), readiness: readiness.clone(), metrics };
    let late = Arc::new(Late::new(node.clone(), Role::Arbiter, shutdown.clone()));
    let serving = tokio::spawn(ops::serve_late(ops_listener, ops, late.clone(), cancel.clone()));
    let epoch = tokio::select! {
        biased;
        epoch = directory.epoch() => epoch.context("starting")?,
        () = shutdown.stopping().cancelled_owned() => return Ok(()),
    };
    let env = global_cache::Env { cluster: config.node.cluster.clone(), node: node.clone(), epoch, security };
    let started = global_cache::start(&config.global_cache, env).await;
    let server = Arc::new(started.map_err(arbiter_not_started)?);
    server.announce(&directory);
    readiness.met("epoch");
    let (of_server, of_directory) = (server.clone(), directory.clone());
    late.serve(global_cache::Operator {
        node,
        server: of_server,
        directory: of_directory,
        shutdown: shutdown.clone(),
    });
    let outlived = Outlived::watch(&directory, &shutdown);
    println!("global-cache ready, providers on {}{}", server.addr, grace(&server));
    let (close, save) = (|| async {}, || async { Ok(()) });
    if let Err(error) = shutdown.run(close, save).await {
        tracing::warn!(%error, "the stop was not clean");
    }
    server.stop().await;
    directory.leave().await;
    cancel.cancel();
    let _ = serving.await;
    outlived.end()
}

/// Says until when an arbiter that has just started grants nothing.
fn grace(server: &global_cache::Server) -> String {
    match server.opens_after().as_millis() {
        0 => String::new(),
        ms => format!(", grants in {} s", ms.div_ceil(1_000)),
    }
}

/// Stops a node of which another start was admitted.
struct Outlived {
    outlived: CancellationToken,
    watching: JoinHandle<()>,
}

impl Outlived {
    fn watch(directory: &Directory, shutdown: &Shutdown) -> Self {
        let outlived = CancellationToken::new();
        let watching = tokio::spawn({
            let (directory, shutdown, outlived) = (directory.clone(), shutdown.clone(), outlived.clone());
            async move {
                directory.outlived().await;
                outlived.cancel();
                tracing::error!(
                    "another start of this node was admitted since; this one stops, start it again"
                );
                shutdown.stop();
            }
        });
        Self { outlived, watching }
    }

    /// How the process ends.
    fn end(self) -> Result<(), Failed> {
        self.watching.abort();
        match self.outlived.is_cancelled() {
            true => Err(Failed::Running(anyhow::anyhow!(
                "another start of this node was admitted; this one has ended"
            ))),
            false => Ok(()),
        }
    }
}

/// Takes all files that this process may have, and says when they are too few.
fn take_descriptors(key: &str, connections_max: usize, readiness: &Readiness) {
    if let Some(few) = descriptors::too_few(descriptors::raise(), key, connections_max) {
        tracing::warn!("{few}");
        readiness.warn("descriptors", few);
    }
}

/// Opens the port that a setting names.
fn listen(key: &str, addr: SocketAddr) -> Result<TcpListener, Failed> {
    Tcp::listen(addr).map_err(|error| Failed::Usage(format!("{key}: {error}")))
}

/// A setting is the operator's to mend; whatever else it was may pass.
fn not_started(error: StartError) -> Failed {
    match error {
        StartError::Setting(_) | StartError::Listen { .. } => Failed::Usage(error.to_string()),
        StartError::Join(_) | StartError::Thread(_) => {
            Failed::Running(anyhow::Error::new(error).context("starting"))
        }
    }
}

/// As [`not_started`].
fn arbiter_not_started(error: global_cache::StartError) -> Failed {
    match error {
        global_cache::StartError::Config(_) | global_cache::StartError::Listen(_) => {
            Failed::Usage(error.to_string())
        }
        global_cache::StartError::Thread(_) => Failed::Running(anyhow::Error::new(error).context("starting")),
    }
}

/// Logs as configured.
fn begin(node: &NodeConfig) -> Result<(), Failed> {
    telemetry::logs(&node.log).map_err(|error| Failed::Usage(error.to_string()))?;
    node::clock::warn_if_behind();
    Ok(())
}

fn node_id(node: &NodeConfig, default: &str) -> Result<NodeId, Failed> {
    let id = if node.id.is_empty() { default } else { &node.id };
    NodeId::new(id).map_err(|error| Failed::Usage(format!("node.id: {error}")))
}

/// How the node proves who it is, as configured.
fn secure(config: &NodeConfig, role: Role, node: &NodeId) -> Result<Proven, Failed> {
    node::tls::secure(config, role, node).map_err(|bad| Failed::Usage(bad.to_string()))
}

/// Joins the directory as configured.
pub fn join(
    config: &NodeConfig,
    node: &NodeId,
    role: Role,
    ops: String,
    security: Security,
    cancel: CancellationToken,
) -> Directory {
    let join = Join {
        cluster: config.cluster.clone(),
        node: node.clone(),
        role: role.as_str().into(),
        host: config.host.clone(),
        directory: config.directory.clone(),
        ops_address: ops,
        reconnect: config.backoff(node),
        security,
    };
    node::directory::join(join, cancel)
}
