//! The shell of the arbiter: one thread around the core, providers' connections in front. What comes is judged where it was
//! read, and what is said leaves when everything that one read brought is judged.

mod conn;
mod hub;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use base::{Epoch, NodeId};
use net::hello::{Ours, Role};
use net::io::is_transient;
use net::strangers::Strangers;
use net::{NetIo, Security, Tcp};
use node::config::BadSetting;
use node::{Clock, Home};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::arbiter::{Arbiter, Status};
use crate::config::Config;
use hub::Hub;

/// How often leases and waiting requests are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long accepting rests when the system has no room for another connection.
const REST: Duration = Duration::from_millis(50);

/// What an arbiter is told by its process.
#[derive(Debug, Clone)]
pub struct Env {
    pub cluster: String,
    pub node: NodeId,
    /// This start of it, which the directory has given.
    pub epoch: Epoch,
    /// How providers prove who they are.
    pub security: Security,
}

/// Why an arbiter did not start. Nothing was opened that stays open.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{}", .0.iter().map(BadSetting::to_string).collect::<Vec<_>>().join("\n"))]
    Config(Vec<BadSetting>),
    #[error("global_cache.listen: {0}")]
    Listen(io::Error),
    #[error("the arbiter's thread could not be started: {0}")]
    Thread(io::Error),
}

/// A running arbiter.
#[derive(Debug)]
pub struct Server {
    pub addr: SocketAddr,
    status: watch::Receiver<Status>,
    stop: CancellationToken,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

/// Starts an arbiter on a thread of its own.
pub async fn start(config: &Config, env: Env) -> Result<Server, StartError> {
    begin(Tcp, Home::Threads, config, env).await
}

/// Starts on the caller's current-thread runtime, inside its `LocalSet`, and over a network of the caller's.
pub async fn start_over<N: NetIo>(net: N, config: &Config, env: Env) -> Result<Server, StartError> {
    begin(net, Home::Here, config, env).await
}

async fn begin<N: NetIo>(net: N, home: Home, config: &Config, env: Env) -> Result<Server, StartError> {
    config.check().map_err(StartError::Config)?;
    if !env.security.may_listen(config.listen) {
        let why = "beyond loopback providers must prove who they are; give this node certificates";
        return Err(StartError::Config(vec![BadSetting::new("global_cache", "listen", why)]));
    }
    let ((shown, status), stop) = (watch::channel(Status::default()), CancellationToken::new());
    let ((bound, at), (done, ended)) = (oneshot::channel(), oneshot::channel());
    let (stopping, config) = (stop.clone(), config.clone());
    let (node, epoch) = (env.node.clone(), env.epoch);
    let work = move || run(net, config, env, bound, shown, stopping);
    let after = |()| {
        // Nobody listens any more when the server was dropped without a stop.
        let _ = done.send(());
    };
    home.run("arbiter", work, after).map_err(StartError::Thread)?;
    let gone = || io::Error::other("its thread has ended");
    let addr = at.await.unwrap_or_else(|_| Err(gone())).map_err(StartError::Listen)?;
    tracing::info!(%node, %epoch, %addr, "the arbiter runs");
    Ok(Server { addr, status, stop, ended: Mutex::new(Some(ended)) })
}

impl Server {
    /// The core's numbers, at most 50 ms old.
    pub fn status(&self) -> Status {
        *self.status.borrow()
    }

    /// The same, and when they change.
    pub fn statuses(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Says goodbye to every provider and ends. What they hold they reassert at the next start.
    pub async fn stop(&self) {
        self.stop.cancel();
        let ended = self.ended.lock().take();
        if let Some(ended) = ended
            && ended.await.is_err()
        {
            tracing::error!("the arbiter ended by a panic");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn run<N: NetIo>(
    net: N,
    config: Config,
    env: Env,
    bound: oneshot::Sender<io::Result<SocketAddr>>,
    status: watch::Sender<Status>,
    stop: CancellationToken,
) {
    let listen = async {
        let listener = net.bind(config.listen).await?;
        let addr = net.local_addr(&listener)?;
        Ok((listener, addr))
    };
    let (listener, addr) = match listen.await {
        Ok(listening) => listening,
        // Whoever started it hears why.
        Err(error) => return drop(bound.send(Err(error))),
    };
    let clock = Clock::start();
    let arbiter = Arbiter::new(config.settings(env.epoch), clock.now());
    let hub = Rc::new(Hub::new(arbiter, clock, config.terms()));
    let Env { cluster, node, epoch, security } = env;
    let ours = Ours { cluster, node, role: Role::Arbiter, epoch, worker: 0 };
    let strangers = Strangers::new(config.strangers_max, config.strangers_per_address_max);
    let door = conn::Door { ours, security, strangers };
    if bound.send(Ok(addr)).is_err() {
        return;
    }
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            _ = ticks.tick() => {
                hub.tick();
                let now = hub.status();
                status.send_if_modified(|last| std::mem::replace(last, now) != now);
            }
            accepted = net.accept(&listener) => match accepted {
                Ok((stream, addr)) => conn::open(&hub, &door, stream, addr),
                Err(error) => {
                    if !is_transient(&error) {
                        tracing::error!(%error, "the arbiter's port fails; trying on");
                    }
                    tokio::time::sleep(REST).await;
                }
            },
        }
    }
    drop(listener);
    hub.goodbye().await;
}
