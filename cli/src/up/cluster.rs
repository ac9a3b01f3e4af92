//! The parts of `up`, each the same code that runs as a process of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use base::NodeId;
use linkd::config::Listen;
use linkstead::{Arbiter, Env, Linkds, RecordsConfig, Running};
use net::hello::Role;
use net::{Security, Tcp};
use node::admin::Operate;
use node::config::{NodeConfig, Reconnect, Time};
use node::lifecycle::Budgets;
use node::ops::{self, Ops, Readiness};
use node::{Clock, Directory, Shutdown, telemetry};
use service_manager::ServiceManagerConfig;
use tables::Backend;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::ticket::Signer;

use super::books::Books;
use super::certs::Certs;
use super::ports::Ports;
use super::{AuthWay, Options, READY, Say};
use crate::Failed;
use crate::config::default_id;
use crate::game::Game;
use crate::role;
use crate::ticket::{self, Booth};

/// How long a provider's requests in flight may take to end.
const DRAIN: Budgets = Budgets {
    propagation: base::Span::ZERO,
    close: base::Span::secs(1),
    drain: base::Span::secs(5),
    save: base::Span::secs(1),
    grace: base::Span::secs(10),
};

/// Everything that runs.
pub struct Cluster {
    config: NodeConfig,
    certs: Certs,
    ports: Ports,
    game: Game,
    /// What the game's providers share, if it keeps anything.
    storage: Option<Arc<dyn Backend>>,
    /// Signs tickets, when players need some.
    signer: Option<Signer>,
    directory: Part,
    directory_over: JoinHandle<Result<(), service_manager::ServeError>>,
    arbiter: Option<(Part, Arc<global_cache::Server>)>,
    linkds: Vec<(Part, Arc<linkd::Linkd>)>,
    providers: Vec<(Part, Running)>,
}

/// A node of the cluster as such.
struct Part {
    node: NodeId,
    /// `None`: the directory itself.
    directory: Option<Directory>,
    ops_addr: SocketAddr,
    /// How it proves who it is.
    security: Security,
    readiness: Readiness,
    /// Ends what serves its ops port and its membership.
    cancel: CancellationToken,
}

impl Cluster {
    /// Service manager, then the arbiter, then linkds, then providers; each is ready before the next begins.
    pub async fn start(
        options: &Options,
        books: Option<&Books>,
        ports: Ports,
        say: Say,
    ) -> Result<Self, Failed> {
        let fast = Reconnect { first: Time::millis(10), max: Time::millis(200) };
        let mut config = NodeConfig { reconnect: fast, ..NodeConfig::default() };
        let certs = Certs::new(options, &config)?;
        let (directory, directory_over) = start_directory(&mut config, &certs, ports, say)?;
        let (linkds, providers) = (Vec::new(), Vec::new());
        let signer = match options.auth {
            AuthWay::Open => None,
            AuthWay::Ticket => Some(ticket::new_signer(1)?),
        };
        let (game, storage) = (options.game, books.map(Books::storage));
        let mut cluster = Self {
            config,
            certs,
            ports,
            game,
            storage,
            signer,
            directory,
            directory_over,
            arbiter: None,
            linkds,
            providers,
        };
        cluster.start_arbiter(say).await?;
        for instance in 0..options.linkds {
            cluster.start_linkd(instance, say).await?;
        }
        for instance in 0..options.providers {
            cluster.start_provider(instance, say).await?;
        }
        Ok(cluster)
    }

    /// A node that has joined, and the listener of its ops port.
    fn part(
        &self,
        name: &str,
        role: Role,
        ops: SocketAddr,
    ) -> Result<(Part, tokio::net::TcpListener), Failed> {
        let node = NodeId::new(name).map_err(|error| Failed::Running(error.into()))?;
        let (listener, ops_addr) = listen(ops)?;
        let cancel = CancellationToken::new();
        let proven = self.certs.prove(&self.config, role, &node)?;
        let (security, readiness) = (proven.security.clone(), Readiness::new(&[]));
        // It ends with the process, which is when the cluster ends.
        drop(proven.keep(readiness.clone()));
        let ops = ops_addr.to_string();
        let directory = role::join(&self.config, &node, role, ops, security.clone(), cancel.clone());
        Ok((Part { node, directory: Some(directory), ops_addr, security, readiness, cancel }, listener))
    }

