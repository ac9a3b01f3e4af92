//! What a table holds.

use crate::backend::TableId;
use crate::key::Key;

/// When a commit is safe, and what a crash of the provider may cost. A transaction has the strongest of the tables that it
/// writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Durability {
    /// Kept by this provider alone, and lost with it: nobody else sees it, and no storage.
    Memory,
    /// Answered at commit; a crash costs what was committed since the last flush.
    #[default]
    Grouped,
    /// Answered when it is durable; a crash costs nothing.
    Sync,
}

/// A message that is kept in a table of its own. Written by `#[derive(Record)]`.
pub trait Record: prost::Message + Default + Clone + PartialEq + Send + Sync + 'static {
    type Key: Key;

    /// What the table is called in messages and at the storage; it may be renamed.
    const TABLE: &'static str;
    /// What the table is at the storage and at the arbiter; never to be changed, and never used for another one.
    const ID: TableId;
    const DURABILITY: Durability;
}
