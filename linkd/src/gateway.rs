//! One linkd in a process: its listeners, its worker threads and its place in the directory.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::NodeId;
use net::strangers::Strangers;
use net::{NetIo, Security, ServerTls, Tcp};
use node::config::BadSetting;
use node::directory::JoinError;
use node::{Directory, Home, Service};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wire::code::Code;

use crate::admission::Door;
use crate::config::{Config, ProxyProtocol};
use crate::counters::Totals;
use crate::crew::{Crew, Ends, hire};
use crate::router::{Found, Who};
use crate::worker::{Letter, Shared, Transport};
use crate::{acceptor, auth, groups, meters};

/// The directory service that every linkd offers.
pub const SERVICE: &str = "linkd";
/// How long an answer of a worker may take; a worker that is silent longer is stuck.
const ANSWER: Duration = Duration::from_secs(2);

/// What a linkd is told by its process.
#[derive(Debug, Clone)]
pub struct Env {
    pub cluster: String,
    pub node: NodeId,
    pub directory: Directory,
    /// How this linkd and its providers prove to each other who they are.
    pub security: Security,
    /// What players see; `None` is a port in clear.
    pub tls: Option<ServerTls>,
    /// Keys of tickets beside those of `linkd.ticket.keys`, for keys that are in no file.
    pub ticket_keys: Vec<wire::ticket::Key>,
}

impl Env {
    /// Without certificates: for one machine.
    pub fn insecure(cluster: &str, node: NodeId, directory: Directory) -> Self {
        let (cluster, security) = (cluster.to_owned(), Security::Insecure);
        Self { cluster, node, directory, security, tls: None, ticket_keys: Vec::new() }
    }
}

/// Why a linkd did not start. Nothing was opened that stays open.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Setting(#[from] BadSetting),
    #[error("linkd.{key}: {error}")]
    Listen { key: &'static str, error: io::Error },
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("a worker thread could not be started: {0}")]
    Thread(io::Error),
}

/// A running linkd.
pub struct Linkd<N: NetIo = Tcp> {
    pub client_addr: SocketAddr,
    /// `None`: no WebSocket port.
    pub ws_addr: Option<SocketAddr>,
    pub provider_addr: SocketAddr,
    pub(crate) crew: Arc<Crew<N>>,
    pub(crate) door: Door,
    pub(crate) directory: Directory,
    pub(crate) node: NodeId,
    accepting: Mutex<Vec<JoinHandle<()>>>,
    watching: Vec<JoinHandle<()>>,
    ends: Mutex<Ends>,
    pub(crate) shared: Shared,
}

/// The settings by themselves, and beside how this node proves who it is.
fn judge(config: &Config, security: &Security) -> Result<(), BadSetting> {
    config.check()?;
    if !security.may_listen(config.provider_listen) {
        let why = "beyond loopback providers must prove who they are; give this node certificates";
        return Err(BadSetting::new("linkd", "provider_listen", why));
    }
    if let Some(listen) = config.clear_beyond_loopback() {
        tracing::warn!(%listen, "linkd.insecure_client: players send in clear, tickets included");
    }
    Ok(())
}

/// A port that listens.
struct Open<N: NetIo> {
    listener: N::Listener,
    addr: SocketAddr,
}

impl<N: NetIo> Open<N> {
    /// `key` is the setting that says `addr`.
    async fn at(net: &N, key: &'static str, addr: SocketAddr) -> Result<Self, StartError> {
        let listen = async {
            let listener = net.bind(addr).await?;
            let addr = net.local_addr(&listener)?;
            Ok(Self { listener, addr })
        };
        listen.await.map_err(|error| StartError::Listen { key, error })
    }
}

struct Ports<N: NetIo> {
    clients: Open<N>,
    websockets: Option<Open<N>>,
    providers: Open<N>,
}

async fn open<N: NetIo>(net: &N, config: &Config) -> Result<Ports<N>, StartError> {
    let clients = Open::at(net, "listen", config.listen).await?;
    let websockets = match config.ws_listen.addr() {
        Some(addr) => Some(Open::at(net, "ws_listen", addr).await?),
        None => None,
    };
    let providers = Open::at(net, "provider_listen", config.provider_listen).await?;
    Ok(Ports { clients, websockets, providers })
}

/// Starts a linkd: judges the settings, waits for the epoch, opens the ports, starts the workers and registers.
pub async fn start(config: &Config, env: Env) -> Result<Linkd, StartError> {
    begin(Tcp, Home::Threads, config, env).await
}

/// Starts on the caller's current-thread runtime, inside its `LocalSet`, and over a network of the caller's: a simulated
/// one, in which a linkd runs the same way each time. Starts no thread.
pub async fn start_over<N: NetIo>(net: N, config: &Config, env: Env) -> Result<Linkd<N>, StartError> {
    begin(net, Home::Here, config, env).await
}

