//! One worker: a thread with its own runtime, sessions and router. Its tasks read and decode without awaiting in
//! between, so they share the worker's state through a `RefCell`.

mod client;
mod entry;
mod perform;
mod provider;
mod state;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use base::{Generation, ModuleId};
use net::hello::Ours;
use net::strangers::Place;
use net::ws::Origins;
use net::{NetIo, Security, ServerTls};
use node::Directory;
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;
use wire::code::Code;

use crate::admission::{Admission, Turned};
use crate::auth::Gate;
use crate::counters::Counters;
use crate::mailbox::Mailbox;
use crate::router::{Bounds, Event, Found, Rules, Summary, Who};

use state::Worker;

/// How often deadlines are looked at.
const TICK: Duration = Duration::from_millis(250);

/// What a worker is told from other threads.
pub enum Letter<N: NetIo> {
    Client {
        stream: N::Detached,
        addr: SocketAddr,
        admission: Admission,
        transport: Transport,
    },
    Provider {
        stream: N::Detached,
        guest: Box<Guest>,
    },
    Kick {
        who: Who,
        code: &'static Code,
        text: String,
        kicked: oneshot::Sender<usize>,
    },
    Lookup {
        who: Who,
        found: oneshot::Sender<Vec<Found>>,
    },
    /// Close every session, answer when the last one is gone, and end.
    Stop(oneshot::Sender<()>),
}

/// A connection to the provider port that has named a worker and not yet said who it is.
#[derive(Debug)]
pub struct Guest {
    pub addr: SocketAddr,
    /// The worker that its preface names.
    pub wanted: u32,
    /// How many workers there are.
    pub workers: usize,
    pub conn: Generation,
    pub ours: Ours,
    pub security: Security,
    /// Hears of the epoch under which it comes.
    pub directory: Directory,
    /// Its place among those who have not said who they are.
    pub place: Place,
}

/// How a client's bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    Tcp,
    WebSocket,
}

impl Transport {
    pub const ALL: [Transport; 2] = [Transport::Tcp, Transport::WebSocket];

    /// The counter's label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::WebSocket => "websocket",
        }
    }
}

/// What stands between a connection and its session, in this order: PROXY line, TLS, WebSocket.
#[derive(Debug, Clone)]
pub struct Layers {
    /// For all of them together.
    pub handshake_timeout: Duration,
    /// Each connection begins with a balancer's PROXY line.
    pub proxy: bool,
    pub origins: Origins,
    pub message_bytes_max: u64,
}

/// What a worker needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    pub rules: Rules,
    pub layers: Layers,
    /// Of each provider.
    pub bounds: Bounds,
    pub frame_bytes_max: u32,
    pub out_bytes_max: usize,
    pub frame_timeout: Duration,
    /// A client that takes nothing for this long while something waits for it is closed.
    pub write_timeout: Duration,
    /// Whether linkd speaks first.
    pub greet: bool,
    /// What players see; `None` is a port in clear.
    pub tls: Option<ServerTls>,
}

/// What all workers of a linkd share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// What each worker's router looked like at its last tick, by worker.
    pub summaries: Arc<[ArcSwap<Summary>]>,
    /// The modules the directory knows, for telling "not now" from "never"; empty while it may not know all.
    pub registered: Arc<ArcSwapOption<BTreeSet<ModuleId>>>,
    /// Who lets players in.
    pub gate: Arc<Gate>,
}

impl Shared {
    pub fn new(workers: usize, gate: Gate) -> Self {
        let summaries = (0..workers).map(|_| ArcSwap::default()).collect();
        Self { summaries, registered: Arc::default(), gate: Arc::new(gate) }
    }
}

/// Runs a worker until it is told to stop. Must run in a `LocalSet` on a current-thread runtime.
pub async fn run<N: NetIo>(
    io: N,
    settings: Settings,
    shared: Shared,
    counters: Arc<Counters>,
    mailbox: Mailbox<Letter<N>>,
) {
    let worker = Worker::new(settings, counters, shared.gate.clone());
    receive(io, worker, shared, mailbox).await;
}

/// The worker's loop.
async fn receive<N: NetIo>(io: N, worker: Rc<Worker>, shared: Shared, mailbox: Mailbox<Letter<N>>) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let fan = worker.with(|state| state.fan.clone());
    let mut registered: Option<Arc<BTreeSet<ModuleId>>> = None;
    let mut stopping = Vec::new();
    loop {
        tokio::select! {
            biased;
            letter = mailbox.next() => match letter {
                Letter::Client { stream, addr, admission, transport } => match io.attach(stream) {
                    Ok(stream) => entry::enter(&worker, stream, addr, admission, transport),
                    Err(error) => {
                        tracing::warn!(%addr, %error, "a client connection could not be taken over");
                        admission.door().turned_away(Turned::Handover);
                    }
                },
                Letter::Provider { stream, guest } => match io.attach(stream) {
                    Ok(stream) => provider::open(&worker, stream, *guest),
                    Err(error) => tracing::warn!(addr = %guest.addr, %error, "a connection could not be taken over"),
                },
                Letter::Kick { who, code, text, kicked } => {
                    let before = worker.sessions();
                    worker.step(Event::Kick { who, code, text });
                    // Nobody waiting for the count is no reason not to kick.
                    let _ = kicked.send(before - worker.sessions());
                }
                Letter::Lookup { who, found } => {
                    // Whoever asked may not wait any more.
                    let _ = found.send(worker.lookup(&who));
                }
                Letter::Stop(done) => {
                    worker.closing.cancel();
                    worker.step(Event::Stop);
                    stopping.push(done);
                }
            },
            () = fan.notified() => {
                worker.step(Event::FanOut);
                // Everybody else has a turn between two of a broadcast.
                tokio::task::yield_now().await;
            }
            _ = tick.tick() => {
                let now = shared.registered.load_full();
                if now.as_ref().map(Arc::as_ptr) != registered.as_ref().map(Arc::as_ptr) {
                    registered = now.clone();
                    worker.step(Event::Registered { modules: now });
                }
                worker.step(Event::Tick);
                if let Some(summary) = shared.summaries.get(worker.index()) {
                    summary.store(Arc::new(worker.summary()));
                }
            }
        }
        if !stopping.is_empty() && worker.is_empty() {
            worker.part();
            mailbox.close();
            for done in stopping {
                // Who asked may have given up.
                let _ = done.send(());
            }
            return;
        }
    }
}
