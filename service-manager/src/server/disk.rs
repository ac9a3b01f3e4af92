//! The directory's store: what the core says is saved, as records, and back.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use base::{NodeId, Span};
use prost::Message;
use store::{Batch, Kind, Opened, StoreError, Writer};
use tokio::sync::oneshot;

use crate::directory::Save;

/// What the records mean. A newer release may count on.
const FORMAT: u64 = 1;
/// Batches that wait; the hub sends one at a time.
const WAITING_MAX: usize = 4;

/// First bytes of keys.
mod key {
    pub const FORMAT: u8 = b'v';
    pub const OWNER: u8 = b'n';
    pub const EPOCH: u8 = b'e';
    pub const EPOCH_MAX: u8 = b'm';
    pub const CLAIM: u8 = b'c';
    pub const IDS: u8 = b'i';
    pub const OFFLINE: u8 = b'o';
}

#[derive(Clone, PartialEq, prost::Message)]
struct SavedClaim {
    #[prost(bytes = "vec", tag = "1")]
    value: Vec<u8>,
    #[prost(uint64, tag = "2")]
    ttl_ms: u64,
    /// Empty: no node's.
    #[prost(string, tag = "3")]
    node: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SavedOffline {
    #[prost(string, repeated, tag = "1")]
    ids: Vec<String>,
}

/// The store of a running directory.
#[derive(Debug)]
pub(super) struct Disk {
    /// Whose data it is.
    owner: String,
    writer: Writer,
    store: Arc<dyn store::Store>,
}

impl Disk {
    /// Opens the store in `dir` and reads what was saved. What another node or another cluster saved is refused: its epochs
    /// and claims say nothing about this one.
    pub fn open(dir: &Path, kind: Kind, owner: String) -> Result<(Self, Vec<Save>), StoreError> {
        let Opened { store, .. } = store::open(dir, kind, &store::Options::default())?;
        if let Some(found) = store.get(&[key::OWNER])?.filter(|found| *found != owner.as_bytes()) {
            let (path, found) = (dir.to_owned(), String::from_utf8_lossy(&found).into_owned());
            return Err(StoreError::OtherNode { path, found, wanted: owner });
        }
        let saved = load(&*store, dir)?;
        let writer = Writer::start(store.clone(), WAITING_MAX)
            .map_err(|error| StoreError::Io { path: dir.to_owned(), text: error.to_string() })?;
        Ok((Self { owner, writer, store }, saved))
    }

    /// Returns when everything is on the disk.
    pub async fn save(&self, saves: Vec<Save>) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.put([key::FORMAT], FORMAT.to_le_bytes());
        batch.put([key::OWNER], self.owner.as_bytes());
        saves.into_iter().for_each(|save| change(&mut batch, save));
        let (sender, done) = oneshot::channel();
        // Nobody else listens.
        self.writer.submit(batch, move |written| drop(sender.send(written)))?;
        done.await.unwrap_or_else(|_| Err(StoreError::Failed("its writer has ended".to_owned())))
    }

    pub fn size_bytes(&self) -> u64 {
        self.store.size_bytes().unwrap_or_default()
    }
}

fn record(tag: u8, name: &str) -> Vec<u8> {
    [&[tag], name.as_bytes()].concat()
}

fn change(batch: &mut Batch, save: Save) {
    match save {
        Save::Epoch { node, epoch } => batch.put(record(key::EPOCH, node.as_str()), epoch.to_le_bytes()),
        Save::ForgetEpoch { node } => batch.remove(record(key::EPOCH, node.as_str())),
        Save::EpochMax { epoch } => batch.put([key::EPOCH_MAX], epoch.to_le_bytes()),
        Save::Claim { key, value, ttl, node } => {
            let node = node.map_or_else(String::new, |node| node.as_str().to_owned());
            let claim = SavedClaim { value: value.into(), ttl_ms: ttl.as_millis(), node };
            batch.put(record(key::CLAIM, &key), claim.encode_to_vec())
        }
        Save::Unclaim { key } => batch.remove(record(key::CLAIM, &key)),
        Save::Ids { name, next } => batch.put(record(key::IDS, &name), next.to_le_bytes()),
        Save::Offline { node, ids } if ids.is_empty() => batch.remove(record(key::OFFLINE, node.as_str())),
        Save::Offline { node, ids } => {
            batch.put(record(key::OFFLINE, node.as_str()), SavedOffline { ids }.encode_to_vec())
        }
    };
}

fn load(store: &dyn store::Store, dir: &Path) -> Result<Vec<Save>, StoreError> {
    let (mut saved, mut bad) = (Vec::new(), None);
    store.range(Bound::Unbounded, Bound::Unbounded, &mut |key, value| {
        match read(key, value) {
            Ok(save) => saved.extend(save),
            Err(error) => bad = Some((key.escape_ascii().to_string(), error)),
        }
        match bad {
            None => std::ops::ControlFlow::Continue(()),
            Some(_) => std::ops::ControlFlow::Break(()),
        }
    })?;
    let path = dir.to_owned();
    match bad {
        None => Ok(saved),
        Some((_, Unreadable::Newer(found))) => {
            let known = FORMAT as u32;
            Err(StoreError::Newer { path, found: u32::try_from(found).unwrap_or(u32::MAX), known })
        }
        Some((key, Unreadable::Odd(what))) => {
            Err(StoreError::Damaged { path, what: format!("the record {key} is no directory's: {what}") })
        }
    }
}

