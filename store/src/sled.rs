//! The sled store, guarded. sled is no longer maintained: it panics on some damage instead of saying so, and after an
//! error of the disk its state is unknown. So every call is guarded, and one failure ends the use of the store.
//!
//! Worse, when its log is damaged it drops everything after the damage and opens as if nothing had been there. So each
//! batch is numbered, and a file beside it says which number was flushed last: with fewer it does not open.

use std::fs::{self, File};
use std::ops::{Bound, ControlFlow};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::guard::{Guard, Trouble};
use crate::home::Options;
use crate::is_empty;
use crate::seal::{seal, unseal};
use crate::{Batch, Change, Durability, Each, Store, StoreError};

/// Where the number of the last batch stands among the records; no caller's key is empty.
const NUMBER: &[u8] = b"";
/// The file with the number that was flushed last.
const FLUSHED: &str = "FLUSHED";

/// How often a file is tried that sled has not let go of.
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// See the module. One tree holds everything; callers keep apart by prefixes.
#[derive(Debug)]
pub struct Sled {
    db: ::sled::Db,
    guard: Guard,
    /// The number of the last batch, held while it is written, so that numbers go up.
    number: Mutex<u64>,
    flushed: Flushed,
    _lock: File,
}

impl Sled {
    pub(crate) fn open(dir: &Path, lock: File, options: &Options) -> Result<Self, StoreError> {
        let path = dir.join("sled");
        let config = ::sled::Config::new()
            .path(&path)
            .cache_capacity(options.cache_bytes)
            // Only our own flush counts.
            .flush_every_ms(None);
        // A panic in here is the opener's to catch.
        let db = open_when_let_go(&config, options.open_timeout).map_err(|error| judge(&path, error))?;
        let flushed = Flushed::open(&dir.join(FLUSHED))?;
        let store = Self { db, guard: Guard::new(path), number: Mutex::new(0), flushed, _lock: lock };
        let found = store.guard.run(|| match store.at(store.db.get(NUMBER))? {
            Some(sealed) => store.guard.unsealed(NUMBER, &sealed).map(read_number),
            None => Ok(0),
        })?;
        let flushed = *store.flushed.number.lock();
        if found < flushed && !base::planted::is("store_forgets_silently") {
            let what = format!("it should hold {flushed} batches and holds {found}");
            return Err(StoreError::damaged(store.guard.path(), what));
        }
        *store.number.lock() = found;
        Ok(store)
    }

    fn at<T>(&self, done: ::sled::Result<T>) -> Result<T, Trouble> {
        done.map_err(|error| Trouble::Store(judge(self.guard.path(), error)))
    }
}

/// The lock of the directory is ours, so if sled's own file is locked, an earlier store of this process is just ending:
/// sled lets go of its file some time after it was dropped.
fn open_when_let_go(config: &::sled::Config, timeout: Duration) -> ::sled::Result<::sled::Db> {
    let began = Instant::now();
    loop {
        match config.open() {
            Err(::sled::Error::Io(error))
                if error.to_string().contains("could not acquire lock") && began.elapsed() < timeout =>
            {
                std::thread::park_timeout(LOCK_RETRY);
            }
            opened => return opened,
        }
    }
}

fn read_number(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The file with the number that was flushed last. It is not flushed itself, so after a power cut it may say less than
/// the store holds, never more.
#[derive(Debug)]
struct Flushed {
    file: File,
    number: Mutex<u64>,
}

impl Flushed {
    fn open(path: &Path) -> Result<Self, StoreError> {
        let open = || {
            let text = fs::read(path).or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(Vec::new()),
                _ => Err(error),
            })?;
            let file = File::options().create(true).truncate(false).write(true).open(path)?;
            Ok((text, file))
        };
        let (sealed, file) = open().map_err(|error| StoreError::io(path, &error))?;
        // Empty or zeroes: made, and never written before the power went.
        let number = match unseal(NUMBER, &sealed) {
            Some(value) => read_number(value),
            None if sealed.iter().all(|byte| *byte == 0) => 0,
            None => return Err(StoreError::damaged(path, "its checksum is wrong")),
        };
        Ok(Self { file, number: Mutex::new(number) })
    }

    fn raise(&self, number: u64) -> std::io::Result<()> {
        let mut flushed = self.number.lock();
        if number > *flushed {
            *flushed = number;
            self.file.write_all_at(&seal(NUMBER, &number.to_le_bytes()), 0)?;
        }
        Ok(())
    }
}

fn judge(path: &Path, error: ::sled::Error) -> StoreError {
    match error {
        ::sled::Error::Io(error) => StoreError::io(path, &error),
        other => StoreError::damaged(path, other),
    }
}

impl Store for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.guard.run(|| {
            let Some(sealed) = self.at(self.db.get(key))? else { return Ok(None) };
            Ok(Some(Bytes::copy_from_slice(self.guard.unsealed(key, &sealed)?)))
        })
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, each: &mut Each<'_>) -> Result<(), StoreError> {
        if is_empty(from, to) {
            return Ok(());
        }
        self.guard.run(|| {
            for entry in self.db.range::<&[u8], _>((from, to)) {
                let (key, sealed) = self.at(entry)?;
                if key == NUMBER {
                    continue;
                }
                if let ControlFlow::Break(()) = each(&key, self.guard.unsealed(&key, &sealed)?) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
        batch.check()?;
        let mut changes = ::sled::Batch::default();
        for change in batch.changes() {
            match change {
                Change::Put { key, value } => changes.insert(&key[..], seal(key, value)),
                Change::Remove { key } => changes.remove(&key[..]),
            }
        }
        self.guard.run(|| {
            let number = {
                let mut number = self.number.lock();
                *number += 1;
                changes.insert(NUMBER, seal(NUMBER, &number.to_le_bytes()));
                self.at(self.db.apply_batch(changes))?;
                *number
            };
            if durability == Durability::Durable && !base::planted::is("store_acknowledges_before_flush") {
                self.at(self.db.flush())?;
                self.at(self.flushed.raise(number).map_err(::sled::Error::Io))?;
            }
            Ok(())
        })
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        self.guard.run(|| self.at(self.db.size_on_disk()))
    }
}
