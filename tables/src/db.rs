//! A provider's database: its tables, their records in memory, a storage behind them and an arbiter beside it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::{Epoch, Mono, NodeId, Span};
use node::Clock;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::arbiter::embedded::{Embedded, Seat};
use crate::arbiter::{Arbiter, Hear};
use crate::auto_key::{AutoKey, Given};
use crate::backend::{Backend, TableId};
use crate::cache::Cache;
use crate::error::Error;
use crate::flush::open::{PLACES, place};
use crate::key::Key;
use crate::record::Record;
use crate::shell;
use crate::table::Table;
use crate::tx::{Attempt, First, Home, Options, Tx, first};

/// How a database is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// This provider.
    pub node: NodeId,
    /// What records may take of memory, about, before those that are used least leave it.
    pub cache_bytes_max: usize,
    /// How long a commit may wait to be written, unless somebody waits for it.
    pub flush_interval: Duration,
}

impl Settings {
    pub fn new(node: NodeId) -> Self {
        Self { node, cache_bytes_max: 256 * 1024 * 1024, flush_interval: Duration::from_millis(20) }
    }
}

/// See the module. A clone is the same database.
///
/// ```
/// use std::sync::Arc;
///
/// use base::{Epoch, NodeId};
/// use store::StoreId;
/// use tables::{Db, Error, Local, Record, Settings};
///
/// #[derive(Clone, PartialEq, prost::Message, Record)]
/// #[record(crate = "tables", table = "purse", id = 1, key = u64)]
/// pub struct Purse { #[prost(int64, tag = "1")] pub coins: i64 }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = Arc::new(Local::memory(StoreId(1))?);
/// let db = Db::embedded(Settings::new(NodeId::new("game-1")?), backend, Epoch(1))?;
/// let purses = db.table::<u64, Purse>()?;
/// // All of it happens, or nothing.
/// db.run(|tx| {
///     purses.get_or_default(tx, &7)?.coins -= 5;
///     purses.get_or_default(tx, &8)?.coins += 5;
///     Ok::<_, Error>(())
/// })
/// .await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
pub struct Db {
    shared: Arc<Shared>,
}

struct Shared {
    cache: Arc<Cache>,
    homes: Box<[Home]>,
    tables: Mutex<BTreeMap<TableId, &'static str>>,
    given: OnceLock<Table<String, Given>>,
    keys: Mutex<BTreeMap<String, AutoKey>>,
    work: Arc<shell::Shared>,
    stop: Arc<Notify>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    embedded: Option<(Arc<Embedded>, Arc<Seat>)>,
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("storage", &self.shared.cache.storage()).finish_non_exhaustive()
    }
}

/// A database did not start, or a table can't be had.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the thread of the database could not be started: {0}")]
    Thread(std::io::Error),
    /// The game's: each table has an id and a name of its own.
    #[error("table {name} has id {}, and so has {other}: each table has its own", id.0)]
    Table { id: TableId, name: &'static str, other: &'static str },
}

/// The numbers of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub storage: &'static str,
    pub records: usize,
    pub bytes: usize,
    /// Commits may be made.
    pub leased: bool,
    /// Records that are committed and not written.
    pub unwritten: usize,
    /// How long the last batch took from its first commit until it was durable.
    pub flush_lag: Span,
    pub write_errors: u64,
    /// Why the storage can't be written to now.
    pub failing: Option<String>,
    pub asked: u64,
    pub reduced: u64,
    pub loads: u64,
    pub load_errors: u64,
    pub evicted: u64,
    /// Sessions that ended with everything dropped, and the commits that were lost with them.
    pub losses: u64,
    pub lost: u64,
    /// Batches that the storage refused.
    pub refused: u64,
}

/// A database whose arbiter has yet to be told of it.
pub struct Opening {
    db: Db,
}

impl Opening {
    /// What the arbiter's session is to call.
    pub fn hear(&self) -> Arc<dyn Hear> {
        self.db.shared.cache.clone()
    }

    pub fn done(self) -> Db {
        self.db
    }
}

impl Db {
    /// With an arbiter in this process. `epoch`: this start of the node.
    ///
    /// Errors: the system gives no thread.
    pub fn embedded(settings: Settings, backend: Arc<dyn Backend>, epoch: Epoch) -> Result<Self, OpenError> {
        let clock = Clock::start();
        let arbiter = Embedded::new(epoch, Box::new(move || clock.now()));
        Self::beside(settings, backend, &arbiter, epoch)
    }

    /// With an arbiter in this process that others use too.
    ///
    /// Errors: the system gives no thread.
    pub fn beside(
        settings: Settings,
        backend: Arc<dyn Backend>,
        arbiter: &Arc<Embedded>,
        epoch: Epoch,
    ) -> Result<Self, OpenError> {
        let seat = arbiter.seat(settings.node.clone(), epoch);
        let clock = Clock::start();
        let embedded = Some((arbiter.clone(), seat.clone()));
        let opening = Self::open(settings, backend, seat.clone(), Box::new(move || clock.now()), embedded)?;
        seat.open(&opening.hear());
        Ok(opening.done())
    }

