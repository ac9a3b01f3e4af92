//! Why a backend did not do what it was asked.

use base::{Blame, Fence, NodeId, Retry};
use store::StoreError;

use super::{Csn, Granted, TableId};

/// See each: whose fault it is, and whether to say it again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// The caller's: it was evicted, and others may have its records. It drops everything and logs in anew.
    #[error("node {node} writes under fence {fence}, and was evicted: below {below} nobody writes any more")]
    Fenced { node: NodeId, fence: Fence, below: Fence },
    /// The caller's: somebody was granted the record since. As after an eviction.
    #[error("a record of table {} was granted to somebody else since ({}/{} after {}/{})",
        table.0, stored.epoch, stored.seq, granted.epoch, granted.seq)]
    Superseded { table: TableId, granted: Granted, stored: Granted },
    /// The caller's: the batch does not begin where the last one ended.
    #[error("commits {} to {} come after {}", first.0, last.0, durable.0)]
    Order { first: Csn, last: Csn, durable: Csn },
    /// The caller's: nothing was changed.
    #[error("a batch can't have {what}")]
    Bounds { what: String },
    /// Ours: too much waits for the disk.
    #[error("{waiting} batches wait for the storage")]
    Busy { waiting: usize },
    /// The storage's. What was asked for may be done or not.
    #[error("the storage failed: {0}")]
    Storage(StoreError),
    /// The storage's: what it gave back is no record.
    #[error("a record of the storage can't be read: {what}; see what `linkstead store verify` says")]
    Damaged { what: String },
}

impl From<StoreError> for BackendError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy { waiting } => Self::Busy { waiting },
            error => Self::Storage(error),
        }
    }
}

impl BackendError {
    pub fn blame(&self) -> Blame {
        match self {
            Self::Fenced { .. } | Self::Superseded { .. } | Self::Order { .. } | Self::Bounds { .. } => {
                Blame::Peer
            }
            Self::Busy { .. } | Self::Storage(_) | Self::Damaged { .. } => Blame::Us,
        }
    }

    pub fn retry(&self) -> Retry {
        match self {
            Self::Busy { .. } => Retry::Now,
            Self::Storage(error) => error.retry(),
            _ => Retry::Never,
        }
    }
}