#[derive(Debug)]
enum Unreadable {
    Newer(u64),
    Odd(String),
}

fn read(key: &[u8], value: &[u8]) -> Result<Option<Save>, Unreadable> {
    let odd = |what: &str| Unreadable::Odd(what.to_owned());
    let (&tag, name) = key.split_first().ok_or_else(|| odd("its key is empty"))?;
    let name = || std::str::from_utf8(name).map_err(|_| odd("its key is no text"));
    let node = |name: &str| NodeId::new(name).map_err(|error| Unreadable::Odd(error.to_string()));
    let number = || value.try_into().map(u64::from_le_bytes).map_err(|_| odd("it is no number"));
    Ok(Some(match tag {
        key::FORMAT => match number()? {
            FORMAT => return Ok(None),
            newer => return Err(Unreadable::Newer(newer)),
        },
        // Judged before.
        key::OWNER => return Ok(None),
        key::EPOCH => Save::Epoch { node: node(name()?)?, epoch: number()? },
        key::EPOCH_MAX => Save::EpochMax { epoch: number()? },
        key::CLAIM => {
            let claim = SavedClaim::decode(value).map_err(|error| Unreadable::Odd(error.to_string()))?;
            let owner = if claim.node.is_empty() { None } else { Some(node(&claim.node)?) };
            let (key, value, ttl) = (name()?.to_owned(), claim.value.into(), Span::millis(claim.ttl_ms));
            Save::Claim { key, value, ttl, node: owner }
        }
        key::OFFLINE => {
            let saved = SavedOffline::decode(value).map_err(|error| Unreadable::Odd(error.to_string()))?;
            Save::Offline { node: node(name()?)?, ids: saved.ids }
        }
        key::IDS => Save::Ids { name: name()?.to_owned(), next: number()? },
        other => return Err(Unreadable::Odd(format!("nothing is kept under {other}"))),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn save() -> impl Strategy<Value = Save> {
        let node = || "[a-z]{1,8}".prop_map(|name| NodeId::new(&name).unwrap());
        prop_oneof![
            (node(), any::<u64>()).prop_map(|(node, epoch)| Save::Epoch { node, epoch }),
            any::<u64>().prop_map(|epoch| Save::EpochMax { epoch }),
            (
                "\\PC{1,20}",
                prop::collection::vec(any::<u8>(), 0..20),
                0..u64::from(u32::MAX),
                prop::option::of(node())
            )
                .prop_map(|(key, value, ttl, node)| Save::Claim {
                    key,
                    value: value.into(),
                    ttl: Span::millis(ttl),
                    node
                }),
            ("\\PC{1,20}", any::<u64>()).prop_map(|(name, next)| Save::Ids { name, next }),
            (node(), prop::collection::vec("\\PC{1,9}", 1..4))
                .prop_map(|(node, ids)| Save::Offline { node, ids }),
        ]
    }

    fn written(save: &Save) -> (Vec<u8>, Vec<u8>) {
        let mut batch = Batch::default();
        change(&mut batch, save.clone());
        match &batch.changes()[0] {
            store::Change::Put { key, value } => (key.clone(), value.clone()),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn what_is_saved_is_read_back(save in save()) {
            let (key, value) = written(&save);
            prop_assert_eq!(read(&key, &value).unwrap(), Some(save));
        }

        #[test]
        fn nothing_that_stands_there_panics(key in prop::collection::vec(any::<u8>(), 0..20), value in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = read(&key, &value);
        }
    }

    /// Holds: BI-116.
    #[test]
    fn a_newer_directorys_store_and_anothers_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let put = |key: &[u8], value: &[u8]| {
            let opened = store::open(dir.path(), Kind::Redb, &store::Options::default()).unwrap();
            let mut batch = Batch::default();
            batch.put(key, value);
            opened.store.write(&batch, store::Durability::Durable).unwrap();
        };
        put(b"v", &2u64.to_le_bytes());
        let newer = Disk::open(dir.path(), Kind::Redb, "us".to_owned()).map(|_| ()).unwrap_err();
        assert!(matches!(newer, StoreError::Newer { found: 2, known: 1, .. }), "{newer}");
        put(b"v", &1u64.to_le_bytes());
        assert_eq!(Disk::open(dir.path(), Kind::Redb, "us".to_owned()).unwrap().1, Vec::new());
        put(b"score/1", b"9");
        let other = Disk::open(dir.path(), Kind::Redb, "us".to_owned()).map(|_| ()).unwrap_err();
        assert!(other.to_string().contains("score/1"), "{other}");
    }
}