    /// With an arbiter elsewhere, which is reached by `arbiter`; its session calls [`Opening::hear`]. `clock`: the session's.
    ///
    /// Errors: the system gives no thread.
    pub fn with(
        settings: Settings,
        backend: Arc<dyn Backend>,
        arbiter: Arc<dyn Arbiter>,
        clock: Clock,
    ) -> Result<Opening, OpenError> {
        Self::open(settings, backend, arbiter, Box::new(move || clock.now()), None)
    }

    fn open(
        settings: Settings,
        backend: Arc<dyn Backend>,
        arbiter: Arc<dyn Arbiter>,
        clock: Box<dyn Fn() -> Mono + Send + Sync>,
        embedded: Option<(Arc<Embedded>, Arc<Seat>)>,
    ) -> Result<Opening, OpenError> {
        let Settings { node, cache_bytes_max, flush_interval } = settings;
        let (hands, work) = shell::pair(arbiter.clone());
        let cache = Cache::new(node, backend.name(), cache_bytes_max, clock, arbiter, Arc::new(hands));
        let cache = Arc::new(cache);
        let (shared, stop) = (work.shared.clone(), Arc::new(Notify::new()));
        let (done, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(OpenError::Thread)?;
        let (cache_there, stop_there) = (cache.clone(), stop.clone());
        let run = move || {
            runtime.block_on(work.run(cache_there, backend, flush_interval, stop_there));
            // What it was reading lets go of the storage: whoever waits for the end may open it anew.
            drop(runtime);
            // Nobody listens any more when the database was dropped without a stop.
            let _ = done.send(());
        };
        std::thread::Builder::new().name("tables".into()).spawn(run).map_err(OpenError::Thread)?;
        let (tables, ended) = (Mutex::default(), Mutex::new(Some(ended)));
        let homes = (0..PLACES).map(|_| Home::new(cache.clone())).collect();
        let (given, keys) = (OnceLock::new(), Mutex::default());
        let shared = Shared { cache, homes, tables, given, keys, work: shared, stop, ended, embedded };
        Ok(Opening { db: Self { shared: Arc::new(shared) } })
    }

    /// A table of this database. Asked for again it is another handle of the same records only if it is cloned.
    ///
    /// Errors: another table has its id.
    pub fn table<K: Key, V: Record<Key = K>>(&self) -> Result<Table<K, V>, OpenError> {
        let mut tables = self.shared.tables.lock();
        if let Some(other) = tables.insert(V::ID, V::TABLE) {
            tables.insert(V::ID, other);
            return Err(OpenError::Table { id: V::ID, name: V::TABLE, other });
        }
        Ok(Table::new(self.shared.cache.clone()))
    }

    /// Gives out numbers of this name: the same for everybody who asks for it. See [`AutoKey`].
    pub fn auto_key(&self, name: &str) -> AutoKey {
        let table = self.shared.given.get_or_init(|| Table::new(self.shared.cache.clone()));
        let new = || AutoKey::new(name, table.clone(), self.home().clone());
        self.shared.keys.lock().entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// Runs `code` as a transaction: again while others change what it reads, until it is committed or fails by itself.
    ///
    /// Errors: those of `code`, and of [`Error`].
    pub async fn run<T, E: From<Error>>(&self, code: impl FnMut(&mut Tx) -> Result<T, E>) -> Result<T, E> {
        self.run_with(Options::default(), code).await
    }

    /// As [`run`](Self::run), in another way.
    pub async fn run_with<T, E: From<Error>>(
        &self,
        options: Options,
        mut code: impl FnMut(&mut Tx) -> Result<T, E>,
    ) -> Result<T, E> {
        match first(self.home().clone(), options, &mut code) {
            First::Over(result) => result,
            First::Waits(committed, result) => {
                self.shared.cache.durable(committed).await.map_err(E::from)?;
                result
            }
            First::Again => self.attempt(options).run(code).await,
        }
    }

    fn home(&self) -> &Home {
        &self.shared.homes[place()]
    }

    /// A transaction whose runs the caller makes.
    pub fn attempt(&self, options: Options) -> Attempt {
        Attempt::new(self.home().clone(), options)
    }

    /// Begins no transaction any more, writes what is committed, and gives back what is held.
    pub async fn stop(&self) {
        self.shared.cache.stop();
        self.shared.stop.notify_one();
        let ended = self.shared.ended.lock().take();
        if let Some(ended) = ended
            && ended.await.is_err()
        {
            tracing::error!("the thread of a database panicked");
        }
        if let Some((_, seat)) = &self.shared.embedded {
            seat.leave();
        }
    }

    pub fn status(&self) -> Status {
        let Shared { cache, work, .. } = &*self.shared;
        let ((bytes, records), counts) = (cache.size(), &cache.counts);
        Status {
            storage: cache.storage(),
            records,
            bytes,
            leased: cache.is_leased(),
            unwritten: cache.pipeline.open.records(),
            flush_lag: work.lag(),
            write_errors: work.write_errors(),
            failing: work.failing(),
            asked: counts.asked.get(),
            reduced: counts.reduced.get(),
            loads: counts.loads.get(),
            load_errors: counts.load_errors.get(),
            evicted: counts.evicted.get(),
            losses: counts.losses.get(),
            lost: cache.pipeline.lost(),
            refused: counts.refused.get(),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}
