//! What the benches of records keep: one record of two fields, in a database of this process, over a storage in a folder
//! that goes away with it.

use std::sync::Arc;

use anyhow::{Context, Result};
use base::{Epoch, NodeId};
use tables::backend::{self, LocalKind};
use tables::{Backend, Db, Record, Settings, Table, Tx};
use tempfile::TempDir;

/// Two fields, answered at commit and written soon after.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "purse", id = 1, key = u64, durability = "grouped")]
pub struct Purse {
    #[prost(int64, tag = "1")]
    pub coins: i64,
    #[prost(uint64, tag = "2")]
    pub changes: u64,
}

/// Where the records go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Storage {
    Memory,
    Sled,
    Redb,
}

impl Storage {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sled => "sled",
            Self::Redb => "redb",
        }
    }

    /// A new, empty storage, and the folder that it stands in.
    pub fn open(self) -> Result<(Arc<dyn Backend>, TempDir)> {
        let folder = tempfile::tempdir().context("a folder for the storage")?;
        let kind = match self {
            Self::Memory => LocalKind::Memory,
            Self::Sled => LocalKind::Sled,
            Self::Redb => LocalKind::Redb,
        };
        Ok((backend::open(kind, &folder.path().join("records"))?, folder))
    }
}

/// A provider alone, with its arbiter in the same process: leases are looked at as everywhere.
pub fn alone(backend: Arc<dyn Backend>) -> Result<(Db, Table<u64, Purse>)> {
    let db = Db::embedded(Settings::new(NodeId::new("game-1")?), backend, Epoch(1))?;
    let purses = db.table()?;
    Ok((db, purses))
}

/// What every transaction that writes does.
pub fn change(purses: &Table<u64, Purse>, tx: &mut Tx, key: u64) -> Result<(), tables::Error> {
    let purse = purses.get_or_default(tx, &key)?;
    purse.coins += 1;
    purse.changes += 1;
    Ok(())
}
