//! Memory is bounded: what has not been used since the hand came by last leaves it. Whatever is being used, waited for or
//! not yet written stays.

use std::collections::VecDeque;

use super::cell::{Cell, CellRef};
use super::permit::Event;
use super::{Cache, Index};

/// Records that are looked at in one go.
const STEPS: usize = 64;

/// See the module.
pub(super) struct Room {
    bytes: usize,
    bytes_max: usize,
    /// In the order in which the hand comes by.
    ring: VecDeque<CellRef>,
}

impl Room {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes: 0, bytes_max, ring: VecDeque::new() }
    }

    pub fn enter(&mut self, cell: CellRef, bytes: usize) {
        self.bytes += bytes;
        self.ring.push_back(cell);
    }
}

impl Cache {
    /// Bytes that records take, about, and how many there are.
    pub fn size(&self) -> (usize, usize) {
        (self.room.lock().bytes, self.index.len())
    }

    /// The cells of all records that others can have too, in the order of the records.
    pub(crate) fn cells(&self) -> Vec<CellRef> {
        self.index.all()
    }

    /// Records have grown in memory by so many bytes.
    pub(super) fn grown(&self, bytes: isize) {
        let mut room = self.room.lock();
        room.bytes = room.bytes.saturating_add_signed(bytes);
    }

    /// Lets go of what is used least, a few records at a time, if there are too many.
    pub fn make_room(&self) {
        for _ in 0..STEPS {
            let cell = {
                let mut room = self.room.lock();
                if room.bytes <= room.bytes_max {
                    return;
                }
                let Some(cell) = room.ring.pop_front() else { return };
                cell
            };
            if !self.let_go(&cell) {
                self.room.lock().ring.push_back(cell);
            }
        }
    }

    /// Lets go of a record unless it is in use; true: it has left.
    fn let_go(&self, cell: &CellRef) -> bool {
        let mut locked = cell.lock();
        // What only this provider has would be lost.
        if std::mem::take(&mut locked.touched) || (locked.own && locked.value.is_some()) {
            return false;
        }
        self.step_locked(cell, &mut locked, Event::LetGo);
        if !locked.gone {
            return false;
        }
        let bytes = locked.bytes;
        // Whoever finds it until then looks again.
        forget(&self.index, cell, &locked);
        drop(locked);
        self.arbiter.send();
        self.counts.evicted.add(1);
        let mut room = self.room.lock();
        room.bytes = room.bytes.saturating_sub(bytes);
        true
    }
}

/// The cell stands for no record any more.
fn forget(index: &Index, cell: &CellRef, locked: &Cell) {
    index.remove(locked.record, cell);
    locked.shelf.forget(&locked.key, cell);
}
