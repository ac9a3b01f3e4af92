//! Why a transaction did not commit, or is not known to have.

use base::{Blame, Retry, Span};
use wire::code::{self, Code};

use crate::backend::{BackendError, RECORD_BYTES_MAX};

/// See each: whose fault it is, and whether to run the transaction again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody's: a record is not at hand yet. Give it on: the transaction is run again when the record is there.
    #[error("a record is not at hand yet; the transaction is run again when it is")]
    NotYet,
    /// Ours: others changed what it read, each time that it ran. Again later.
    #[error("others changed the same records in each of {runs} runs; try again")]
    Conflict { runs: u32 },
    /// The arbiter does not grant a record now: a number of the code registry. Again after this time.
    #[error("the arbiter refuses a record: {}; try again after {retry_after}", name(*.code))]
    Denied { code: i32, retry_after: Span },
    /// Ours: the arbiter can't be reached, or has not been, so others may hold the records by now. Nothing was committed.
    #[error("this provider has no lease from the arbiter; try again when it is back")]
    NoLease,
    /// Ours: a record did not come in time.
    #[error("a record did not come within {0}; try again")]
    Timeout(Span),
    /// Ours: it is committed here, and the storage does not answer, or the session with the arbiter ended before it did.
    /// Whether it is durable must be read again.
    #[error("the commit may be durable or not: the storage did not answer in time; read it again")]
    Unknown,
    /// The storage's: the record could not be read.
    #[error("{0}")]
    Storage(#[from] BackendError),
    /// The caller's: a record has at most 1 MiB.
    #[error("a record of table {table} has {bytes} bytes; at most {RECORD_BYTES_MAX}")]
    TooLarge { table: &'static str, bytes: usize },
    /// The caller's: a key has 1 to 1,024 bytes.
    #[error("a key of table {table} has {bytes} bytes; it has 1 to 1,024")]
    Key { table: &'static str, bytes: usize },
    /// The caller's: split it.
    #[error("a transaction touches more than {max} records; split it")]
    TooMany { max: usize },
    /// The caller's: the level is for reading only.
    #[error("a transaction that only reads can't change table {table}")]
    ReadOnly { table: &'static str },
    /// The caller's: it reads or writes records of two storages, which can't be made durable together.
    #[error("one transaction can't use the storages of {one} and of {other}; split it")]
    CrossStore { one: &'static str, other: &'static str },
    /// The caller's: its own code failed without a word of its own.
    #[error("the transaction's code panicked: {0}")]
    Panicked(String),
    /// Ours: this provider stops.
    #[error("this provider stops and begins no transaction any more")]
    Stopping,
}

fn name(number: i32) -> String {
    Code::find(number).map_or_else(|| number.to_string(), ToString::to_string)
}

impl Error {
    /// The entry of the code registry that tells a client of it.
    pub fn code(&self) -> &'static Code {
        match self {
            Self::Denied { code, .. } => Code::find(*code).unwrap_or(&code::BUSY),
            Self::NotYet | Self::Conflict { .. } | Self::NoLease => &code::BUSY,
            Self::Timeout(_) => &code::TIMEOUT,
            Self::Stopping => &code::SHUTTING_DOWN,
            Self::TooLarge { .. }
            | Self::Key { .. }
            | Self::TooMany { .. }
            | Self::ReadOnly { .. }
            | Self::CrossStore { .. }
            | Self::Unknown
            | Self::Storage(_)
            | Self::Panicked(_) => &code::EXCEPTION,
        }
    }

    pub fn blame(&self) -> Blame {
        match self {
            Self::Storage(error) => error.blame(),
            other => other.code().blame,
        }
    }

    /// Whether the same transaction may be run again, and when.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Denied { retry_after, .. } => Retry::After(*retry_after),
            Self::Storage(error) => error.retry(),
            Self::Conflict { .. } | Self::Timeout(_) | Self::NoLease | Self::NotYet => {
                Retry::After(Span::millis(200))
            }
            Self::Unknown => Retry::Unknown,
            _ => Retry::Never,
        }
    }
}