    async fn start_arbiter(&mut self, say: Say) -> Result<(), Failed> {
        let name = default_id(Role::Arbiter);
        let (part, listener) = self.part(name, Role::Arbiter, self.ports.arbiter_ops())?;
        // Nobody holds anything from before.
        let config = global_cache::Config {
            listen: self.ports.arbiter(),
            grace: Some(Time::millis(0)),
            ..global_cache::Config::default()
        };
        let directory = part.directory()?;
        let epoch = within(name, directory.epoch()).await?.context("joining")?;
        let (cluster, node, security) =
            (self.config.cluster.clone(), part.node.clone(), part.security.clone());
        let env = global_cache::Env { cluster, node: node.clone(), epoch, security };
        let started = within(name, global_cache::start(&config, env)).await?;
        let server = Arc::new(started.map_err(|error| Failed::Usage(error.to_string()))?);
        server.announce(&directory);
        let shutdown = Shutdown::new(Budgets::NONE, Clock::start()).context("budgets")?;
        let (stopping, leaving) = (server.clone(), directory.clone());
        let stop = || async move { stopping.stop().await };
        tokio::spawn(end_when_told(shutdown.clone(), leaving, || {}, stop));
        let operator =
            global_cache::Operator { node, server: server.clone(), directory, shutdown: shutdown.clone() };
        part.serve_ops(listener, shutdown, operator)?;
        say.line(&format!("{name:<17} ready   providers {}  ops {}", server.addr, part.ops_addr));
        self.arbiter = Some((part, server));
        Ok(())
    }

    async fn start_linkd(&mut self, instance: u16, say: Say) -> Result<(), Failed> {
        let name = format!("linkd-{}", instance + 1);
        let (part, listener) = self.part(&name, Role::Linkd, self.ports.linkd_ops(instance))?;
        let config = linkd::Config {
            listen: self.ports.linkd_clients(instance),
            ws_listen: Listen::At(self.ports.linkd_websockets(instance)),
            provider_listen: self.ports.linkd_providers(instance),
            per_address_max: linkd::Config::default().connections_max,
            auth: self.signer.as_ref().map_or(linkd::config::Auth::Open, |_| linkd::config::Auth::Ticket),
            ..linkd::Config::default()
        };
        let directory = part.directory()?;
        let env = linkd::Env {
            security: part.security.clone(),
            ticket_keys: self.signer.iter().map(Signer::public).collect(),
            ..linkd::Env::insecure(&self.config.cluster, part.node.clone(), directory.clone())
        };
        let started = within(&name, linkd::start(&config, env)).await?;
        let linkd = Arc::new(started.map_err(|error| Failed::Usage(error.to_string()))?);
        let shutdown = Shutdown::new(Budgets::NONE, Clock::start()).context("budgets")?;
        let (closing, stopping) = (linkd.clone(), linkd.clone());
        let stop = || async move { stopping.stop().await };
        tokio::spawn(end_when_told(shutdown.clone(), directory.clone(), move || closing.close_port(), stop));
        let operator = linkd::Operator { linkd: linkd.clone(), directory, shutdown: shutdown.clone() };
        part.serve_ops(listener, shutdown, operator)?;
        say.line(&format!(
            "{name:<17} ready   clients {}{}  providers {}  ops {}",
            linkd.client_addr,
            linkd.ws_addr.map_or(String::new(), |addr| format!("  ws {addr}")),
            linkd.provider_addr,
            part.ops_addr
        ));
        self.linkds.push((part, linkd));
        Ok(())
    }

    async fn start_provider(&mut self, instance: u16, say: Say) -> Result<(), Failed> {
        let name = format!("game-{}", instance + 1);
        let (part, listener) = self.part(&name, Role::Provider, self.ports.provider_ops(instance))?;
        let directory = part.directory()?;
        let mut env = Env::new(&self.config.cluster, part.node.clone(), Linkds::Directory(directory.clone()));
        env.budgets = DRAIN;
        env.security = part.security.clone();
        env.storage.clone_from(&self.storage);
        let arbiter = if env.storage.is_some() { Arbiter::Directory } else { Arbiter::Embedded };
        let config = linkstead::Config {
            records: RecordsConfig { arbiter, ..RecordsConfig::default() },
            server_id: u32::from(instance) + 1,
            // On one machine nobody needs to be spared a rush of logins, and an account always finds its own provider.
            max_online_new: u32::MAX,
            ..linkstead::Config::default()
        };
        let starting = self.game.provider().start(config, env, part.cancel.clone());
        let running = within(&name, starting).await?.context("starting a provider")?;
        within(&name, running.ready()).await?;
        let shutdown = running.shutdown().clone();
        let operator = linkstead::Operator { status: running.reader(), directory };
        part.serve_ops(listener, shutdown, operator)?;
        say.line(&format!("{name:<17} ready   modules of the {}  ops {}", self.game, part.ops_addr));
        self.providers.push((part, running));
        Ok(())
    }

    pub fn client_addrs(&self) -> Vec<String> {
        self.linkds.iter().map(|(_, linkd)| linkd.client_addr.to_string()).collect()
    }

    /// Where browsers connect.
    pub fn ws_addrs(&self) -> Vec<SocketAddr> {
        self.linkds.iter().filter_map(|(_, linkd)| linkd.ws_addr).collect()
    }

    /// What tickets are made for.
    pub fn name(&self) -> &str {
        &self.config.cluster
    }

    /// Where tickets are had, when players need some.
    pub fn booth(&self) -> Option<Booth> {
        let audience = self.name().to_owned();
        self.signer.clone().map(|signer| Booth { signer, audience })
    }

