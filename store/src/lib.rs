//! Keys and values on one machine: what must outlive a process is written here.
//!
//! | module | is |
//! |---|---|
//! | [`Store`] | the contract: get, range, atomic ordered writes |
//! | [`home`] | a data directory: which kind of store it holds, whose it is, opened once |
//! | [`sled`], [`redb`], [`memory`] | the stores; `sled` is guarded, since it is no longer maintained and panics on damage |
//! | [`seal`] | the checksum that stands with each record |
//! | [`writer`] | a thread that writes for many and flushes once for all of them |
//! | [`dump`] | a whole store as one checksummed file: export, import, verify |

mod batch;
pub mod dump;
mod error;
mod guard;
pub mod home;
pub mod memory;
pub mod redb;
pub mod seal;
pub mod sled;
pub mod writer;

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

pub use batch::{Batch, Change};
pub use error::StoreError;
pub use home::{Kind, Opened, Options, StoreId, open};
pub use memory::Memory;
pub use writer::Writer;

/// The longest key, in bytes: a table's prefix and a record's key of 1 KiB.
pub const KEY_BYTES_MAX: usize = 1_100;
/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What a finished write means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Later reads see it. A crash may take it, and then everything written after it too.
    Buffered,
    /// It and everything before it is on the disk: neither `kill -9` nor a power cut takes it.
    Durable,
}

/// An ordered map of bytes.
///
/// Every call may block on the disk: async code goes through [`Writer`] or a thread of its own. All stores pass one
/// suite, `store/tests/contract.rs`.
///
/// Errors: [`StoreError`] says whether the store can be used further. A store that has failed stays failed: what is
/// on its disk is then only known by opening it again.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The value of `key`, its checksum checked.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// Calls `each` for every key between the bounds, in order, until it breaks. What is written meanwhile may or may
    /// not be seen; `each` must not write to this store.
    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, each: &mut Each<'_>) -> Result<(), StoreError>;

    /// Makes all changes of the batch, or none. Batches are visible and durable in the order of the calls; of several
    /// changes of one key the last one counts. A key or value beyond the bounds, or an empty key, is refused and
    /// changes nothing.
    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError>;

    /// What it takes of the disk, in bytes.
    fn size_bytes(&self) -> Result<u64, StoreError>;
}

/// Takes one key and its value.
pub type Each<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Calls `each` for every key that begins with `prefix`, in order, with the prefix cut off.
pub fn range_prefix(
    store: &dyn Store,
    prefix: &[u8],
    mut each: impl FnMut(&[u8], &[u8]),
) -> Result<(), StoreError> {
    store.range(Bound::Included(prefix), Bound::Unbounded, &mut |key, value| match key.strip_prefix(prefix) {
        Some(rest) => {
            each(rest, value);
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    })
}

/// Bounds between which there is nothing, which ordered maps panic about.
fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    let (Bound::Included(a) | Bound::Excluded(a)) = from else { return false };
    let (Bound::Included(b) | Bound::Excluded(b)) = to else { return false };
    a > b || a == b && !matches!((from, to), (Bound::Included(_), Bound::Included(_)))
}
