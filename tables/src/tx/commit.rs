//! Whether what was read is still true; then all that was written, at once.
//!
//! A run that only reads looks at each record again: what is unchanged then was true together at the moment at which it
//! began to look. A run that writes locks all its records first, in the order of their addresses.

use parking_lot::{ArcMutexGuard, RawMutex};

use super::calls::Call;
use super::set::Entry;
use super::{Level, Tx};
use crate::arbiter::Mode;
use crate::backend::RECORD_BYTES_MAX;
use crate::cache::cell::{Cell, CellRef, Held, address};
use crate::error::Error;
use crate::flush::open::Joined;
use crate::record::Durability;

/// What became of a run.
#[derive(Debug)]
pub enum Finish {
    Committed(Committed),
    /// Its code gave up, and what it had read is true.
    Aborted,
    /// Records are not at hand.
    NotYet,
    /// Others have changed what it read.
    Conflict,
    /// The arbiter's lease has ended.
    NoLease,
    /// It can't be committed.
    Refused(Error),
}

/// A commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Committed {
    /// What it has changed, or seen, is durable with this cut, as long as no more sessions are lost than this.
    pub cut: u64,
    pub losses: u64,
    /// Its answer waits until it is.
    pub waits: bool,
}

/// Why a record does not let a run through.
enum Stop {
    Conflict,
    Want(Mode),
}

impl Entry {
    fn mode(&self) -> Mode {
        if self.written { Mode::Modify } else { Mode::Share }
    }

    /// Whether the run may go through this record.
    fn judge(&self, cell: &Cell, level: Level, term: u64) -> Result<(), Stop> {
        if cell.gone {
            return Err(Stop::Conflict);
        }
        if level == Level::Serializable && cell.usable() < self.mode() {
            return Err(Stop::Want(self.mode()));
        }
        if cell.holds(self.stamp, term) { Ok(()) } else { Err(Stop::Conflict) }
    }
}

impl Tx {
    /// Ends the run: its code has succeeded, or not.
    pub(crate) fn finish(&mut self, succeeded: bool) -> Finish {
        if !self.wants.is_empty() || !self.chores.is_empty() {
            return Finish::NotYet;
        }
        if let Some(error) = &self.refused {
            return Finish::Refused(error.clone());
        }
        let written = succeeded && self.set.is_written();
        let finish = match (self.level, written) {
            (Level::Dirty, _) => Finish::Committed(Committed::default()),
            (_, false) => self.finish_read(),
            (_, true) => self.finish_write(),
        };
        match finish {
            Finish::Committed(_) if !succeeded => Finish::Aborted,
            Finish::Committed(_) if !written => {
                self.call();
                finish
            }
            _ => finish,
        }
    }

    /// The records that it has read or written, and how it uses each.
    pub(crate) fn touched(&self) -> Vec<(CellRef, Mode)> {
        self.set.entries.iter().map(|entry| (entry.cell.clone(), entry.mode())).collect()
    }

    /// What is to happen after the commit is in its place among what others want to happen.
    fn call(&mut self) {
        if !self.calls.is_quiet() {
            self.cache.calls.push(self.calls.committed());
        }
    }

    fn stopped(&mut self, at: usize, stop: Stop) -> Finish {
        match stop {
            Stop::Conflict => Finish::Conflict,
            Stop::Want(mode) => {
                self.wants.push((self.set.entries[at].cell.clone(), mode));
                Finish::NotYet
            }
        }
    }

    fn finish_read(&mut self) -> Finish {
        let mut committed = Committed { losses: self.cache.pipeline.losses(), ..Committed::default() };
        let (level, term) = (self.level, self.cache.lease.current());
        let mut shared = false;
        for at in 0..self.set.entries.len() {
            let entry = &self.set.entries[at];
            let cell = entry.cell.lock();
            // What was written by code that failed was only read.
            let judged = match entry.judge(&cell, level, term) {
                Err(Stop::Want(Mode::Modify)) if cell.usable() == Mode::Share => Ok(()),
                judged => judged,
            };
            if let Err(stop) = judged {
                drop(cell);
                return self.stopped(at, stop);
            }
            shared |= !cell.own;
            if cell.sync {
                committed.cut = committed.cut.max(cell.cut);
            }
        }
        if shared && level == Level::Serializable && self.cache.lease.term(self.cache.now()) != Some(term) {
            return Finish::NoLease;
        }
        committed.waits = committed.cut > self.cache.pipeline.durable();
        Finish::Committed(committed)
    }

