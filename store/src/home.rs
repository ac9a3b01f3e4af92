//! A data directory: which kind of store it holds, whose data it is, and that one process opens it at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use base::fault::panic_text;

use crate::{Store, StoreError, redb, sled};

/// The layout of a data directory.
const FORMAT: u32 = 1;
const LABEL: &str = "STORE";
const LOCK: &str = "LOCK";

/// A store that lives on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sled,
    Redb,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Sled, Kind::Redb];

    /// Its name in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Sled => "sled",
            Kind::Redb => "redb",
        }
    }

    /// What is there from the moment on that a directory is labelled.
    const fn files(self) -> &'static [&'static str] {
        match self {
            Kind::Sled => &["sled/db", "FLUSHED"],
            Kind::Redb => &["records.redb"],
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or_else(|| format!("no store is named {name:?}"))
    }
}

/// Names one store for as long as it lives, also on another disk: two directories never pose as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u128);

impl std::fmt::Display for StoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What it may keep in memory of what is on the disk, in bytes.
    pub cache_bytes: u64,
    /// Longer than this, opening has failed.
    pub open_timeout: Duration,
}

impl Default for Options {
    /// 64 MiB and a minute.
    fn default() -> Self {
        Self { cache_bytes: 64 << 20, open_timeout: Duration::from_secs(60) }
    }
}

/// A store and whose data it holds.
#[derive(Debug, Clone)]
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub id: StoreId,
    pub kind: Kind,
    /// The directory was empty before.
    pub fresh: bool,
}

/// Opens the store in `dir`, which is made if it is not there. It is closed when the last clone is dropped.
///
/// Errors: [`StoreError::InUse`], [`OtherKind`](StoreError::OtherKind), [`Newer`](StoreError::Newer),
/// [`Damaged`](StoreError::Damaged), [`Slow`](StoreError::Slow), or what the disk says. Nothing was changed then.
pub fn open(dir: &Path, kind: Kind, options: &Options) -> Result<Opened, StoreError> {
    fs::create_dir_all(dir).map_err(|error| StoreError::io(dir, &error))?;
    let lock = lock(dir)?;
    let label = Label::read(dir)?;
    if let Some(label) = &label
        && label.kind != kind.as_str()
    {
        let (found, wanted) = (label.kind.clone(), kind.to_string());
        return Err(StoreError::OtherKind { path: dir.to_owned(), found, wanted });
    }
    whole(dir, kind, label.is_some())?;
    let (path, options) = (dir.to_owned(), *options);
    let store = within(dir, options.open_timeout, move || -> Result<Arc<dyn Store>, StoreError> {
        Ok(match kind {
            Kind::Sled => Arc::new(sled::Sled::open(&path, lock, &options)?),
            Kind::Redb => Arc::new(redb::Redb::open(&path, lock, &options)?),
        })
    })?;
    let fresh = label.is_none();
    if fresh && !is_empty(&*store)? {
        return Err(StoreError::damaged(&dir.join(LABEL), "it is missing, and there are records"));
    }
    let id = match label {
        Some(label) => label.id,
        None => Label::write(dir, kind)?,
    };
    Ok(Opened { store, id, kind, fresh })
}

/// A labelled directory has the files of its kind, and another has none of the other kind: a store opens as empty where its
/// files are gone, and forgets all that it acknowledged.
fn whole(dir: &Path, kind: Kind, labelled: bool) -> Result<(), StoreError> {
    let there = |file: &&&str| dir.join(file).exists();
    if labelled && let Some(gone) = kind.files().iter().find(|file| !there(file)) {
        return Err(StoreError::damaged(&dir.join(gone), "it is missing"));
    }
    let others = Kind::ALL.into_iter().filter(|other| *other != kind).flat_map(Kind::files);
    match others.into_iter().find(there) {
        Some(other) if !labelled => {
            Err(StoreError::damaged(&dir.join(LABEL), format!("it is missing, and {other} is there")))
        }
        _ => Ok(()),
    }
}

fn is_empty(store: &dyn Store) -> Result<bool, StoreError> {
    let mut empty = true;
    store.range(Bound::Unbounded, Bound::Unbounded, &mut |_, _| {
        empty = false;
        ControlFlow::Break(())
    })?;
    Ok(empty)
}

/// Which kind of store `dir` holds; `None`: none yet.
pub fn kind(dir: &Path) -> Result<Option<Kind>, StoreError> {
    let Some(label) = Label::read(dir)? else { return Ok(None) };
    label.kind.parse().map(Some).map_err(|what| StoreError::damaged(&dir.join(LABEL), what))
}

/// Held as long as the store is open. The system lets go of it when the process ends, however it ends.
fn lock(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| StoreError::io(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: dir.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StoreError::io(&path, &error)),
    }
}

