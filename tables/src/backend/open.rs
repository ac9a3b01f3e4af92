//! Opens the storages that are kept on this machine.

use std::path::Path;
use std::sync::Arc;

use store::{Options, StoreError, StoreId};

use super::{Backend, Local};

/// A storage of this process alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LocalKind {
    /// Lost with the process.
    Memory,
    Sled,
    Redb,
}

/// A storage could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("its thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// Opens a storage. `dir`: where it is kept, if it is kept; one process at a time opens it.
///
/// Errors: see [`LocalError`].
pub fn open(kind: LocalKind, dir: &Path) -> Result<Arc<dyn Backend>, LocalError> {
    let kind = match kind {
        LocalKind::Memory => return Ok(Arc::new(Local::memory(fresh_id())?)),
        LocalKind::Sled => store::Kind::Sled,
        LocalKind::Redb => store::Kind::Redb,
    };
    Ok(Arc::new(Local::new(&store::open(dir, kind, &Options::default())?)?))
}

/// Two memories never pose as one.
fn fresh_id() -> StoreId {
    let place = std::process::id().to_le_bytes();
    StoreId(base::hash::wide(&place) ^ u128::from(node::clock::unix_micros()))
}
