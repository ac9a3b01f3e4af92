//! State is removed by the identity of the connection that made it, never by key alone: a late close of the old
//! connection can't remove what the new one put there.

use std::collections::BTreeMap;
use std::fmt;

/// One connection of this process, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Hands out generations.
#[derive(Debug, Default)]
pub struct Generations(u64);

impl Generations {
    pub fn begin(&mut self) -> Generation {
        self.0 += 1;
        Generation(self.0)
    }
}

/// A map in which each entry belongs to the connection that put it there.
#[derive(Debug, Clone)]
pub struct Owned<K, V> {
    entries: BTreeMap<K, (Generation, V)>,
}

impl<K: Ord, V> Default for Owned<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<K: Ord, V> Owned<K, V> {
    /// The newest connection wins; what it replaced is returned.
    pub fn insert(&mut self, key: K, owner: Generation, value: V) -> Option<(Generation, V)> {
        self.entries.insert(key, (owner, value))
    }

    /// Removes the entry only if `owner` still owns it.
    pub fn remove(&mut self, key: &K, owner: Generation) -> Option<V> {
        if self.entries.get(key)?.0 != owner && !crate::planted::is("late_close_removes_new") {
            return None;
        }
        self.entries.remove(key).map(|(_, value)| value)
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|(_, value)| value)
    }

    pub fn owner(&self, key: &K) -> Option<Generation> {
        self.entries.get(key).map(|(owner, _)| *owner)
    }

    /// In key order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Generation, &V)> {
        self.entries.iter().map(|(key, (owner, value))| (key, *owner, value))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: Q7, Q22.
    #[test]
    fn a_late_close_of_the_old_connection_leaves_the_new_one() {
        let mut next = Generations::default();
        let (old, new) = (next.begin(), next.begin());
        let mut map = Owned::default();
        map.insert("game-1", old, "old");
        assert_eq!(map.insert("game-1", new, "new"), Some((old, "old")));
        assert_eq!(map.remove(&"game-1", old), None);
        assert_eq!(map.get(&"game-1"), Some(&"new"));
        assert_eq!(map.remove(&"game-1", new), Some("new"));
    }
}
