//! The shell of the arbiter: one thread around the core, providers' connections in front. What comes is judged where it was
//! read, and what is said leaves when everything that one read brought is judged.

mod ask;
mod conn;
mod hub;
mod meters;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use base::{Epoch, Mono, NodeId, Span};
use net::hello::{Ours, Role};
use net::io::is_transient;
use net::strangers::Strangers;
use net::{NetIo, Security, Tcp};
use node::config::BadSetting;
use node::{Clock, Directory, Home, Service};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::arbiter::{Arbiter, Status};
use crate::config::Config;
pub use ask::{Lock, NoAnswer, Record};
use ask::{QUESTIONS_MAX, Question};
use hub::Hub;
use meters::Meters;

/// The directory service that an arbiter offers.
pub const SERVICE: &str = "arbiter";
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
    pub epoch: Epoch,
    status: watch::Receiver<Status>,
    /// By this clock nothing is granted before then.
    opens: (Clock, Mono),
    questions: mpsc::Sender<Question>,
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
    let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
    let (node, epoch, config) = (env.node.clone(), env.epoch, config.clone());
    let (clock, stopping) = (Clock::start(), stop.clone());
    let parts = Parts { clock, bound, shown, asked, stop: stopping };
    let work = move || run(net, config, env, parts);
    let after = |()| {
        // Nobody listens any more when the server was dropped without a stop.
        let _ = done.send(());
    };
    home.run("arbiter", work, after).map_err(StartError::Thread)?;
    let gone = || io::Error::other("its thread has ended");
    let (addr, opens) = at.await.unwrap_or_else(|_| Err(gone())).map_err(StartError::Listen)?;
    tracing::info!(%node, %epoch, %addr, "the arbiter runs");
    let ended = Mutex::new(Some(ended));
    Ok(Server { addr, epoch, status, opens: (clock, opens), questions, stop, ended })
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

    /// Tells the directory, so that providers find it.
    pub fn announce(&self, directory: &Directory) {
        let address = directory.reachable(self.addr);
        directory.register(vec![Service { name: SERVICE.into(), address, ..Service::default() }]);
    }

    /// How long nothing is granted yet, after a start.
    pub fn opens_after(&self) -> Span {
        let (clock, opens) = &self.opens;
        opens.since(clock.now())
    }

    /// The records that are waited for most, at most [`Lock::COUNT_MAX`].
    pub async fn locks(&self, most: usize) -> Result<Vec<Lock>, NoAnswer> {
        let most = most.min(Lock::COUNT_MAX);
        self.ask(|answer| Question::Locks { most, answer }).await
    }

    /// Who holds the record with this key, and who waits for it.
    pub async fn record(&self, key: Vec<u8>) -> Result<Record, NoAnswer> {
        self.ask(|answer| Question::Record { key, answer }).await
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Result<T, NoAnswer> {
        let (answer, answered) = oneshot::channel();
        self.questions.try_send(question(answer)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NoAnswer::Full,
            mpsc::error::TrySendError::Closed(_) => NoAnswer::Stopping,
        })?;
        answered.await.map_err(|_| NoAnswer::Stopping)
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

/// What the arbiter's thread and its handle have in common.
struct Parts {
    clock: Clock,
    /// Where it listens, and until when it grants nothing.
    bound: oneshot::Sender<io::Result<(SocketAddr, Mono)>>,
    shown: watch::Sender<Status>,
    asked: mpsc::Receiver<Question>,
    stop: CancellationToken,
}

async fn run<N: NetIo>(net: N, config: Config, env: Env, parts: Parts) {
    let Parts { clock, bound, shown, mut asked, stop } = parts;
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
    let arbiter = Arbiter::new(config.settings(env.epoch), clock.now());
    let opens = arbiter.opens();
    let hub = Rc::new(Hub::new(arbiter, clock, config.terms()));
    let Env { cluster, node, epoch, security } = env;
    let ours = Ours { cluster, node, role: Role::Arbiter, epoch, worker: 0 };
    let strangers = Strangers::new(config.strangers_max, config.strangers_per_address_max);
    let door = conn::Door { ours, security, strangers };
    if bound.send(Ok((addr, opens))).is_err() {
        return;
    }
    let mut meters = Meters::default();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            _ = ticks.tick() => {
                hub.tick();
                let now = hub.status();
                if shown.send_if_modified(|last| std::mem::replace(last, now) != now) {
                    meters.carry(now);
                }
            }
            Some(question) = asked.recv() => question.answer(&hub),
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
