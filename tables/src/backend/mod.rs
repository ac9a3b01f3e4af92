//! Where records are kept. A backend takes whole batches, in order, each made together or not at all, and refuses what a
//! provider writes late: under a fence that was raised since, or over a record that somebody was granted since.
//!
//! | backend | keeps records | shared by processes |
//! |---|---|---|
//! | [`Local`] over `store` in memory | until the process ends | no |
//! | [`Local`] over sled or redb | on this machine's disk | no |
//!
//! All pass one suite, `tables/tests/backends.rs`.

mod error;
mod layout;
mod local;
mod open;

use std::ops::Bound;
use std::pin::Pin;

use base::{Epoch, Fence, NodeId};
use bytes::Bytes;
use store::StoreId;

pub use error::BackendError;
pub use local::Local;
pub use open::{LocalError, LocalKind, open};

/// A record's key has at most these bytes.
pub const KEY_BYTES_MAX: usize = 1_024;
/// A record has at most these bytes.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;
/// A batch has at most these records. It is made whole or not at all, so it is as large as what was committed while the one
/// before was written; commits wait before it could come near this.
pub const BATCH_RECORDS_MAX: usize = 200_000;
/// And, beyond its first one, records of at most these bytes together.
pub const BATCH_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A table, by its number in the game's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// A commit of one provider: the next has the next number, and what is durable is always all commits up to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Csn(pub u64);

/// Under which grant a record was written: a later grant of the same record is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Granted {
    /// The arbiter's start.
    pub epoch: Epoch,
    /// The number of the grant in it.
    pub seq: u64,
}

/// A record as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub granted: Granted,
    /// Larger with each write of the record.
    pub version: u64,
    pub value: Bytes,
}

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub table: TableId,
    pub key: Bytes,
    pub granted: Granted,
    pub version: u64,
    /// `None`: the record is removed.
    pub value: Option<Bytes>,
}

/// What one provider has committed from `first` to `last`, each record once, as it is after `last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub node: NodeId,
    pub fence: Fence,
    pub first: Csn,
    pub last: Csn,
    pub changes: Vec<Change>,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It is durable.
    Now,
    /// It was durable before: its answer was lost, and nothing was changed.
    Before,
}

/// What a call of a backend answers, in its own time.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, BackendError>> + Send + 'a>>;

/// Keeps records. Calls may be dropped at any time: what was begun is then done or not, and a batch is said again.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// Its name in configuration and in messages.
    fn name(&self) -> &'static str;

    /// Only this process can open it, and this is the id written into it. `None`: processes share it.
    fn id(&self) -> Option<StoreId>;

    /// The record as the last applied batch left it.
    fn load<'a>(&'a self, table: TableId, key: &'a [u8]) -> Answer<'a, Option<Stored>>;

    /// Makes a batch durable, whole. Batches of one provider come one after another and in order: each begins behind the
    /// last one.
    ///
    /// Errors, with nothing changed: [`Fenced`](BackendError::Fenced), [`Superseded`](BackendError::Superseded),
    /// [`Order`](BackendError::Order), [`Bounds`](BackendError::Bounds), [`Busy`](BackendError::Busy). After
    /// [`Storage`](BackendError::Storage) it may have been made: say it again.
    fn apply(&self, batch: Batch) -> Answer<'_, Applied>;

    /// From now on nobody of this node, or with `None` nobody at all, writes under a fence below this one. Said again, or
    /// with less, it changes nothing.
    fn raise_fence(&self, node: Option<NodeId>, below: Fence) -> Answer<'_, ()>;

    /// How far this node's commits are durable, and under which fence they were written.
    fn durable(&self, node: NodeId) -> Answer<'_, Option<(Fence, Csn)>>;

    /// Up to `count` records of a table from `from` on, in the order of their keys.
    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Bound<&'a [u8]>,
        count: usize,
    ) -> Answer<'a, Vec<(Bytes, Stored)>>;
}

impl Batch {
    /// Whether it is what a backend takes.
    fn check(&self) -> Result<(), BackendError> {
        let bounds = |what: String| Err(BackendError::Bounds { what });
        if self.first > self.last || self.first == Csn(0) {
            return bounds(format!("commits {} to {}", self.first.0, self.last.0));
        }
        if self.changes.len() > BATCH_RECORDS_MAX {
            return bounds(format!("{} records; at most {BATCH_RECORDS_MAX}", self.changes.len()));
        }
        let mut bytes = 0;
        for change in &self.changes {
            let (key, value) = (change.key.len(), change.value.as_ref().map_or(0, Bytes::len));
            if key == 0 || key > KEY_BYTES_MAX || value > RECORD_BYTES_MAX {
                let most = format!("1 to {KEY_BYTES_MAX} and up to {RECORD_BYTES_MAX}");
                return bounds(format!("a key of {key} and a record of {value} bytes; {most}"));
            }
            if bytes > 0 && bytes + value > BATCH_BYTES_MAX {
                return bounds(format!("more than {BATCH_BYTES_MAX} bytes"));
            }
            bytes += value;
        }
        Ok(())
    }
}
