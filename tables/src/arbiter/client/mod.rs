//! The way to an arbiter in another process: one connection, dialled again whenever it is lost, and the session over it.
//!
//! A [`Client`] is made before the cache that it serves, since each knows the other: `new`, then the cache, then `start` with
//! what hears. Until then, and whenever there is no session, what is said is dropped and counted.

mod keeper;
mod line;
mod words;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Epoch, Fence, Mono, NodeId, Span};
use net::hello::{Ours, Role};
use net::link::Link;
use net::{NetIo, Security, Tcp};
use node::{Clock, Home};
use parking_lot::{Mutex, RwLock};
use store::StoreId;
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;
use wire::cache::KEY_BYTES_MAX;

use super::{Arbiter, Hear, Word};
use keeper::Keeper;

/// Where the arbiter is.
#[derive(Debug, Clone)]
pub enum Place {
    /// At one of these addresses, tried in turn.
    Listed(Vec<String>),
    /// Where the directory says; `None`: it knows of none yet.
    Watched(watch::Receiver<Option<String>>),
}

/// What a client is told by its process.
#[derive(Debug, Clone)]
pub struct Env {
    pub cluster: String,
    pub node: NodeId,
    /// This start of the node, which the directory has given.
    pub epoch: Epoch,
    /// How node and arbiter prove who they are.
    pub security: Security,
    /// The clock that the cache looks at, too.
    pub clock: Clock,
    /// Storages that only this process can open, by the names of their backends.
    pub storages: Vec<(String, StoreId)>,
    pub place: Place,
}

/// How it stands with the arbiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// There is a connection, and the arbiter has let us in over it.
    pub connected: bool,
    /// The session that is held, connected or not.
    pub fence: Option<Fence>,
    /// How long commits may be made if nothing more is answered.
    pub left: Span,
    /// What was said and never sent: the cache says it again.
    pub words_dropped: u64,
    /// Why the arbiter did not let us in the last time, or said goodbye: a number of the code registry.
    pub refused: Option<i32>,
    /// A later start of this node has taken its place.
    pub outlived: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    env: Mutex<Option<Env>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

/// What callers and the keeper of the session share.
#[derive(Debug)]
struct Shared {
    clock: Clock,
    /// The connection over which the arbiter has let us in.
    inside: RwLock<Option<Link>>,
    shown: Mutex<(Option<Fence>, Mono)>,
    words_dropped: AtomicU64,
    refused: Mutex<Option<i32>>,
    /// The session that the storage has refused.
    abandoned: Mutex<Option<Fence>>,
    told: Notify,
    leaving: CancellationToken,
    outlived: CancellationToken,
    /// Dropped without a word: the arbiter evicts the session by its lease.
    stop: CancellationToken,
}

impl Client {
    pub fn new(env: Env) -> Self {
        let shared = Shared {
            clock: env.clock,
            inside: RwLock::new(None),
            shown: Mutex::new((None, Mono::ZERO)),
            words_dropped: AtomicU64::new(0),
            refused: Mutex::new(None),
            abandoned: Mutex::new(None),
            told: Notify::new(),
            leaving: CancellationToken::new(),
            outlived: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared), env: Mutex::new(Some(env)), ended: Mutex::new(None) }
    }

    /// Begins to dial, on a thread of its own. Errors: the system gives no thread, or it was started before.
    pub fn start(&self, hear: Arc<dyn Hear>) -> io::Result<()> {
        self.begin(Tcp, Home::Threads, hear)
    }

    /// As [`start`](Self::start), on the caller's current-thread runtime, inside its `LocalSet`, and over a network of the
    /// caller's.
    pub fn start_over<N: NetIo>(&self, net: N, hear: Arc<dyn Hear>) -> io::Result<()> {
        self.begin(net, Home::Here, hear)
    }

    fn begin<N: NetIo>(&self, net: N, home: Home, hear: Arc<dyn Hear>) -> io::Result<()> {
        let env = self.env.lock().take().ok_or_else(|| io::Error::other("the client was started before"))?;
        let Env { cluster, node, epoch, security, storages, place, .. } = env;
        let ours = Ours { cluster, node, role: Role::Provider, epoch, worker: 0 };
        let shared = self.shared.clone();
        let work = move || Keeper::new(shared, hear, ours, security, storages).run(net, place);
        let (done, ended) = oneshot::channel();
        let after = |()| {
            // Nobody listens any more when the client was dropped.
            let _ = done.send(());
        };
        home.run("arbiter-client", work, after)?;
        *self.ended.lock() = Some(ended);
        Ok(())
    }

    /// Says goodbye, once everything is written: what was held is dropped, and free for others at once. Ends when the
    /// arbiter has heard it, or does not answer.
    pub async fn leave(&self) {
        self.shared.leaving.cancel();
        let ended = self.ended.lock().take();
        if let Some(ended) = ended
            && ended.await.is_err()
        {
            tracing::error!("the session with the arbiter ended by a panic");
        }
    }

    /// Waits until a later start of this node has taken its place.
    pub async fn outlived(&self) {
        self.shared.outlived.cancelled().await;
    }

    pub fn status(&self) -> Status {
        let (fence, until) = *self.shared.shown.lock();
        Status {
            connected: self.shared.inside.read().is_some(),
            fence,
            left: until.since(self.shared.clock.now()),
            words_dropped: self.shared.words_dropped.load(Ordering::Relaxed),
            refused: *self.shared.refused.lock(),
            outlived: self.shared.outlived.is_cancelled(),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl Arbiter for Client {
    fn say(&self, words: &mut Vec<Word>) {
        let sized =
            |word: &Word| !matches!(word, Word::Ask { key, .. } if !(1..=KEY_BYTES_MAX).contains(&key.len()));
        let said = words.len();
        words.retain(sized);
        self.shared.dropped("key", said - words.len());
        let inside = self.shared.inside.read();
        let Some(link) = &*inside else {
            self.shared.dropped("no_session", words.len());
            return words.clear();
        };
        let said = words.len();
        if words::push(link, words).is_err() {
            // Which of them got through is not known; over the next connection everything is said again.
            self.shared.dropped("slow", said);
            link.outbox.abandon();
        }
    }

    fn send(&self) {
        if let Some(link) = &*self.shared.inside.read() {
            link.outbox.flush();
        }
    }

    fn abandon(&self) {
        let fence = self.shared.shown.lock().0;
        *self.shared.abandoned.lock() = fence;
        self.shared.told.notify_one();
    }
}

impl Shared {
    fn dropped(&self, cause: &'static str, words: usize) {
        if words > 0 {
            let words = words as u64;
            self.words_dropped.fetch_add(words, Ordering::Relaxed);
            metrics::counter!("linkstead_tables_arbiter_words_dropped_total", "cause" => cause)
                .increment(words);
        }
    }
}
