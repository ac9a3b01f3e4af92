//! The storage that all providers share: the contract of `tables::backend`, as a map. It judges a batch as `Local` does,
//! and it can be slow, refuse, or fail after it has done what was asked.

use std::collections::BTreeMap;

use base::{Fence, Mono, NodeId, Span};
use bytes::Bytes;
use store::StoreError;
use tables::TableId;
use tables::backend::{Applied, BackendError, Batch, Csn, Stored};

use crate::sim::Rng;

use super::keys::{Keys, write};

/// What a record that was there from the start says of its writer.
pub const FOUNDER: u64 = 0;
/// And how many coins it has.
pub const COINS: i64 = 1_000;

/// What is wrong with it for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Everything takes up to this long.
    Slow(Span),
    /// It does nothing; with a provider's place, only for that one.
    Refuses(Option<usize>),
    /// It does what was asked of it and says that it failed.
    Forgets,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Storage {
    records: BTreeMap<(TableId, Bytes), Stored>,
    fences: BTreeMap<Option<NodeId>, Fence>,
    marks: BTreeMap<NodeId, (Fence, Csn)>,
    trouble: Vec<(Trouble, Mono)>,
}

impl Storage {
    pub fn new(keys: &Keys) -> Self {
        let mut storage = Self::default();
        for info in keys.all.iter().filter(|info| info.money) {
            let value = write(info, COINS, FOUNDER);
            let stored = Stored { granted: Default::default(), version: 1, value };
            storage.records.insert((info.table, Bytes::copy_from_slice(&info.bytes)), stored);
        }
        storage
    }

    pub fn get(&self, table: TableId, key: &[u8]) -> Option<&Stored> {
        self.records.get(&(table, Bytes::copy_from_slice(key)))
    }

    /// Below which fence this node does not write.
    pub fn fence(&self, node: &NodeId) -> Fence {
        let of = |who: &Option<NodeId>| self.fences.get(who).copied().unwrap_or_default();
        of(&Some(node.clone())).max(of(&None))
    }

    pub fn raise(&mut self, node: Option<NodeId>, below: Fence) {
        let fence = self.fences.entry(node).or_default();
        *fence = (*fence).max(below);
    }

    pub fn apply(&mut self, batch: &Batch) -> Result<Applied, BackendError> {
        let mark = self.marks.get(&batch.node).copied();
        let below = self.fence(&batch.node).max(mark.map(|(fence, _)| fence).unwrap_or_default());
        if !below.admits(batch.fence) {
            return Err(BackendError::Fenced { node: batch.node.clone(), fence: batch.fence, below });
        }
        if let Some((_, durable)) = mark.filter(|(fence, _)| *fence == batch.fence) {
            if batch.last <= durable {
                return Ok(Applied::Before);
            }
            if batch.first != Csn(durable.0 + 1) {
                return Err(BackendError::Order { first: batch.first, last: batch.last, durable });
            }
        }
        for change in &batch.changes {
            let stored = self.get(change.table, &change.key).map(|stored| stored.granted);
            if let Some(stored) = stored.filter(|stored| *stored > change.granted) {
                let (table, granted) = (change.table, change.granted);
                return Err(BackendError::Superseded { table, granted, stored });
            }
        }
        self.marks.insert(batch.node.clone(), (batch.fence, batch.last));
        for change in &batch.changes {
            let key = (change.table, change.key.clone());
            match &change.value {
                Some(value) => {
                    let (granted, version) = (change.granted, change.version);
                    self.records.insert(key, Stored { granted, version, value: value.clone() });
                }
                None => drop(self.records.remove(&key)),
            }
        }
        Ok(Applied::Now)
    }

    pub fn trouble(&mut self, trouble: Trouble, until: Mono) {
        self.trouble.push((trouble, until));
    }

    pub fn heal(&mut self) {
        self.trouble.clear();
    }

    /// How long the next thing takes.
    pub fn takes(&mut self, now: Mono, rng: &mut Rng) -> Span {
        self.trouble.retain(|(_, until)| *until > now);
        let slow = self.trouble.iter().find_map(|(trouble, _)| match trouble {
            Trouble::Slow(most) => Some(*most),
            _ => None,
        });
        match slow {
            Some(most) => Span(rng.below(most.0)),
            None => Span::micros(rng.between(100, 3_000)),
        }
    }

    /// Whether it does nothing for this provider now.
    pub fn refuses(&self, now: Mono, who: usize) -> bool {
        let refuses = |(trouble, until): &(Trouble, Mono)| match trouble {
            Trouble::Refuses(whom) => *until > now && whom.is_none_or(|whom| whom == who),
            _ => false,
        };
        self.trouble.iter().any(refuses)
    }

    /// Whether it says that it failed though it did not.
    pub fn forgets(&self, now: Mono) -> bool {
        self.trouble.iter().any(|(trouble, until)| *until > now && *trouble == Trouble::Forgets)
    }
}

pub fn failure() -> BackendError {
    BackendError::Storage(StoreError::Failed("a planned failure".to_owned()))
}