async fn begin<N: NetIo>(net: N, home: Home, config: &Config, env: Env) -> Result<Linkd<N>, StartError> {
    judge(config, &env.security)?;
    let gate = config.gate(&env)?;
    let epoch = env.directory.epoch().await?;
    let Ports { clients, websockets, providers } = open(&net, config).await?;
    let (client_addr, provider_addr) = (clients.addr, providers.addr);
    let ws_addr = websockets.as_ref().map(|port| port.addr);

    let shared = Shared::new(config.worker_count(), gate);
    let (crew, ends) = hire(&net, home, config, &env, &shared)?;
    let crew = Arc::new(crew);
    let door = Door::new(config.caps());
    let greeting = acceptor::Greeting {
        cluster: env.cluster,
        node: env.node.clone(),
        directory: env.directory.clone(),
        security: env.security,
        strangers: Strangers::new(config.strangers_max, config.strangers_per_address_max),
    };
    let tls = env.tls.is_some();
    let let_in = |Open { listener, .. }: Open<N>, transport| {
        let port = port(config, tls, transport);
        tokio::spawn(acceptor::clients(net.clone(), listener, port, door.clone(), crew.clone()))
    };
    let mut accepting = vec![
        let_in(clients, Transport::Tcp),
        tokio::spawn(acceptor::providers(net.clone(), providers.listener, greeting, crew.clone())),
    ];
    accepting.extend(websockets.map(|port| let_in(port, Transport::WebSocket)));
    let mut watching = vec![
        tokio::spawn(meters::keep(crew.clone(), door.clone())),
        tokio::spawn(groups::watch(env.directory.clone(), config.module_prefixes.clone(), shared.clone())),
    ];
    if shared.gate.has_keys() {
        watching.push(tokio::spawn(auth::keep_keys(shared.gate.clone(), config.keys_reload.0)));
    }
    env.directory.register(vec![Service {
        name: SERVICE.into(),
        version: 0,
        address: env.directory.reachable(provider_addr),
        region: config.region.clone(),
        extra: addresses(&env.directory, crew.workers.len(), client_addr, ws_addr),
    }]);
    tracing::info!(node = %env.node, %epoch, %client_addr, %provider_addr, workers = crew.workers.len(), "linkd runs");
    let (directory, node) = (env.directory, env.node);
    let (accepting, ends) = (Mutex::new(accepting), Mutex::new(ends));
    Ok(Linkd {
        client_addr,
        ws_addr,
        provider_addr,
        crew,
        door,
        directory,
        node,
        accepting,
        watching,
        ends,
        shared,
    })
}

/// What the directory says of a linkd beside where providers reach it.
fn addresses(
    directory: &Directory,
    workers: usize,
    client: SocketAddr,
    ws: Option<SocketAddr>,
) -> BTreeMap<String, String> {
    let client = directory.reachable(client);
    let mut extra = BTreeMap::from([("workers".into(), workers.to_string()), ("client".into(), client)]);
    extra.extend(ws.map(|addr| ("ws".into(), directory.reachable(addr))));
    extra
}

fn port(config: &Config, tls: bool, transport: Transport) -> acceptor::Port {
    let behind = config.proxy_protocol == ProxyProtocol::Required;
    let balancers = behind.then(|| config.proxy_from.clone().into());
    acceptor::Port { transport, balancers, tls }
}

impl<N: NetIo> Linkd<N> {
    /// Closes the client port: nobody new is let in, those inside stay.
    pub fn close_port(&self) {
        for task in self.accepting.lock().drain(..) {
            task.abort();
        }
    }

    /// Ends the sessions of an account, or one session. Answers how many there were.
    pub async fn kick(&self, who: Who, code: &'static Code, text: &str) -> usize {
        let mut sum = 0;
        for worker in &self.crew.workers {
            let (kicked, answer) = oneshot::channel();
            let letter = Letter::Kick { who: who.clone(), code, text: text.into(), kicked };
            if worker.mailbox.post(letter).is_ok() {
                sum += tokio::time::timeout(ANSWER, answer).await.ok().and_then(Result::ok).unwrap_or(0);
            }
        }
        sum
    }

    /// The sessions that are meant, wherever they are.
    pub async fn lookup(&self, who: Who) -> Vec<Found> {
        let mut all = Vec::new();
        for worker in &self.crew.workers {
            let (found, answer) = oneshot::channel();
            if worker.mailbox.post(Letter::Lookup { who: who.clone(), found }).is_ok() {
                all.extend(
                    tokio::time::timeout(ANSWER, answer).await.ok().and_then(Result::ok).unwrap_or_default(),
                );
            }
        }
        all
    }

    /// Client connections now.
    pub fn connections(&self) -> usize {
        self.door.connections()
    }

    pub fn totals(&self) -> Totals {
        self.crew.totals()
    }

    /// Closes the ports and every session with SHUTTING_DOWN, waits until their last words are written, and ends the
    /// workers. The directory keeps this node until its process leaves.
    pub async fn stop(&self) {
        self.close_port();
        self.watching.iter().for_each(JoinHandle::abort);
        let mut stopped = Vec::new();
        for worker in &self.crew.workers {
            let (done, wait) = oneshot::channel();
            if worker.mailbox.post(Letter::Stop(done)).is_ok() {
                stopped.push(wait);
            }
        }
        for wait in stopped {
            // A worker that ended already has dropped its sender.
            let _ = wait.await;
        }
        let ends: Ends = self.ends.lock().drain(..).collect();
        for end in ends {
            if end.await.is_err() {
                tracing::error!(node = %self.node, "a worker ended by a panic");
            }
        }
    }
}
