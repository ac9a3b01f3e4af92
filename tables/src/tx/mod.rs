//! Transactions: a run of the game's code that sees the records as if nobody else were there, and whose changes all happen
//! at one moment or not at all.
//!
//! | module | is |
//! |---|---|
//! | [`set`] | what a run has read and written |
//! | [`savepoint`] | parts that are undone alone |
//! | [`commit`] | whether what was read is still true; then all that was written, at once |
//! | [`calls`] | what is to happen after it, once and in order |
//! | [`first`] | the first run, at once |
//! | [`run`] | runs it again until it is done |
//! | [`waits`] | what is waited for beside records |
//! | [`queue`] | who has failed too often waits for his turn |

mod calls;
mod commit;
mod first;
mod queue;
mod run;
mod savepoint;
mod set;
mod waits;

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;

use crossbeam::utils::CachePadded;

use crate::arbiter::Mode;
use crate::backend::KEY_BYTES_MAX;
use crate::cache::cell::{CellRef, Held};
use crate::cache::{Cache, Meta};
use crate::error::Error;
use crate::record::Durability;

pub use calls::Calls;
pub use commit::{Committed, Finish};
pub(crate) use first::{First, first};
pub(crate) use queue::in_order;
pub use queue::{Queue, Queued};
pub use run::{Attempt, End, OVERTAKEN_MAX, Options, RUN_TIMEOUT};
pub use savepoint::Savepoint;
use set::Set;

/// Records that one transaction may touch.
pub const RECORDS_MAX: usize = 10_000;

/// What a transaction may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Level {
    /// As if it ran alone.
    #[default]
    Serializable,
    /// Reads only: everything as it was at one moment, which may be over even for others, also while the arbiter is away.
    Snapshot,
    /// Reads only: each record as it was at some moment.
    Dirty,
}

/// A cache as one thread's transactions know it. Each thread has its own, so that they do not count in one place whoever
/// uses the cache.
#[derive(Debug, Clone)]
pub struct Home(Arc<CachePadded<Arc<Cache>>>);

impl Home {
    pub fn new(cache: Arc<Cache>) -> Self {
        Self(Arc::new(CachePadded::new(cache)))
    }

    pub fn cache(&self) -> &Arc<Cache> {
        &self.0
    }
}

impl std::ops::Deref for Home {
    type Target = Cache;

    fn deref(&self) -> &Cache {
        &self.0
    }
}

/// Something that a run waits for beside records.
type Chore = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// One run of a transaction. See [`Table`](crate::Table) for what can be done with it.
pub struct Tx {
    cache: Home,
    level: Level,
    set: Room,
    pub(crate) wants: Vec<(CellRef, Mode)>,
    /// What is to be done before it runs again.
    chores: Vec<Chore>,
    durability: Durability,
    calls: calls::Registered,
    /// What can't be committed whatever the code makes of it.
    refused: Option<Error>,
}

impl std::fmt::Debug for Tx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx")
            .field("level", &self.level)
            .field("records", &self.set.len())
            .finish_non_exhaustive()
    }
}

impl Tx {
    pub fn new(cache: Home, level: Level) -> Self {
        let set = SPARE.with(|spare| spare.try_borrow_mut().ok().and_then(|mut spare| spare.take()));
        Self {
            cache,
            level,
            set: Room(Some(set.unwrap_or_default())),
            wants: Vec::new(),
            chores: Vec::new(),
            durability: Durability::Memory,
            calls: calls::Registered::default(),
            refused: None,
        }
    }

    /// It runs again when this is done; what to give on until then.
    pub(crate) fn wait_for(&mut self, chore: Chore) -> Error {
        self.chores.push(chore);
        Error::NotYet
    }

    /// Its answer waits for at least this, whatever it writes.
    pub fn require(&mut self, durability: Durability) {
        self.durability = self.durability.max(durability);
    }

    /// Runs `call` after the commit, once, outside of all locks and in the order of the commits; never if there is none.
    pub fn on_commit(&mut self, call: impl FnOnce() + Send + 'static) {
        self.calls.on_commit(Box::new(call));
    }

    /// Runs `call` once if there will be no commit, also when whoever runs the transaction waits for it no longer.
    pub fn on_abort(&mut self, call: impl FnOnce() + Send + 'static) {
        self.calls.on_abort(Box::new(call));
    }

