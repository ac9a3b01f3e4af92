//! The redb store: what to take for data of which there is only one copy, on one machine. It too panics on some damage,
//! so every call is guarded.

use std::fs::File;
use std::ops::{Bound, ControlFlow};
use std::path::Path;

use ::redb::{Database, Durability as Committed, ReadableDatabase, TableDefinition, TableError};
use bytes::Bytes;

use crate::guard::{Guard, Trouble};
use crate::home::Options;
use crate::is_empty;
use crate::seal::seal;
use crate::{Batch, Change, Durability, Each, Store, StoreError};

/// Everything; callers keep apart by prefixes.
const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("records");

type Records = ::redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

/// See the module.
#[derive(Debug)]
pub struct Redb {
    db: Database,
    guard: Guard,
    _lock: File,
}

impl Redb {
    pub(crate) fn open(dir: &Path, lock: File, options: &Options) -> Result<Self, StoreError> {
        let path = dir.join("records.redb");
        let cache_bytes = usize::try_from(options.cache_bytes).unwrap_or(usize::MAX);
        let opened = Database::builder().set_cache_size(cache_bytes).create(&path);
        let db = opened.map_err(|error| judge(&path, error))?;
        Ok(Self { db, guard: Guard::new(path), _lock: lock })
    }

    fn at<T, E: Into<::redb::Error>>(&self, done: Result<T, E>) -> Result<T, Trouble> {
        done.map_err(|error| Trouble::Store(judge(self.guard.path(), error)))
    }

    /// `None`: nothing was ever written.
    fn records(&self) -> Result<Option<Records>, Trouble> {
        let reading = self.at(self.db.begin_read())?;
        match reading.open_table(TABLE) {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => self.at(Err(error)),
        }
    }
}

fn judge(path: &Path, error: impl Into<::redb::Error>) -> StoreError {
    match error.into() {
        ::redb::Error::Io(error) => StoreError::io(path, &error),
        ::redb::Error::DatabaseAlreadyOpen => StoreError::InUse { path: path.to_owned() },
        ::redb::Error::PreviousIo => StoreError::Failed("an earlier write to the disk failed".to_owned()),
        other => StoreError::damaged(path, other),
    }
}

impl Store for Redb {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.guard.run(|| {
            let Some(table) = self.records()? else { return Ok(None) };
            let Some(sealed) = self.at(table.get(key))? else { return Ok(None) };
            Ok(Some(Bytes::copy_from_slice(self.guard.unsealed(key, sealed.value())?)))
        })
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, each: &mut Each<'_>) -> Result<(), StoreError> {
        if is_empty(from, to) {
            return Ok(());
        }
        self.guard.run(|| {
            let Some(table) = self.records()? else { return Ok(()) };
            for entry in self.at(table.range::<&[u8]>((from, to)))? {
                let (key, sealed) = self.at(entry)?;
                let value = self.guard.unsealed(key.value(), sealed.value())?;
                if let ControlFlow::Break(()) = each(key.value(), value) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
        batch.check()?;
        let committed = match durability {
            Durability::Buffered => Committed::None,
            Durability::Durable => Committed::Immediate,
        };
        self.guard.run(|| {
            let mut writing = self.at(self.db.begin_write())?;
            self.at(writing.set_durability(committed))?;
            {
                let mut table = self.at(writing.open_table(TABLE))?;
                for change in batch.changes() {
                    match change {
                        Change::Put { key, value } => {
                            self.at(table.insert(&key[..], &seal(key, value)[..]))?;
                        }
                        Change::Remove { key } => {
                            self.at(table.remove(&key[..]))?;
                        }
                    }
                }
            }
            self.at(writing.commit())
        })
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        let path = self.guard.path();
        Ok(std::fs::metadata(path).map_err(|error| StoreError::io(path, &error))?.len())
    }
}