    fn finish_write(&mut self) -> Finish {
        for entry in self.set.entries.iter_mut().filter(|entry| entry.written) {
            let bytes = entry.value.as_ref().map_or(0, |value| value.bytes());
            entry.bytes = bytes;
            if bytes > RECORD_BYTES_MAX {
                let table = entry.cell.lock().shelf.meta().name;
                return Finish::Refused(Error::TooLarge { table, bytes });
            }
        }
        if let [entry] = self.set.entries.as_mut_slice() {
            let cell = entry.cell.clone();
            let mut locked = cell.lock();
            return self.commit(&mut [&mut *locked], &[0]);
        }
        self.commit_many()
    }

    fn commit_many(&mut self) -> Finish {
        let mut order = std::mem::take(&mut self.set.order);
        order.clear();
        order.extend(0..self.set.entries.len());
        order.sort_unstable_by_key(|at| address(&self.set.entries[*at].cell));
        let mut guards: Vec<ArcMutexGuard<RawMutex, Cell>> =
            order.iter().map(|at| self.set.entries[*at].cell.lock_arc()).collect();
        let mut locked: Vec<&mut Cell> = guards.iter_mut().map(|guard| &mut **guard).collect();
        let finish = self.commit(&mut locked, &order);
        drop(locked);
        drop(guards);
        self.set.order = order;
        finish
    }

    /// With the locks of all records: `locked[i]` is the cell of entry `order[i]`.
    fn commit(&mut self, locked: &mut [&mut Cell], order: &[usize]) -> Finish {
        // Before the lease: if the session ends after this, the commit counts as one of it.
        let losses = self.cache.pipeline.losses();
        let shared = locked.iter().any(|cell| !cell.own);
        let term = match shared {
            true => self.cache.lease.term(self.cache.now()),
            false => Some(self.cache.lease.current()),
        };
        let Some(term) = term else { return Finish::NoLease };
        let mut wanted: Vec<usize> = Vec::new();
        for (cell, at) in locked.iter().zip(order) {
            match self.set.entries[*at].judge(cell, self.level, term) {
                Ok(()) => {}
                Err(Stop::Conflict) => return Finish::Conflict,
                Err(Stop::Want(_)) => wanted.push(*at),
            }
        }
        if !wanted.is_empty() {
            // All in one go, in the order of the transaction: that of the locks is another one in each process.
            wanted.sort_unstable();
            let want = |at: usize| (self.set.entries[at].cell.clone(), self.set.entries[at].mode());
            self.wants.extend(wanted.into_iter().map(want));
            return Finish::NotYet;
        }
        let cut = self.install(locked, order, shared);
        self.call();
        let waits = shared && self.durability == Durability::Sync;
        Finish::Committed(Committed { cut, losses, waits })
    }

    /// Everything that was written is in place, and in the open cut if a storage has it.
    fn install(&mut self, locked: &mut [&mut Cell], order: &[usize], shared: bool) -> u64 {
        let Self { cache, set, durability, .. } = self;
        let mut joined = shared.then(|| cache.pipeline.open.join());
        let mut first = false;
        for (cell, at) in locked.iter_mut().zip(order) {
            let entry = &mut set.entries[*at];
            if !entry.written {
                continue;
            }
            let value = std::mem::take(&mut entry.value);
            if cell.shelf.is_listened_to() {
                let (shelf, key) = (cell.shelf.clone(), cell.key.clone());
                let (before, after) = (cell.value.clone(), value.clone());
                let tell: Call = Box::new(move || shelf.tell(&key, &before, &after));
                cache.calls.push([tell]);
            }
            match &mut joined {
                Some(joined) if !cell.own => first |= write(cell, entry, value, joined),
                _ => cell.set_own(value),
            }
        }
        let Some(mut joined) = joined else { return 0 };
        joined.count();
        let cut = joined.cut;
        drop(joined);
        let sync = *durability == Durability::Sync;
        if first || sync {
            cache.flush(sync);
        }
        cut
    }
}

/// True: nothing was waiting to be written.
fn write(cell: &mut Cell, entry: &Entry, value: Held, joined: &mut Joined<'_>) -> bool {
    if !cell.commit(value, joined.cut) {
        return false;
    }
    let grown = cell.weigh(entry.bytes);
    joined.add(entry.cell.clone(), entry.bytes, grown)
}
