//! What a provider has of the records in memory, and its side of the agreement with the arbiter. It does no I/O and reads
//! no clock of its own: a shell, or the simulator, loads for it, tells it what the arbiter said, and takes its words.
//!
//! | module | is |
//! |---|---|
//! | [`permit`] | the core: what may be done with one record |
//! | [`cell`] | a record in memory |
//! | [`index`] | which cell stands for a record |
//! | [`lease`] | until when commits may be made |
//! | [`gate`] | nothing is loaded before the evicted are shut out of the storage |
//! | [`room`] | what has not been used for long leaves |
//! | [`session`] | what the arbiter says |
//! | [`waiter`] | who waits for records, and has a turn with them |

pub mod cell;
mod counts;
mod gate;
mod index;
pub mod lease;
pub mod permit;
mod room;
mod session;
pub mod waiter;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Mono, NodeId};
use bytes::Bytes;
use parking_lot::Mutex;
use store::StoreError;
use tokio::sync::Notify;

use crate::arbiter::{Arbiter, Evicted, Word};
use crate::backend::{BackendError, Stored, TableId};
use crate::error::Error;
use crate::flush::pipeline::{Cut, Pipeline};
use crate::record::Durability;
use crate::tx::{Calls, Queue};
use cell::{Cell, CellRef, Held};
use gate::Gate;
use index::Index;
use lease::LeaseWord;
use permit::{Action, Event, Facts};
use room::Room;

pub use counts::Counts;

/// What a table is, beside its types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    pub id: TableId,
    pub name: &'static str,
    pub durability: Durability,
}

/// A table as its cells know it.
pub trait Shelf: Send + Sync {
    fn meta(&self) -> &Meta;
    /// Reads a value of the storage.
    fn decode(&self, bytes: &[u8]) -> Result<Held, prost::DecodeError>;
    /// This cell no longer stands for its record.
    fn forget(&self, key: &[u8], cell: &CellRef);
    /// Somebody hears of changes.
    fn is_listened_to(&self) -> bool;
    /// Tells them.
    fn tell(&self, key: &[u8], before: &Held, after: &Held);
}

/// A record that is to be read from the storage.
#[derive(Clone)]
pub struct Load {
    pub cell: CellRef,
    pub table: TableId,
    pub key: Bytes,
    /// The grant under which it is read.
    pub seq: u64,
    /// Less is an old copy.
    pub version_min: u64,
    /// How often the storage gave something older than it must have.
    pub stale: u32,
}

/// What the cache asks of its surroundings. Nothing here calls back before it returns.
pub trait Outward: Send + Sync {
    /// Read it and say [`Cache::loaded`]; after some wait if it was stale before.
    fn load(&self, load: Load);
    /// Raise these fences and say [`Cache::raised`], however long it takes.
    fn raise(&self, evicted: Vec<Evicted>);
    /// Say [`Cache::look`] then.
    fn look_at(&self, at: Mono);
    /// There is something to write; `soon`: somebody waits for it.
    fn flush(&self, soon: bool);
    /// The storage has refused what was written: the session is to end, and another one to begin.
    fn abandon(&self);
}

/// How often a storage may give an older version than it must have, before that is an error.
const STALE_MAX: u32 = 100;

/// See the module.
pub struct Cache {
    clock: Box<dyn Fn() -> Mono + Send + Sync>,
    pub(crate) lease: LeaseWord,
    pub(crate) pipeline: Pipeline,
    pub(crate) counts: Counts,
    index: Index,
    arbiter: Arc<dyn Arbiter>,
    outward: Arc<dyn Outward>,
    asked: Mutex<std::collections::BTreeMap<u64, CellRef>>,
    requests: AtomicU64,
    gate: Mutex<Gate>,
    /// Records that are to be looked at when something is durable or time has passed.
    reducing: Mutex<Vec<CellRef>>,
    room: Mutex<Room>,
    pub(crate) calls: Calls,
    pub(crate) queue: Queue,
    /// Told when commits may be made again, or there is room for them.
    pub(crate) changed: Notify,
    storage: &'static str,
    stopping: AtomicBool,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Cache {
    /// `bytes_max`: what records may take of memory, together and as estimated, before those that are used least leave it.
    pub fn new(
        node: NodeId,
        storage: &'static str,
        bytes_max: usize,
        clock: Box<dyn Fn() -> Mono + Send + Sync>,
        arbiter: Arc<dyn Arbiter>,
        outward: Arc<dyn Outward>,
    ) -> Self {
        Self {
            clock,
            lease: LeaseWord::default(),
            pipeline: Pipeline::new(node),
            counts: Counts::default(),
            index: Index::default(),
            arbiter,
            outward,
            asked: Mutex::default(),
            requests: AtomicU64::new(1),
            gate: Mutex::default(),
            reducing: Mutex::default(),
            room: Mutex::new(Room::new(bytes_max)),
            calls: Calls::default(),
            queue: Queue::default(),
            changed: Notify::new(),
            storage,
            stopping: AtomicBool::new(false),
        }
    }

    /// What its storage is called.
    pub fn storage(&self) -> &'static str {
        self.storage
    }

