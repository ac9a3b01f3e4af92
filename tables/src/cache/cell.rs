//! One record in memory: its value, what may be done with it, and who waits.

use std::any::Any;
use std::sync::Arc;

use base::Epoch;
use bytes::Bytes;
use parking_lot::Mutex;

use super::Shelf;
use super::permit::{self, Facts, Permit};
use super::waiter::Waiter;
use crate::arbiter::Mode;
use crate::backend::Granted;
use crate::record::{Durability, Record};

/// A value of any table.
pub trait Value: Any + Send + Sync {
    fn encode(&self) -> Bytes;
    fn bytes(&self) -> usize;
    /// For a look at what it is.
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
    fn any_arc(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<V: Record> Value for V {
    fn encode(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    fn bytes(&self) -> usize {
        self.encoded_len()
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn any_arc(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// A value as cells and transactions hold it; `None`: there is no such record.
pub type Held = Option<Arc<dyn Value>>;

/// A cell, by which a record is known in this process. Cells are locked in the order of their addresses, so that nobody
/// waits in a circle.
pub type CellRef = Arc<Mutex<Cell>>;

/// What stands for a cell in a comparison.
pub fn address(cell: &CellRef) -> usize {
    Arc::as_ptr(cell).addr()
}

/// What a commit left behind that the next flush takes, though a later commit has changed the record since.
#[derive(Clone)]
pub struct Written {
    pub value: Held,
    pub version: u64,
}

/// What a record takes beside its key and its value, about.
const CELL_BYTES: usize = 320;

/// See the module.
pub struct Cell {
    pub shelf: Arc<dyn Shelf>,
    /// What stands for it at the arbiter.
    pub record: u128,
    pub key: Box<[u8]>,
    /// Only this provider has it: it needs no grant, and no storage has it.
    pub own: bool,
    /// Whoever has seen it waits until it is durable.
    pub sync: bool,
    pub permit: Permit,
    /// The session under whose grant it is held, as this process counts them.
    pub term: u64,
    /// The life of the arbiter that has numbered its grant.
    pub epoch: Epoch,
    /// Larger after each change of what is in memory.
    pub stamp: u64,
    /// Of the value, as the storage counts; 0: there is none.
    pub version: u64,
    pub value: Held,
    /// The cut with which the last commit in it becomes durable.
    pub cut: u64,
    /// It is in the list of what the next flush takes.
    pub pending: bool,
    /// What a flush that has begun has yet to take.
    pub before: Option<Box<Written>>,
    pub waiters: Vec<Arc<Waiter>>,
    /// It was used since somebody looked for what is not.
    pub touched: bool,
    /// It has left memory: another cell may stand for the record.
    pub gone: bool,
    /// What it counts for in memory.
    pub bytes: usize,
}

impl Cell {
    pub fn new(shelf: Arc<dyn Shelf>, record: u128, key: Box<[u8]>) -> Self {
        let durability = shelf.meta().durability;
        let (own, sync) = (durability == Durability::Memory, durability == Durability::Sync);
        let bytes = CELL_BYTES + key.len();
        Self {
            shelf,
            record,
            key,
            own,
            sync,
            permit: if own { Permit::own() } else { Permit::default() },
            term: 0,
            epoch: Epoch::NONE,
            stamp: 0,
            version: 0,
            value: None,
            cut: 0,
            pending: false,
            before: None,
            waiters: Vec::new(),
            touched: true,
            gone: false,
            bytes,
        }
    }

    /// Whether what was read at `stamp` is still true, under this session.
    pub fn holds(&self, stamp: u64, term: u64) -> bool {
        !self.gone
            && (self.stamp == stamp || base::planted::is("commit_skips_validation"))
            && (self.own || self.term == term)
    }

    /// How it may be used.
    pub fn usable(&self) -> Mode {
        if self.gone { Mode::Invalid } else { self.permit.usable() }
    }

    /// What is in memory is something else from now on.
    pub fn set(&mut self, value: Held, version: u64) {
        (self.value, self.version) = (value, version);
        self.stamp += 1;
    }

    /// What was in memory is not true any more. The version is still the storage's.
    pub fn clear(&mut self) {
        self.value = None;
        self.stamp += 1;
    }

    /// Everything that was committed in it and is not written is given up.
    pub fn forget_unwritten(&mut self) {
        (self.pending, self.before, self.cut) = (false, None, 0);
    }

    /// A commit in cut `cut`. True: the cell was in no list of this cut.
    pub fn commit(&mut self, value: Held, cut: u64) -> bool {
        let new = !self.pending || self.cut < cut;
        if self.pending && self.cut < cut {
            // The flush of an earlier cut has begun and has not come here yet.
            let (value, version) = (self.value.clone(), self.version);
            self.before.get_or_insert_with(|| Box::new(Written { value, version }));
        }
        let version = if value.is_some() { self.version + 1 } else { 0 };
        self.set(value, version);
        (self.cut, self.pending) = (cut, true);
        new
    }

    /// A commit in a record that only this provider has.
    pub fn set_own(&mut self, value: Held) {
        self.set(value, self.version + 1);
    }

    /// With a value of so many bytes: by how many the cell has grown.
    pub fn weigh(&mut self, value: usize) -> isize {
        let bytes = CELL_BYTES + self.key.len() + value;
        let before = std::mem::replace(&mut self.bytes, bytes);
        bytes as isize - before as isize
    }

    /// What the flush of `cut` takes; `None`: another entry of the same flush has it already.
    pub fn take(&mut self, cut: u64) -> Option<Written> {
        if !self.pending {
            return None;
        }
        if let Some(before) = self.before.take() {
            return Some(*before);
        }
        if self.cut > cut {
            return None;
        }
        self.pending = false;
        Some(Written { value: self.value.clone(), version: self.version })
    }

    pub fn step(&mut self, facts: Facts, event: permit::Event, actions: &mut Vec<permit::Action>) {
        self.permit.step(facts, event, actions);
    }

    /// Under which grant it is written.
    pub fn granted(&self) -> Granted {
        Granted { epoch: self.epoch, seq: self.permit.seq() }
    }
}
