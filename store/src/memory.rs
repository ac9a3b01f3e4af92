//! A store that a process takes with it. For tests it can be cut off like a machine: what was not durable is gone.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use parking_lot::RwLock;

use crate::{Batch, Change, Durability, Each, Store, StoreError, is_empty};

/// See the module.
#[derive(Debug, Default)]
pub struct Memory(RwLock<Inner>);

#[derive(Debug, Default)]
struct Inner {
    now: BTreeMap<Vec<u8>, Bytes>,
    durable: BTreeMap<Vec<u8>, Bytes>,
    /// Written since the last durable batch, in order.
    buffered: Vec<Batch>,
}

impl Memory {
    /// The power goes and comes back: everything after the last durable write is gone.
    pub fn crash(&self) {
        let mut inner = self.0.write();
        inner.buffered.clear();
        inner.now = inner.durable.clone();
    }
}

fn apply(map: &mut BTreeMap<Vec<u8>, Bytes>, batch: &Batch) {
    for change in batch.changes() {
        match change {
            Change::Put { key, value } => map.insert(key.clone(), Bytes::copy_from_slice(value)),
            Change::Remove { key } => map.remove(key),
        };
    }
}

impl Store for Memory {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.0.read().now.get(key).cloned())
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, each: &mut Each<'_>) -> Result<(), StoreError> {
        if is_empty(from, to) {
            return Ok(());
        }
        for (key, value) in self.0.read().now.range::<[u8], _>((from, to)) {
            if each(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
        batch.check()?;
        let mut inner = self.0.write();
        let Inner { now, durable, buffered } = &mut *inner;
        apply(now, batch);
        buffered.push(batch.clone());
        if durability == Durability::Durable {
            buffered.drain(..).for_each(|batch| apply(durable, &batch));
        }
        Ok(())
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        let inner = self.0.read();
        Ok(inner.now.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum())
    }
}
