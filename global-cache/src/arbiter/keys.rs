//! Core: every record that somebody holds or waits for. Entries stand in chunks that never move; beside them an index that
//! is looked up and never iterated.

use hashbrown::HashTable;

use super::event::Key;
use super::holders::Holders;

/// What is known of one record.
#[derive(Debug, Default)]
pub(super) struct Entry {
    key: [u64; 2],
    /// The newest version that is known to be in the storage.
    pub flushed: u64,
    pub holders: Holders,
    /// The operation that is under way, one more than its place; 0: none.
    pub op: u32,
    used: bool,
}

impl Entry {
    pub fn key(&self) -> Key {
        Key(u128::from(self.key[0]) << 64 | u128::from(self.key[1]))
    }
}

/// Entries in a chunk.
const CHUNK: usize = if cfg!(test) { 64 } else { 4_096 };
/// The index in parts, by the highest bits of a key: each grows by itself, so that no step pays for all of it.
const PARTS: usize = 256;

/// Where an entry stands, with more bits of its key so that growing asks no entry.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: u32,
    hash: u32,
}

#[derive(Debug)]
pub(super) struct Keys {
    parts: Vec<HashTable<Place>>,
    chunks: Vec<Box<[Entry]>>,
    free: Vec<u32>,
    len: usize,
}

/// A key is a hash already. Of its lower half the upper bits choose within a part, which the part's number leaves alone.
fn hash_of(key: Key) -> u32 {
    (key.0 >> 32) as u32
}

/// What an index part takes for a hash: it uses the lowest and the highest bits.
fn spread(hash: u32) -> u64 {
    base::hash::mix(u64::from(hash))
}

impl Default for Keys {
    fn default() -> Self {
        let parts = (0..PARTS).map(|_| HashTable::new()).collect();
        Self { parts, chunks: Vec::new(), free: Vec::new(), len: 0 }
    }
}

impl Keys {
    pub fn len(&self) -> usize {
        self.len
    }

    fn part(key: Key) -> usize {
        (key.0 >> 120) as usize
    }

    pub fn find(&self, key: Key) -> Option<u32> {
        let hash = hash_of(key);
        let same = |place: &Place| place.hash == hash && self.at(place.at).key() == key;
        self.parts[Self::part(key)].find(spread(hash), same).map(|place| place.at)
    }

    /// The entry of `key`, made if there is none.
    pub fn enter(&mut self, key: Key) -> u32 {
        if let Some(at) = self.find(key) {
            return at;
        }
        if self.free.is_empty() {
            let first = (self.chunks.len() * CHUNK) as u32;
            self.chunks.push((0..CHUNK).map(|_| Entry::default()).collect());
            self.free.extend((first..first + CHUNK as u32).rev());
        }
        // Just filled if it was empty.
        let at = self.free.pop().unwrap_or_default();
        let hash = hash_of(key);
        self.parts[Self::part(key)]
            .insert_unique(spread(hash), Place { at, hash }, |place| spread(place.hash));
        self.len += 1;
        let entry = self.at_mut(at);
        *entry = Entry { key: [(key.0 >> 64) as u64, key.0 as u64], used: true, ..Entry::default() };
        at
    }

    pub fn at(&self, at: u32) -> &Entry {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    pub fn at_mut(&mut self, at: u32) -> &mut Entry {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    /// Forgets an entry that nobody holds or waits for.
    pub fn forget(&mut self, at: u32) {
        let key = self.at(at).key();
        let hash = hash_of(key);
        let part = &mut self.parts[Self::part(key)];
        if let Ok(found) = part.find_entry(spread(hash), |place| place.at == at) {
            found.remove();
        }
        *self.at_mut(at) = Entry::default();
        self.free.push(at);
        self.len -= 1;
    }

    /// Places to look through, one after another.
    pub fn places(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    pub fn is_used(&self, at: u32) -> bool {
        self.at(at).used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Key {
        Key(u128::from(base::hash::mix(n)) << 64 | u128::from(base::hash::mix(n + 1)))
    }

    #[test]
    fn what_is_entered_is_found_until_it_is_forgotten() {
        let mut keys = Keys::default();
        let at: Vec<u32> = (0..20_000).map(|n| keys.enter(key(n))).collect();
        assert_eq!((keys.len(), keys.enter(key(7))), (20_000, at[7]));
        for n in (0..20_000).step_by(2) {
            keys.forget(at[n]);
        }
        for (n, at) in at.iter().enumerate() {
            assert_eq!(keys.find(key(n as u64)), (n % 2 == 1).then_some(*at));
        }
        assert_eq!(keys.len(), 10_000);
        // What was freed is used again.
        let places = keys.places();
        for n in 20_000..30_000 {
            keys.enter(key(n));
        }
        assert_eq!(keys.places(), places);
    }

    #[test]
    fn an_entry_takes_few_bytes() {
        assert_eq!((size_of::<Entry>(), size_of::<Place>()), (56, 8));
    }
}
