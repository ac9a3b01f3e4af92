//! Why a store did not do what it was asked.

use std::io;
use std::path::{Path, PathBuf};

use base::{Blame, Retry};

use crate::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// Cheap to clone, since one failed flush fails everybody who waited for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The caller's: nothing was changed.
    #[error(
        "a key has 1 to {KEY_BYTES_MAX} bytes and a value up to {VALUE_BYTES_MAX}; these have {key} and {value}"
    )]
    Bounds { key: usize, value: usize },
    /// The operator's.
    #[error("{path} is in use by another process; a data directory belongs to one process at a time")]
    InUse { path: PathBuf },
    /// The operator's.
    #[error(
        "{path} holds {found}, the configuration says {wanted}; name another directory, or export and import it"
    )]
    OtherKind { path: PathBuf, found: String, wanted: String },
    /// The operator's.
    #[error(
        "{path} holds the data of {found}, this is {wanted}; name the folder of this node, or give the node its old name"
    )]
    OtherNode { path: PathBuf, found: String, wanted: String },
    /// The operator's.
    #[error(
        "{path} was written by a newer release (format {found}, this one knows {known}); start that release"
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error(
        "{path} is damaged: {what}; see what `linkstead store verify` says, then import an export or take the \
             directory away and let the node rebuild it"
    )]
    Damaged { path: PathBuf, what: String },
    /// What was asked for last may be on the disk or not.
    #[error("the disk of {path} is full, or a quota or limit is reached; make room and start again")]
    Full { path: PathBuf },
    #[error("{path}: {text}")]
    Io { path: PathBuf, text: String },
    #[error("opening {path} took longer than {timeout_s} s; if the disk is well, allow more time")]
    Slow { path: PathBuf, timeout_s: u64 },
    /// It failed before, with this; or its thread is gone.
    #[error("the store has failed and must be opened again: {0}")]
    Failed(String),
    /// The writer holds as many batches as it may.
    #[error("{waiting} batches wait for the disk")]
    Busy { waiting: usize },
}

impl StoreError {
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StoreError::Full { path }
            }
            _ => StoreError::Io { path, text: error.to_string() },
        }
    }

    pub(crate) fn damaged(path: &Path, what: impl ToString) -> Self {
        StoreError::Damaged { path: path.to_owned(), what: what.to_string() }
    }

    /// Whether the store can be used further.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, StoreError::Bounds { .. } | StoreError::Busy { .. })
    }

    pub fn blame(&self) -> Blame {
        Blame::Us
    }

    pub fn retry(&self) -> Retry {
        match self {
            StoreError::Busy { .. } => Retry::Now,
            StoreError::Full { .. } | StoreError::Io { .. } | StoreError::Failed(_) => Retry::Unknown,
            _ => Retry::Never,
        }
    }
}
