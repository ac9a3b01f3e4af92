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

/// What a table may hold: anything that derives `prost::Message`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be kept in a table",
    label = "not a protobuf message that can be copied and compared",
    note = "derive these beside `Record`: `#[derive(Clone, PartialEq, prost::Message, Record)]`, each field with \
            `#[prost(…, tag = \"…\")]`"
)]
pub trait Kept {}

#[diagnostic::do_not_recommend]
impl<M: prost::Message + Default + Clone + PartialEq + Send + Sync + 'static> Kept for M {}

/// Called for each record by what the derive writes. The bounds of [`Record`] say the same, but the compiler names their
/// parts one by one, and not what to write.
pub const fn kept<M: Kept>() {}

/// A message that is kept in a table of its own. Written by `#[derive(Record)]`:
///
/// ```
/// use tables::{Durability, Record, TableId};
///
/// #[derive(Clone, PartialEq, prost::Message, Record)]
/// #[record(crate = "tables", table = "score", id = 101, key = u64, durability = "sync")]
/// pub struct Score { #[prost(uint64, tag = "1")] pub best: u64 }
///
/// assert_eq!((Score::TABLE, Score::ID, Score::DURABILITY), ("score", TableId(101), Durability::Sync));
/// ```
pub trait Record: prost::Message + Default + Clone + PartialEq + Send + Sync + 'static {
    /// The type of the table's keys.
    type Key: Key;

    /// What the table is called in messages and at the storage; it may be renamed.
    const TABLE: &'static str;
    /// What the table is at the storage and at the arbiter; never to be changed, and never used for another one.
    const ID: TableId;
    const DURABILITY: Durability;
}
