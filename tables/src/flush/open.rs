//! What is committed and not yet written: gathered in cuts. A commit joins the cut that is open, and a cut becomes durable
//! whole, so that what the storage holds is always all commits up to a moment.
//!
//! A commit reads the number of the open cut under the lock of its thread's list, with the locks of all its records held.
//! Who takes a cut first opens the next one and then visits each list once: whatever joined the cut is there by then. And
//! whoever uses what a commit has changed locks the record after it, and so joins its cut or a later one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam::utils::CachePadded;
use parking_lot::{Mutex, MutexGuard};

use crate::cache::cell::CellRef;

/// Places of threads, so that they rarely wait for each other's lists.
pub const PLACES: usize = 16;
/// Records that the open cut may have before commits wait until it is taken.
pub const RECORDS_MAX: usize = 32_768;
/// And bytes of them, as far as they are known.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The cut that commits join.
#[derive(Debug)]
pub struct Open {
    cut: AtomicU64,
    lists: Box<[CachePadded<Mutex<List>>]>,
    /// Records of the open cut and, while it is visited, of the one before.
    records: AtomicUsize,
    bytes: AtomicUsize,
}

/// What one list has of the open cut and, in the other half, of the one that is being taken.
#[derive(Default)]
struct List {
    halves: [Half; 2],
}

#[derive(Default)]
struct Half {
    cells: Vec<CellRef>,
    commits: u64,
    bytes: usize,
    grown: isize,
}

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes = self.halves.each_ref().map(|half| half.cells.len());
        f.debug_struct("List").field("records", &sizes).finish()
    }
}

/// A commit under way, which has joined a cut.
pub struct Joined<'a> {
    list: MutexGuard<'a, List>,
    open: &'a Open,
    pub cut: u64,
}

/// A cut that nobody joins any more.
#[derive(Debug, Default)]
pub struct Taken {
    pub cut: u64,
    pub cells: Vec<CellRef>,
    /// How many commits there were.
    pub commits: u64,
    /// By how many bytes the records have grown in memory.
    pub grown: isize,
}

impl std::fmt::Debug for crate::cache::cell::Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cell").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Default for Open {
    fn default() -> Self {
        let lists = (0..PLACES).map(|_| CachePadded::default()).collect();
        Self {
            // What was never committed has cut 0.
            cut: AtomicU64::new(1),
            lists,
            records: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }
}

impl Open {
    /// Joins the open cut. The caller has locked all records that it changes.
    pub fn join(&self) -> Joined<'_> {
        let list = self.lists[place()].lock();
        let cut = self.cut.load(Ordering::Acquire);
        Joined { list, open: self, cut }
    }

    /// The number of the cut that is open.
    pub fn number(&self) -> u64 {
        self.cut.load(Ordering::Acquire)
    }

    pub fn records(&self) -> usize {
        self.records.load(Ordering::Relaxed)
    }

    /// No more may be committed before some of it is taken.
    pub fn is_full(&self) -> bool {
        self.records() >= RECORDS_MAX || self.bytes.load(Ordering::Relaxed) >= BYTES_MAX
    }

    /// Ends the open cut. By one at a time, who has visited each record of the last one.
    pub fn take(&self) -> Taken {
        let cut = self.cut.fetch_add(1, Ordering::AcqRel);
        let mut taken = Taken { cut, ..Taken::default() };
        let mut bytes = 0;
        for list in &self.lists {
            let mut list = list.lock();
            let half = std::mem::take(&mut list.halves[parity(cut)]);
            drop(list);
            taken.cells.extend(half.cells);
            taken.commits += half.commits;
            taken.grown += half.grown;
            bytes += half.bytes;
        }
        self.records.fetch_sub(taken.cells.len(), Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        taken
    }
}

impl Joined<'_> {
    /// A record that was in no list of this cut, with a value of so many bytes, by so many more than before. True: it is the
    /// first of all.
    pub fn add(&mut self, cell: CellRef, bytes: usize, grown: isize) -> bool {
        let half = &mut self.list.halves[parity(self.cut)];
        half.grown += grown;
        half.cells.push(cell);
        half.bytes += bytes;
        self.open.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.open.records.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// The commit is made.
    pub fn count(&mut self) {
        self.list.halves[parity(self.cut)].commits += 1;
    }
}

fn parity(cut: u64) -> usize {
    usize::from(cut % 2 == 1)
}

/// Each thread its own, as long as there are enough.
pub fn place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static PLACE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % PLACES);
    PLACE.with(|place| *place)
}
