//! A whole store as one file: for backups, and for moving between kinds of stores. The file is checked whole before any
//! of it is believed.
//!
//! Layout, little endian: `LSDUMP01`; the store's id (16 bytes); per record key length u32, value length u32, key, value;
//! `u32::MAX`; the number of records u64; the checksum of everything before it u64.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::{Bound, ControlFlow};
use std::path::Path;

use base::hash;

use crate::home::{self, Kind, Opened, Options, StoreId};
use crate::{Batch, Durability, KEY_BYTES_MAX, Store, StoreError, VALUE_BYTES_MAX};

const MAGIC: &[u8; 8] = b"LSDUMP01";
/// Bytes of records that are imported in one batch.
const BATCH_BYTES: usize = 1024 * 1024;

/// What was exported, imported or verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    pub records: u64,
    /// Of keys and values.
    pub bytes: u64,
}

/// Writes everything that `opened` holds to `file`, which is there whole or not at all.
pub fn export(opened: &Opened, file: &Path) -> Result<Counted, StoreError> {
    let mut counted = Counted { records: 0, bytes: 0 };
    let mut read = Ok(());
    let written = home::replace(file, |out| {
        let mut out = Summed::new(BufWriter::new(out));
        out.write_all(MAGIC)?;
        out.write_all(&opened.id.0.to_le_bytes())?;
        let mut failed = None;
        read = opened.store.range(Bound::Unbounded, Bound::Unbounded, &mut |key, value| {
            counted.records += 1;
            counted.bytes += (key.len() + value.len()) as u64;
            match record(&mut out, key, value) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        if let Err(error) = &read {
            return Err(io::Error::other(error.to_string()));
        }
        if let Some(error) = failed {
            return Err(error);
        }
        out.write_all(&u32::MAX.to_le_bytes())?;
        out.write_all(&counted.records.to_le_bytes())?;
        let sum = out.sum;
        out.write_all(&sum.to_le_bytes())?;
        out.inner.flush()
    });
    // Why it could not be read says more than that it was not written.
    read.and(written).map(|()| counted)
}

fn record(out: &mut impl Write, key: &[u8], value: &[u8]) -> io::Result<()> {
    // Both are bounded far below 4 GiB.
    out.write_all(&(key.len() as u32).to_le_bytes())?;
    out.write_all(&(value.len() as u32).to_le_bytes())?;
    out.write_all(key)?;
    out.write_all(value)
}

/// Makes a store of `kind` in `dir`, which must not hold one yet, with everything that `file` holds. The directory is
/// there whole or not at all; the new store has an id of its own.
pub fn import(file: &Path, dir: &Path, kind: Kind, options: &Options) -> Result<Counted, StoreError> {
    let other = |found: String| StoreError::OtherKind {
        path: dir.to_owned(),
        found,
        wanted: "nothing yet".to_owned(),
    };
    if let Some(found) = home::kind(dir)? {
        return Err(other(format!("a {found} store")));
    }
    if dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(other("other files".to_owned()));
    }
    // First all is checked, then it is read again and believed.
    let counted = read(file, |_, _| Ok(()))?;
    let part = dir.with_extension("importing");
    let cleared = match std::fs::remove_dir_all(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    cleared.map_err(|error| StoreError::io(&part, &error))?;
    let opened = home::open(&part, kind, options)?;
    let mut batch = Batch::default();
    read(file, |key, value| {
        batch.put(key, value);
        if batch.bytes() < BATCH_BYTES {
            return Ok(());
        }
        opened.store.write(&std::mem::take(&mut batch), Durability::Buffered)
    })?;
    opened.store.write(&batch, Durability::Durable)?;
    drop(opened);
    let moved = || {
        if dir.exists() {
            std::fs::remove_dir(dir)?;
        }
        std::fs::rename(&part, dir)?;
        home::sync_dir(dir)
    };
    moved().map_err(|error| StoreError::io(dir, &error))?;
    Ok(counted)
}

/// Reads every record of a store and checks it. The first damage ends it.
pub fn verify(store: &dyn Store) -> Result<Counted, StoreError> {
    let mut counted = Counted { records: 0, bytes: 0 };
    store.range(Bound::Unbounded, Bound::Unbounded, &mut |key, value| {
        counted.records += 1;
        counted.bytes += (key.len() + value.len()) as u64;
        ControlFlow::Continue(())
    })?;
    Ok(counted)
}

/// Whose export `file` is, and how much it holds. Checks all of it.
pub fn inspect(file: &Path) -> Result<(StoreId, Counted), StoreError> {
    let counted = read(file, |_, _| Ok(()))?;
    let mut head = [0; 24];
    let mut open = || File::open(file)?.read_exact(&mut head);
    open().map_err(|error| StoreError::io(file, &error))?;
    let (_, id) = head.split_last_chunk::<16>().unwrap_or((&[], &[0; 16]));
    Ok((StoreId(u128::from_le_bytes(*id)), counted))
}

/// Reads an export from its beginning to its checksum.
fn read(
    path: &Path,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
) -> Result<Counted, StoreError> {
    let ended = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => StoreError::damaged(path, "it ends early"),
        _ => StoreError::io(path, &error),
    };
    let file = File::open(path).map_err(|error| StoreError::io(path, &error))?;
    let mut input = Summed::new(BufReader::new(file));
    let mut counted = Counted { records: 0, bytes: 0 };
    if input.take::<8>().map_err(ended)? != *MAGIC {
        return Err(StoreError::damaged(path, "it is no export of a store"));
    }
    input.take::<16>().map_err(ended)?;
    let (mut key, mut value) = (Vec::new(), Vec::new());
    loop {
        let key_len = u32::from_le_bytes(input.take().map_err(ended)?);
        if key_len == u32::MAX {
            break;
        }
        let value_len = u32::from_le_bytes(input.take().map_err(ended)?);
        let lengths = (key_len as usize, value_len as usize);
        if lengths.0 == 0 || lengths.0 > KEY_BYTES_MAX || lengths.1 > VALUE_BYTES_MAX {
            return Err(StoreError::damaged(path, "a record is longer than any may be"));
        }
        key.resize(lengths.0, 0);
        value.resize(lengths.1, 0);
        input.fill(&mut key).map_err(ended)?;
        input.fill(&mut value).map_err(ended)?;
        counted.records += 1;
        counted.bytes += (lengths.0 + lengths.1) as u64;
        each(&key, &value)?;
    }
    let records = u64::from_le_bytes(input.take().map_err(ended)?);
    let sum = input.sum;
    let wanted = u64::from_le_bytes(input.take().map_err(ended)?);
    if records != counted.records || wanted != sum {
        return Err(StoreError::damaged(path, "its checksum is wrong"));
    }
    match input.inner.read(&mut [0]).map_err(ended)? {
        0 => Ok(counted),
        _ => Err(StoreError::damaged(path, "it goes on after its end")),
    }
}

/// Sums up what goes through.
struct Summed<T> {
    inner: T,
    sum: u64,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        // Nothing is written for an empty value, but it is read.
        if bytes.is_empty() {
            return;
        }
        self.sum = hash::parts([&self.sum.to_le_bytes()[..], bytes]);
    }
}

impl<T: Read> Summed<T> {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.add(bytes);
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }
}

impl<T: Write> Write for Summed<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Whole pieces, so that both sides sum the same ones.
        self.inner.write_all(bytes)?;
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