/// Runs `open` on a thread of its own: a store that never comes back from its recovery must not hang the start, and one
/// that panics on damage must not end the process.
fn within<T: Send + 'static>(
    dir: &Path,
    timeout: Duration,
    open: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (sender, receiver) = crossbeam::channel::bounded(1);
    let thread = std::thread::Builder::new().name("store-open".into()).spawn(move || {
        // Nobody waits for what comes too late.
        let _ = sender.send(open());
    });
    let thread = thread.map_err(|error| StoreError::io(dir, &error))?;
    match receiver.recv_timeout(timeout) {
        Ok(opened) => opened,
        Err(crossbeam::channel::RecvTimeoutError::Timeout) => {
            Err(StoreError::Slow { path: dir.to_owned(), timeout_s: timeout.as_secs() })
        }
        Err(crossbeam::channel::RecvTimeoutError::Disconnected) => {
            let panic = thread.join().err();
            Err(StoreError::damaged(
                dir,
                panic.as_deref().and_then(panic_text).unwrap_or("opening it ended early"),
            ))
        }
    }
}

/// The file that says what a data directory is.
#[derive(Debug, PartialEq, Eq)]
struct Label {
    kind: String,
    id: StoreId,
}

impl Label {
    fn read(dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = dir.join(LABEL);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(StoreError::damaged(&path, "it is no text"));
            }
            Err(error) => return Err(StoreError::io(&path, &error)),
        };
        Self::parse(&path, &text).map(Some)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, StoreError> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.ok_or_else(|| StoreError::damaged(path, format!("it names no {name}")))
        };
        let format: u32 = field("linkstead-store")?.parse().map_err(|e| StoreError::damaged(path, e))?;
        if format > FORMAT {
            return Err(StoreError::Newer { path: path.to_owned(), found: format, known: FORMAT });
        }
        let id = u128::from_str_radix(field("id")?, 16).map_err(|e| StoreError::damaged(path, e))?;
        Ok(Self { kind: field("kind")?.to_owned(), id: StoreId(id) })
    }

    /// Labels a new store. Whoever dies before this has written nothing that anybody was promised.
    fn write(dir: &Path, kind: Kind) -> Result<StoreId, StoreError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| StoreError::io(dir, &io::Error::other(error.to_string())))?;
        let id = StoreId(u128::from_le_bytes(bytes));
        let text = format!("linkstead-store {FORMAT}\nkind {kind}\nid {id}\n");
        replace(&dir.join(LABEL), |file| file.write_all(text.as_bytes()))?;
        Ok(id)
    }
}

/// Writes a file that is there whole or not at all, whatever happens.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let part = path.with_extension("part");
    let written = || {
        let mut file = File::create(&part)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&part, path)?;
        sync_dir(path)
    };
    written().map_err(|error| {
        // What is left of a try is of no use, and its loss of no harm.
        let _ = fs::remove_file(&part);
        StoreError::io(path, &error)
    })
}

/// A rename is durable when the directory is.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    let parent: PathBuf = path.parent().map_or_else(|| ".".into(), Path::to_owned);
    let parent = if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent };
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_read_as_it_was_written_and_a_newer_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Label::read(dir.path()).unwrap(), None);
        let id = Label::write(dir.path(), Kind::Redb).unwrap();
        assert_eq!(Label::read(dir.path()).unwrap(), Some(Label { kind: "redb".into(), id }));
        assert_eq!(kind(dir.path()).unwrap(), Some(Kind::Redb));
        let write = |text: &str| fs::write(dir.path().join(LABEL), text).unwrap();
        write(&format!("linkstead-store 9\nkind redb\nid {id}\n"));
        assert!(matches!(Label::read(dir.path()), Err(StoreError::Newer { found: 9, known: 1, .. })));
        for bad in [
            "",
            "linkstead-store 1\n",
            "linkstead-store x\nkind redb\nid 1\n",
            "linkstead-store 1\nkind redb\nid zz\n",
        ] {
            write(bad);
            assert!(matches!(Label::read(dir.path()), Err(StoreError::Damaged { .. })), "{bad:?}");
        }
        fs::write(dir.path().join(LABEL), [0xff, 0xfe]).unwrap();
        assert!(matches!(Label::read(dir.path()), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn an_open_that_hangs_or_panics_is_an_error() {
        let dir = Path::new("/d");
        let (_hold, held) = crossbeam::channel::bounded::<()>(0);
        let hangs = within(dir, Duration::from_millis(10), move || {
            let _ = held.recv();
            Ok(())
        });
        assert!(matches!(hangs, Err(StoreError::Slow { .. })), "{hangs:?}");
        let panics =
            within(dir, Duration::from_secs(60), || -> Result<(), StoreError> { panic!("bad page") });
        assert_eq!(panics, Err(StoreError::damaged(dir, "bad page")));
    }
}
