//! Changes that are made together or not at all.

use crate::{KEY_BYTES_MAX, StoreError, VALUE_BYTES_MAX};

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Put { key: Vec<u8>, value: Vec<u8> },
    Remove { key: Vec<u8> },
}

impl Change {
    pub fn key(&self) -> &[u8] {
        match self {
            Change::Put { key, .. } | Change::Remove { key } => key,
        }
    }
}

/// Changes in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    changes: Vec<Change>,
    bytes: usize,
}

impl Batch {
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> &mut Self {
        let (key, value) = (key.into(), value.into());
        self.bytes += key.len() + value.len();
        self.changes.push(Change::Put { key, value });
        self
    }

    /// A key that isn't there is no error.
    pub fn remove(&mut self, key: impl Into<Vec<u8>>) -> &mut Self {
        let key = key.into();
        self.bytes += key.len();
        self.changes.push(Change::Remove { key });
        self
    }

    /// Adds all changes of `other` behind these.
    pub fn append(&mut self, mut other: Batch) {
        self.bytes += other.bytes;
        self.changes.append(&mut other.changes);
    }

    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    pub fn len(&self) -> usize {
        self.changes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Of all keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a store may take it.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        for change in &self.changes {
            let (key, value) = match change {
                Change::Put { key, value } => (key.len(), value.len()),
                Change::Remove { key } => (key.len(), 0),
            };
            if key == 0 || key > KEY_BYTES_MAX || value > VALUE_BYTES_MAX {
                return Err(StoreError::Bounds { key, value });
            }
        }
        Ok(())
    }
}
