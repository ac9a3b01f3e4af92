//! What a run has read and written.

use hashbrown::HashMap;

use crate::cache::cell::{CellRef, Held, address};

/// Records up to which looking at each is quicker than an index.
const SMALL: usize = 12;

/// One record of a run.
pub(super) struct Entry {
    pub cell: CellRef,
    /// When it was read.
    pub stamp: u64,
    /// As the run sees it.
    pub value: Held,
    pub written: bool,
    /// Of the value, once it is known that it may be written.
    pub bytes: usize,
    /// The number of the last undo that gives back an earlier value of it; 0: none.
    undo: usize,
}

/// How to take back a write.
struct Undo {
    at: usize,
    value: Held,
    written: bool,
    undo: usize,
}

/// See the module.
#[derive(Default)]
pub(super) struct Set {
    pub entries: Vec<Entry>,
    /// Where each cell is, once there are many.
    index: HashMap<usize, usize, foldhash::fast::FixedState>,
    undo: Vec<Undo>,
    /// Undos that belong to an outer part.
    outer: usize,
    /// How many parts are open.
    depth: usize,
    /// For whoever locks them in order.
    pub order: Vec<usize>,
}

impl Set {
    pub fn clear(&mut self) {
        self.entries.clear();
        self.index.clear();
        self.undo.clear();
        self.order.clear();
        (self.outer, self.depth) = (0, 0);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn find(&self, cell: &CellRef) -> Option<usize> {
        let wanted = address(cell);
        if self.entries.len() <= SMALL {
            return self.entries.iter().position(|entry| address(&entry.cell) == wanted);
        }
        self.index.get(&wanted).copied()
    }

    pub fn enter(&mut self, cell: CellRef, stamp: u64, value: Held) -> usize {
        let at = self.entries.len();
        if at == SMALL {
            let all = self.entries.iter().enumerate();
            // It was cleared, and has the room of earlier runs.
            self.index.extend(all.map(|(at, entry)| (address(&entry.cell), at)));
        }
        if at >= SMALL {
            self.index.insert(address(&cell), at);
        }
        self.entries.push(Entry { cell, stamp, value, written: false, bytes: 0, undo: 0 });
        at
    }

    pub fn value(&self, at: usize) -> &Held {
        &self.entries[at].value
    }

    pub fn value_mut(&mut self, at: usize) -> &mut Held {
        &mut self.entries[at].value
    }

    pub fn is_written(&self) -> bool {
        self.entries.iter().any(|entry| entry.written)
    }

    /// The first write of a record in the present part remembers what it was.
    pub fn begin_write(&mut self, at: usize) {
        let entry = &mut self.entries[at];
        if self.depth > 0 && entry.undo <= self.outer {
            let undo = Undo { at, value: entry.value.clone(), written: entry.written, undo: entry.undo };
            self.undo.push(undo);
            entry.undo = self.undo.len();
        }
        entry.written = true;
    }

    /// Begins a part; what to give to [`back`](Self::back) or [`keep`](Self::keep).
    pub fn mark(&mut self) -> (usize, usize) {
        let mark = (self.undo.len(), self.outer);
        self.outer = self.undo.len();
        self.depth += 1;
        mark
    }

    /// Everything since the mark was not.
    pub fn back(&mut self, (len, outer): (usize, usize)) {
        while self.undo.len() > len {
            let Some(undo) = self.undo.pop() else { break };
            let entry = &mut self.entries[undo.at];
            (entry.value, entry.written, entry.undo) = (undo.value, undo.written, undo.undo);
        }
        self.keep((len, outer));
    }

    /// What was done since the mark belongs to the part around it.
    pub fn keep(&mut self, (_, outer): (usize, usize)) {
        self.outer = outer;
        self.depth = self.depth.saturating_sub(1);
    }
}