    /// A table of another database can't be part of it.
    pub(crate) fn check_home(&mut self, cache: &Arc<Cache>) -> Result<(), Error> {
        if Arc::ptr_eq(self.cache.cache(), cache) {
            return Ok(());
        }
        let (one, other) = (self.cache.storage(), cache.storage());
        Err(self.refuse(Error::CrossStore { one, other }))
    }

    /// The transaction is not committed, whatever its code does after this.
    pub(crate) fn refuse(&mut self, error: Error) -> Error {
        self.refused.get_or_insert(error.clone());
        error
    }

    /// Reads a record; where it is in the set.
    pub(crate) fn read(&mut self, cell: CellRef) -> Result<usize, Error> {
        self.look(cell, Mode::Share)
    }

    /// Reads a record that will be changed.
    pub(crate) fn read_to_write(&mut self, cell: CellRef) -> Result<usize, Error> {
        self.look(cell, Mode::Modify)
    }

    /// `want`: what it is asked for if it is not at hand at all. Whether it may be changed is for the end to say.
    fn look(&mut self, cell: CellRef, want: Mode) -> Result<usize, Error> {
        if let Some(at) = self.set.find(&cell) {
            return Ok(at);
        }
        let mut locked = cell.lock();
        if locked.usable() == Mode::Invalid {
            drop(locked);
            self.wants.push((cell, want));
            return Err(Error::NotYet);
        }
        locked.touched = true;
        let (stamp, value) = (locked.stamp, locked.value.clone());
        drop(locked);
        self.enter(cell, stamp, value)
    }

    /// A record that will be changed whatever it is: if it is not at hand the run goes on, so that all that it overwrites is
    /// asked for in one go.
    pub(crate) fn overwrite(&mut self, cell: CellRef) -> Result<usize, Error> {
        match self.read_to_write(cell) {
            Err(Error::NotYet) => {
                let Some((cell, _)) = self.wants.last() else { return Err(Error::NotYet) };
                self.enter(cell.clone(), 0, None)
            }
            read => read,
        }
    }

    fn enter(&mut self, cell: CellRef, stamp: u64, value: Held) -> Result<usize, Error> {
        if self.set.len() >= RECORDS_MAX {
            return Err(self.refuse(Error::TooMany { max: RECORDS_MAX }));
        }
        Ok(self.set.enter(cell, stamp, value))
    }

    pub(crate) fn value(&self, at: usize) -> &Held {
        self.set.value(at)
    }

    pub(crate) fn value_mut(&mut self, at: usize) -> &mut Held {
        self.set.value_mut(at)
    }

    /// What it is now can be had back, and it is written at the commit.
    pub(crate) fn begin_write(&mut self, at: usize, meta: Meta) -> Result<(), Error> {
        if self.level != Level::Serializable {
            return Err(self.refuse(Error::ReadOnly { table: meta.name }));
        }
        self.durability = self.durability.max(meta.durability);
        self.set.begin_write(at);
        Ok(())
    }

    /// Will be used like this.
    pub(crate) fn want(&mut self, cell: CellRef, mode: Mode) {
        let usable = {
            let locked = cell.lock();
            if locked.gone { Mode::Invalid } else { locked.permit.usable() }
        };
        if usable < mode {
            self.wants.push((cell, mode));
        }
    }

    pub(crate) fn all_at_hand(&self) -> Result<(), Error> {
        if self.wants.is_empty() { Ok(()) } else { Err(Error::NotYet) }
    }
}

/// A set that can be taken out without another one in its place, which would be made for nothing. It is there until the
/// transaction is dropped.
struct Room(Option<Box<Set>>);

impl std::ops::Deref for Room {
    type Target = Set;

    fn deref(&self) -> &Set {
        self.0.as_deref().expect("taken by the drop only")
    }
}

impl std::ops::DerefMut for Room {
    fn deref_mut(&mut self) -> &mut Set {
        self.0.as_deref_mut().expect("taken by the drop only")
    }
}

thread_local! {
    /// The room of an earlier run of this thread.
    static SPARE: RefCell<Option<Box<Set>>> = const { RefCell::new(None) };
}

impl Drop for Tx {
    /// Leaves its room for the next run; the records in it are let go.
    fn drop(&mut self) {
        let Some(mut set) = self.set.0.take() else { return };
        set.clear();
        // While a thread ends there is no next run.
        let _ = SPARE.try_with(|spare| spare.try_borrow_mut().map(|mut spare| spare.replace(set)));
    }
}

const _: () = assert!(KEY_BYTES_MAX <= wire::cache::KEY_BYTES_MAX);
