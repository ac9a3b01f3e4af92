//! What every store promises, whichever it is.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use store::{Batch, Durability, KEY_BYTES_MAX, Kind, Memory, Options, Store, StoreError, VALUE_BYTES_MAX};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn all(store: &dyn Store, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Records {
    let mut records = Records::new();
    let mut last: Option<Vec<u8>> = None;
    store
        .range(from, to, &mut |key, value| {
            assert!(last.as_deref() < Some(key), "keys come in order, once");
            last = Some(key.to_vec());
            records.insert(key.to_vec(), value.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    records
}

fn everything(store: &dyn Store) -> Records {
    all(store, Bound::Unbounded, Bound::Unbounded)
}

fn open(dir: &Path, kind: Kind) -> Arc<dyn Store> {
    store::open(dir, kind, &Options::default()).unwrap().store
}

/// Runs a test over each store. `again` closes and opens it.
fn each(test: impl Fn(&str, Arc<dyn Store>, &mut dyn FnMut(Arc<dyn Store>) -> Arc<dyn Store>)) {
    test("memory", Arc::new(Memory::default()), &mut |store| store);
    for kind in Kind::ALL {
        let dir = tempfile::tempdir().unwrap();
        test(kind.as_str(), open(dir.path(), kind), &mut |store| {
            drop(store);
            open(dir.path(), kind)
        });
    }
}

#[test]
fn what_is_written_is_read_also_after_opening_again() {
    each(|name, store, again| {
        assert_eq!(store.get(b"a").unwrap(), None, "{name}");
        assert!(everything(&*store).is_empty());
        let mut batch = Batch::default();
        batch
            .put(*b"a", *b"1")
            .put(*b"b", *b"")
            .put(*b"c", *b"3")
            .remove(*b"c")
            .put(*b"b", *b"2")
            .remove(*b"zz");
        store.write(&batch, Durability::Durable).unwrap();
        store.write(&Batch::default(), Durability::Durable).unwrap();
        let store = again(store);
        let expected = Records::from([(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2".to_vec())]);
        assert_eq!(everything(&*store), expected, "{name}");
        assert_eq!(store.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(store.get(b"c").unwrap(), None);
    });
}

#[test]
fn a_range_has_the_bounds_it_was_given_and_ends_when_told() {
    each(|name, store, _| {
        let mut batch = Batch::default();
        for key in 0..10u8 {
            batch.put([key], [key]);
        }
        store.write(&batch, Durability::Buffered).unwrap();
        let keys = |from, to| all(&*store, from, to).into_keys().map(|key| key[0]).collect::<Vec<_>>();
        let (three, six) = (&[3u8][..], &[6u8][..]);
        assert_eq!(keys(Bound::Included(three), Bound::Excluded(six)), [3, 4, 5], "{name}");
        assert_eq!(keys(Bound::Excluded(three), Bound::Included(six)), [4, 5, 6]);
        assert_eq!(keys(Bound::Unbounded, Bound::Excluded(three)), [0, 1, 2]);
        assert_eq!(keys(Bound::Included(six), Bound::Unbounded), [6, 7, 8, 9]);
        assert_eq!(keys(Bound::Included(three), Bound::Included(three)), [3]);
        for (from, to) in [
            (Bound::Included(six), Bound::Included(three)),
            (Bound::Excluded(three), Bound::Excluded(three)),
            (Bound::Included(three), Bound::Excluded(three)),
        ] {
            assert!(keys(from, to).is_empty(), "{name}: {from:?} {to:?}");
        }
        let mut seen = 0;
        let break_at_two = &mut |_: &[u8], _: &[u8]| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.range(Bound::Unbounded, Bound::Unbounded, break_at_two).unwrap();
        assert_eq!(seen, 2);
        let mut rest = Vec::new();
        batch.put(*b"ab", *b"1").put(*b"ac", *b"2").put(*b"b", *b"3");
        store.write(&batch, Durability::Buffered).unwrap();
        store::range_prefix(&*store, b"a", |key, value| rest.push((key.to_vec(), value.to_vec()))).unwrap();
        assert_eq!(rest, [(b"b".to_vec(), b"1".to_vec()), (b"c".to_vec(), b"2".to_vec())]);
    });
}

#[test]
fn what_is_out_of_bounds_is_refused_and_changes_nothing() {
    each(|name, store, _| {
        for (key, value) in [(0, 1), (KEY_BYTES_MAX + 1, 1), (1, VALUE_BYTES_MAX + 1)] {
            let mut batch = Batch::default();
            batch.put(*b"fine", *b"1").put(vec![7; key], vec![7; value]);
            let refused = store.write(&batch, Durability::Durable);
            assert_eq!(refused, Err(StoreError::Bounds { key, value }), "{name}");
        }
        assert!(everything(&*store).is_empty());
        let mut batch = Batch::default();
        batch.put(vec![7; KEY_BYTES_MAX], vec![7; VALUE_BYTES_MAX]);
        store.write(&batch, Durability::Durable).unwrap();
        let value = store.get(&[7; KEY_BYTES_MAX]).unwrap().unwrap();
        assert!(value.len() == VALUE_BYTES_MAX && value.iter().all(|&byte| byte == 7), "{name}");
        assert!(store.size_bytes().unwrap() >= VALUE_BYTES_MAX as u64, "{name}");
    });
}

#[test]
fn a_directory_belongs_to_one_process_and_to_one_kind() {
    for kind in Kind::ALL {
        let dir = tempfile::tempdir().unwrap();
        let first = store::open(dir.path(), kind, &Options::default()).unwrap();
        assert!(first.fresh && first.kind == kind);
        let second = store::open(dir.path(), kind, &Options::default());
        assert!(matches!(second, Err(StoreError::InUse { .. })), "{second:?}");
        let id = first.id;
        drop(first);
        let again = store::open(dir.path(), kind, &Options::default()).unwrap();
        assert!(!again.fresh);
        assert_eq!(again.id, id);
        drop(again);
        let other = if kind == Kind::Sled { Kind::Redb } else { Kind::Sled };
        let refused = store::open(dir.path(), other, &Options::default());
        assert!(matches!(refused, Err(StoreError::OtherKind { .. })), "{refused:?}");
    }
}

#[test]
fn damage_is_an_error_that_names_the_file_and_never_a_wrong_value() {
    for kind in Kind::ALL {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind);
        for batch in 0..20u32 {
            let mut changes = Batch::default();
            for n in batch * 100..(batch + 1) * 100 {
                changes.put(n.to_be_bytes(), n.to_be_bytes().repeat(8));
            }
            store.write(&changes, Durability::Durable).unwrap();
        }
        drop(store);
        let (clean, mut found) = (tempfile::tempdir().unwrap(), 0);
        copy(dir.path(), clean.path());
        for round in 0..24 {
            let dir = tempfile::tempdir().unwrap();
            copy(clean.path(), dir.path());
            flip(dir.path(), round);
            let opened = store::open(dir.path(), kind, &Options::default());
            let read = opened.and_then(|opened| {
                let (mut wrong, mut records) = (None, 0);
                opened.store.range(Bound::Unbounded, Bound::Unbounded, &mut |key, value| {
                    records += 1;
                    if value != key.repeat(8) {
                        wrong = Some(key.to_vec());
                    }
                    ControlFlow::Continue(())
                })?;
                assert_eq!(wrong, None, "{kind}, round {round}: a wrong value");
                assert_eq!(records, 2_000, "{kind}, round {round}: records are missing");
                Ok(())
            });
            if let Err(error) = read {
                assert!(error.to_string().contains(dir.path().to_str().unwrap()), "{error}");
                assert!(error.is_fatal());
                found += 1;
            }
        }
        assert!(found > 0, "{kind}: not one of 24 damages was noticed");
    }
}

/// A file that is gone is damage: a store that opened as a new one would have forgotten all that it acknowledged.
///
/// Holds: BI-117.
#[test]
fn a_file_that_is_gone_is_noticed() {
    for (kind, gone) in [
        (Kind::Redb, "records.redb"),
        (Kind::Redb, "STORE"),
        (Kind::Sled, "sled/db"),
        (Kind::Sled, "FLUSHED"),
        (Kind::Sled, "STORE"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind);
        let mut batch = Batch::default();
        batch.put(*b"key", *b"value");
        store.write(&batch, Durability::Durable).unwrap();
        drop(store);
        std::fs::remove_file(dir.path().join(gone)).unwrap();
        for wanted in Kind::ALL {
            let opened = store::open(dir.path(), wanted, &Options::default()).map(|_| ());
            let other = wanted != kind && gone != "STORE";
            match opened {
                Err(StoreError::OtherKind { .. }) if other => {}
                Err(StoreError::Damaged { path, what }) if !other => {
                    assert!(
                        path.ends_with(gone) && what.contains("missing"),
                        "{kind}, {gone}: {path:?} {what}"
                    );
                }
                opened => panic!("{kind} without {gone}, opened as {wanted}: {opened:?}"),
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in from.read_dir().unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            std::fs::create_dir_all(&to).unwrap();
            copy(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

/// Flips one byte of the largest file.
fn flip(dir: &Path, round: usize) {
    fn largest(dir: &Path) -> (u64, std::path::PathBuf) {
        let sized = |path: std::path::PathBuf| {
            if path.is_dir() { largest(&path) } else { (path.metadata().unwrap().len(), path) }
        };
        dir.read_dir().unwrap().map(|entry| sized(entry.unwrap().path())).max().unwrap_or_default()
    }
    let (_, path) = largest(dir);
    let mut bytes = std::fs::read(&path).unwrap();
    // Only where something stands: the rest of the file is room.
    let used: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
    let at = used[used.len() * (2 * round + 1) / 48];
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn an_export_moves_everything_to_another_kind() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = to.path().join("backup");
    let opened = store::open(from.path(), Kind::Sled, &Options::default()).unwrap();
    let mut batch = Batch::default();
    for n in 0..3_000u32 {
        batch.put(n.to_be_bytes(), vec![n as u8; n as usize]);
    }
    opened.store.write(&batch, Durability::Durable).unwrap();
    let exported = store::dump::export(&opened, &file).unwrap();
    assert_eq!(exported.records, 3_000);
    assert_eq!(store::dump::verify(&*opened.store).unwrap(), exported);
    assert_eq!(store::dump::inspect(&file).unwrap(), (opened.id, exported));
    let dir = to.path().join("new");
    assert_eq!(store::dump::import(&file, &dir, Kind::Redb, &Options::default()).unwrap(), exported);
    let new = store::open(&dir, Kind::Redb, &Options::default()).unwrap();
    assert_eq!(everything(&*new.store), everything(&*opened.store));
    assert_ne!(new.id, opened.id, "two stores never pose as one");
    drop(new);
    let again = store::dump::import(&file, &dir, Kind::Redb, &Options::default());
    assert!(matches!(again, Err(StoreError::OtherKind { .. })), "{again:?}");
}

#[test]
fn a_damaged_export_is_refused_before_anything_is_made_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    let opened = store::open(&dir.path().join("from"), Kind::Redb, &Options::default()).unwrap();
    let mut batch = Batch::default();
    batch.put(*b"key", *b"value").put(*b"other", *b"");
    opened.store.write(&batch, Durability::Durable).unwrap();
    store::dump::export(&opened, &file).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let into = dir.path().join("to");
    let refused = |bytes: &[u8], what: &str| {
        std::fs::write(&file, bytes).unwrap();
        let refused = store::dump::import(&file, &into, Kind::Redb, &Options::default());
        assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{what}: {refused:?}");
        assert!(!into.exists(), "{what}");
    };
    for at in 0..whole.len() {
        refused(&whole[..at], &format!("cut at {at}"));
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            refused(&flipped, &format!("bit {bit} of {at}"));
        }
    }
    refused(&[&whole[..], b"x"].concat(), "longer");
    std::fs::write(&file, &whole).unwrap();
    store::dump::import(&file, &into, Kind::Redb, &Options::default()).unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<(u8, Option<u8>)>, bool),
    Again,
}

fn step() -> impl Strategy<Value = Step> {
    let change = (0..20u8, prop::option::of(any::<u8>()));
    prop_oneof![
        8 => (prop::collection::vec(change, 0..6), any::<bool>()).prop_map(|(changes, durable)| Step::Write(changes, durable)),
        1 => Just(Step::Again),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Whatever is done, a store is an ordered map; what is buffered is there after an orderly end too.
    #[test]
    fn a_store_is_a_map(steps in prop::collection::vec(step(), 1..20)) {
        each(|name, mut store, again| {
            let mut model = Records::new();
            for step in &steps {
                match step {
                    Step::Write(changes, durable) => {
                        let mut batch = Batch::default();
                        for &(key, value) in changes {
                            match value {
                                Some(value) => {
                                    batch.put([key], [value]);
                                    model.insert(vec![key], vec![value]);
                                }
                                None => {
                                    batch.remove([key]);
                                    model.remove(&vec![key]);
                                }
                            }
                        }
                        let durability = if *durable { Durability::Durable } else { Durability::Buffered };
                        store.write(&batch, durability).unwrap();
                    }
                    Step::Again => {
                        store.write(&Batch::default(), Durability::Durable).unwrap();
                        store = again(store.clone_out());
                    }
                }
                assert_eq!(everything(&*store), model, "{name}");
            }
        });
    }
}

/// Gives the only handle away, so that the store closes.
trait CloneOut {
    fn clone_out(&mut self) -> Arc<dyn Store>;
}

impl CloneOut for Arc<dyn Store> {
    fn clone_out(&mut self) -> Arc<dyn Store> {
        std::mem::replace(self, Arc::new(Memory::default()))
    }
}