    pub fn ops_addr(&self) -> SocketAddr {
        self.directory.ops_addr
    }

    /// Nobody new comes in; who is inside stays until the providers have ended.
    pub fn close_ports(&self) {
        for (_, linkd) in &self.linkds {
            linkd.close_port();
        }
    }

    /// The reverse of the start: client ports, providers, linkds, the arbiter, and the directory last.
    pub async fn stop(&self, say: Say) {
        self.close_ports();
        for (part, running) in &self.providers {
            if let Err(error) = running.stop().await {
                say.line(&format!("{:<17} stopped {error}", part.node));
            }
            part.leave().await;
            say.line(&format!("{:<17} stopped", part.node));
        }
        // All at once: each waits a moment for its clients to hear why.
        let stopping = |linkd: &Arc<linkd::Linkd>| {
            let linkd = linkd.clone();
            tokio::spawn(async move { linkd.stop().await })
        };
        let stops: Vec<_> = self.linkds.iter().map(|(_, linkd)| stopping(linkd)).collect();
        for ((part, _), stop) in self.linkds.iter().zip(stops) {
            // A stop that panicked has stopped too.
            let _ = stop.await;
            part.leave().await;
            say.line(&format!("{:<17} stopped", part.node));
        }
        if let Some((part, server)) = &self.arbiter {
            server.stop().await;
            part.leave().await;
            say.line(&format!("{:<17} stopped", part.node));
        }
        self.directory.cancel.cancel();
        while !self.directory_over.is_finished() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        say.line(&format!("{:<17} stopped", self.directory.node));
    }
}

impl Part {
    fn directory(&self) -> Result<Directory, Failed> {
        self.directory.clone().context("the directory is no member of itself").map_err(Failed::from)
    }

    fn serve_ops<O: Operate>(
        &self,
        listener: tokio::net::TcpListener,
        shutdown: Shutdown,
        operator: O,
    ) -> Result<(), Failed> {
        let metrics = Some(telemetry::metrics().context("metrics")?);
        let ops = Ops { shutdown, readiness: self.readiness.clone(), metrics };
        // It ends with the part's token; an error of its listener shows as an ops port that is gone.
        tokio::spawn(ops::serve(listener, ops, Arc::new(operator), self.cancel.clone()));
        Ok(())
    }

    async fn leave(&self) {
        if let Some(directory) = &self.directory {
            directory.leave().await;
        }
        self.cancel.cancel();
    }
}

fn listen(addr: SocketAddr) -> Result<(tokio::net::TcpListener, SocketAddr), Failed> {
    let listener =
        Tcp::listen(addr).map_err(|error| Failed::Usage(format!("{error}; is another cluster up?")))?;
    let addr = listener.local_addr().context("a listener's own address")?;
    Ok((listener, addr))
}

async fn within<T>(name: &str, starting: impl Future<Output = T>) -> Result<T, Failed> {
    let late = || Failed::Running(anyhow::anyhow!("{name} was not ready within {} s", READY.as_secs()));
    tokio::time::timeout(READY, starting).await.map_err(|_| late())
}

/// Stops one node of the cluster when an operator says so; the others go on.
async fn end_when_told<F: Future<Output = ()>>(
    shutdown: Shutdown,
    directory: Directory,
    close: impl FnOnce() + Send,
    stop: impl FnOnce() -> F,
) {
    if let Err(error) = shutdown.run(|| async { close() }, || async { Ok(()) }).await {
        tracing::warn!(%error, "the stop was not clean");
    }
    stop().await;
    directory.leave().await;
}

type Serving = JoinHandle<Result<(), service_manager::ServeError>>;

fn start_directory(
    config: &mut NodeConfig,
    certs: &Certs,
    ports: Ports,
    say: Say,
) -> Result<(Part, Serving), Failed> {
    let (listener, addr) = listen(ports.directory())?;
    let (ops_listener, ops_addr) = listen(ports.directory_ops())?;
    config.directory = vec![addr.to_string()];
    config.stop.propagation = Time::millis(0);
    let metrics = telemetry::metrics().context("metrics")?;
    let parts = service_manager::server::Parts::new(config, Some(ops_listener), Some(metrics));
    let mut parts = parts.context("the directory")?;
    let (node, cancel) = (parts.node.clone(), CancellationToken::new());
    let proven = certs.prove(config, Role::Directory, &node)?;
    let (security, readiness) = (proven.security.clone(), parts.readiness.clone());
    parts.security = security.clone();
    drop(proven.keep(readiness.clone()));
    let stop = cancel.clone();
    let settings = ServiceManagerConfig {
        heartbeat: Time::secs(1),
        ttl: Time::secs(3),
        warming: Some(Time::millis(0)),
        ..ServiceManagerConfig::default()
    };
    let over = tokio::spawn(async move { service_manager::run(&settings, listener, parts, stop).await });
    say.line(&format!("{node:<17} ready   {addr}  ops {ops_addr}"));
    Ok((Part { node, directory: None, ops_addr, security, readiness, cancel }, over))
}