    /// No transaction is begun from now on.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub fn now(&self) -> Mono {
        (self.clock)()
    }

    /// The cell that stands for a record; a new one if none does.
    pub(crate) fn cell(&self, shelf: &Arc<dyn Shelf>, key: &[u8]) -> CellRef {
        if shelf.meta().durability == Durability::Memory {
            let cell = Arc::new(Mutex::new(Cell::new(shelf.clone(), 0, key.into())));
            self.enter(&cell);
            return cell;
        }
        let record = base::hash::wide(&arbiter_key(shelf.meta().id, key));
        let new = || Arc::new(Mutex::new(Cell::new(shelf.clone(), record, key.into())));
        let (cell, is_new) = self.index.get_or_insert(record, new);
        if is_new {
            self.enter(&cell);
        }
        cell
    }

    fn enter(&self, cell: &CellRef) {
        let bytes = cell.lock().bytes;
        self.room.lock().enter(cell.clone(), bytes);
    }

    /// There is something to write; `soon`: somebody waits for it.
    pub(crate) fn flush(&self, soon: bool) {
        self.outward.flush(soon);
    }

    /// The next batch, if there is something to write and nothing is on its way. Answered with [`applied`](Self::applied) or
    /// [`refused`](Self::refused).
    pub fn take(&self) -> Option<Cut> {
        let was_full = self.pipeline.open.is_full();
        let cut = self.pipeline.take()?;
        self.grown(cut.grown);
        if was_full {
            self.changed.notify_waiters();
        }
        Some(cut)
    }

    /// Lets something happen to a record and does what comes of it, under the lock that the caller has. What is said to the
    /// arbiter leaves when the caller says so.
    fn step_locked(&self, cell: &CellRef, locked: &mut Cell, event: Event) {
        let mut actions = Vec::new();
        let facts = self.facts(locked);
        locked.step(facts, event, &mut actions);
        for action in actions {
            self.perform(cell, locked, action);
        }
    }

    fn facts(&self, cell: &Cell) -> Facts {
        Facts { now: self.now(), dirty: cell.cut > self.pipeline.durable() }
    }

    fn perform(&self, cell: &CellRef, locked: &mut Cell, action: Action) {
        match action {
            Action::Ask { request, want, have } => {
                self.asked.lock().insert(request, cell.clone());
                self.counts.asked.add(1);
                let key = arbiter_key(locked.shelf.meta().id, &locked.key).into();
                self.arbiter.say(&mut vec![Word::Ask { request, want, have, key }]);
            }
            Action::Load { seq, version_min } => {
                let (table, key) = (locked.shelf.meta().id, Bytes::copy_from_slice(&locked.key));
                self.load(Load { cell: cell.clone(), table, key, seq, version_min, stale: 0 });
            }
            Action::Drop => locked.clear(),
            Action::Wake => locked.waiters.drain(..).for_each(|waiter| waiter.came()),
            // Why is said by whoever knows.
            Action::Fail => {}
            Action::Flush => {
                self.list(cell, locked);
                self.outward.flush(true);
            }
            Action::LookAt { at } => {
                self.list(cell, locked);
                self.outward.look_at(at);
            }
            Action::Reduced { seq, to } => {
                self.counts.reduced.add(1);
                let (record, flushed) = (locked.record, locked.version);
                self.arbiter.say(&mut vec![Word::Reduced { record, seq, to, flushed }]);
            }
            Action::Forget => locked.gone = true,
        }
    }

    /// Everybody who waits for the record hears why it can't be had.
    fn fail(&self, locked: &mut Cell, error: &Error) {
        locked.waiters.drain(..).for_each(|waiter| waiter.fail(error.clone()));
    }

    fn load(&self, load: Load) {
        self.counts.loads.add(1);
        if let Some(load) = self.gate.lock().pass(load) {
            self.outward.load(load);
        }
    }

    /// What [`Outward::raise`] asked for is done.
    pub fn raised(&self) {
        let through = self.gate.lock().raised();
        through.into_iter().for_each(|load| self.outward.load(load));
    }

    fn raise(&self, evicted: Vec<Evicted>) {
        if evicted.is_empty() || base::planted::is("cache_skips_raise_fence") {
            return;
        }
        self.gate.lock().close();
        self.outward.raise(evicted);
    }

    /// What [`Outward::load`] asked for.
    pub fn loaded(&self, mut load: Load, result: Result<Option<Stored>, BackendError>) {
        let cell = load.cell.clone();
        let mut locked = cell.lock();
        if !locked.permit.is_loading(load.seq) {
            // The grant is over: nobody waits for what was read under it.
            return;
        }
        let version = |stored: &Option<Stored>| stored.as_ref().map_or(0, |stored| stored.version);
        let read = match result {
            Ok(stored) if version(&stored) < load.version_min => {
                // An old copy of the storage answered.
                self.counts.stale.add(1);
                load.stale += 1;
                if load.stale <= STALE_MAX {
                    drop(locked);
                    return self.outward.load(load);
                }
                let (gives, was) = (version(&stored), load.version_min);
                let what = format!("it gives version {gives} of a record that was at {was}");
                Err(BackendError::Storage(StoreError::Failed(what)))
            }
            Ok(stored) => {
                let (version, bytes) =
                    (version(&stored), stored.as_ref().map_or(0, |stored| stored.value.len()));
                self.read(&locked, stored).map(|value| (value, version, bytes))
            }
            Err(error) => Err(error),
        };
        match read {
            Ok((value, version, bytes)) => {
                locked.set(value, version);
                locked.term = self.lease.current();
                locked.touched = true;
                self.grown(locked.weigh(bytes));
                self.step_locked(&cell, &mut locked, Event::Loaded { seq: load.seq });
            }
            Err(error) => {
                self.counts.load_errors.add(1);
                self.step_locked(&cell, &mut locked, Event::NotLoaded { seq: load.seq });
                self.fail(&mut locked, &Error::Storage(error));
            }
        }
        drop(locked);
        self.arbiter.send();
        self.make_room();
    }

    fn read(&self, cell: &Cell, stored: Option<Stored>) -> Result<Held, BackendError> {
        let Some(stored) = stored else { return Ok(None) };
        cell.shelf.decode(&stored.value).map_err(|error| {
            let name = cell.shelf.meta().name;
            BackendError::Damaged { what: format!("a record of table {name}: {error}") }
        })
    }

    /// Looks again at the records that wait for a flush or for the end of somebody's turn.
    pub fn look(&self) {
        let cells = std::mem::take(&mut *self.reducing.lock());
        for cell in cells {
            let mut locked = cell.lock();
            locked.listed = false;
            self.step_locked(&cell, &mut locked, Event::Look);
        }
        self.arbiter.send();
    }

    /// It is looked at again, once.
    fn list(&self, cell: &CellRef, locked: &mut Cell) {
        if !std::mem::replace(&mut locked.listed, true) {
            self.reducing.lock().push(cell.clone());
        }
    }

    /// A batch is durable.
    pub fn applied(&self, cut: u64) {
        self.pipeline.applied(cut);
        self.look();
    }

    /// A batch is refused for ever: somebody else has our records.
    pub fn refused(&self, cut: &Cut, error: &BackendError) {
        if self.pipeline.is_dropped(cut) {
            // It was of a session that is over, and the present one has nothing of it.
            tracing::info!(%error, "what an earlier session had on its way is refused");
            return self.pipeline.refused();
        }
        tracing::error!(%error, "the storage refuses what this provider writes; it drops everything and begins anew");
        self.counts.refused.add(1);
        self.lose();
        self.pipeline.refused();
        self.outward.abandon();
    }
}

/// What stands for a record at the arbiter: its table and its key.
pub fn arbiter_key(table: TableId, key: &[u8]) -> Vec<u8> {
    [&table.0.to_be_bytes()[..], key].concat()
}
