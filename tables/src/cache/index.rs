//! Which cell stands for a record. A cell is in it for as long as it may stand for one: whatever the arbiter says about a
//! record finds its cell here.

use hashbrown::HashTable;
use parking_lot::Mutex;

use super::cell::CellRef;

/// Parts, each with its own lock.
const PARTS: usize = 64;

/// See the module.
pub(super) struct Index {
    parts: Box<[Mutex<HashTable<Entry>>]>,
}

struct Entry {
    record: u128,
    cell: CellRef,
}

impl Default for Index {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| Mutex::default()).collect() }
    }
}

/// A record is a hash already.
fn hash(record: u128) -> u64 {
    record as u64
}

impl Index {
    fn part(&self, record: u128) -> &Mutex<HashTable<Entry>> {
        &self.parts[(record >> 64) as usize % PARTS]
    }

    pub fn get(&self, record: u128) -> Option<CellRef> {
        let part = self.part(record).lock();
        part.find(hash(record), |entry| entry.record == record).map(|entry| entry.cell.clone())
    }

    /// The cell of a record, and whether it is new.
    pub fn get_or_insert(&self, record: u128, new: impl FnOnce() -> CellRef) -> (CellRef, bool) {
        let mut part = self.part(record).lock();
        if let Some(entry) = part.find(hash(record), |entry| entry.record == record) {
            return (entry.cell.clone(), false);
        }
        let cell = new();
        let entry = Entry { record, cell: cell.clone() };
        part.insert_unique(hash(record), entry, |entry| hash(entry.record));
        (cell, true)
    }

    /// Removes this cell, and no other that has come in its place.
    pub fn remove(&self, record: u128, cell: &CellRef) {
        let mut part = self.part(record).lock();
        let same = |entry: &Entry| entry.record == record && std::sync::Arc::ptr_eq(&entry.cell, cell);
        if let Ok(entry) = part.find_entry(hash(record), same) {
            entry.remove();
        }
    }

    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.lock().len()).sum()
    }

    /// All cells, in the order of their records.
    pub fn all(&self) -> Vec<CellRef> {
        let mut all: Vec<(u128, CellRef)> = Vec::new();
        for part in &self.parts {
            all.extend(part.lock().iter().map(|entry| (entry.record, entry.cell.clone())));
        }
        all.sort_unstable_by_key(|(record, _)| *record);
        all.into_iter().map(|(_, cell)| cell).collect()
    }
}
