//! What every backend promises, whichever it is.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Epoch, Fence, NodeId};
use bytes::Bytes;
use store::{Durability, Each, Kind, Memory, Options, Store, StoreError, StoreId};
use tables::backend::{
    Applied, BATCH_BYTES_MAX, BATCH_RECORDS_MAX, Batch, Change, Csn, Granted, KEY_BYTES_MAX,
    RECORD_BYTES_MAX, TableId,
};
use tables::{Backend, BackendError, Local};

const ROLES: TableId = TableId(7);
const BAGS: TableId = TableId(8);

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn fence(session: u64) -> Fence {
    Fence::new(Epoch(9), session)
}

fn put(table: TableId, key: &str, seq: u64, value: &str) -> Change {
    let (key, value) = (Bytes::from(key.to_owned()), Some(Bytes::from(value.to_owned())));
    Change { table, key, granted: Granted { epoch: Epoch(9), seq }, version: seq * 10, value }
}

fn remove(table: TableId, key: &str, seq: u64) -> Change {
    Change { value: None, ..put(table, key, seq, "") }
}

/// What `game-1` committed from `first` to `last`.
fn batch(session: u64, first: u64, last: u64, changes: Vec<Change>) -> Batch {
    Batch { node: node("game-1"), fence: fence(session), first: Csn(first), last: Csn(last), changes }
}

async fn value(backend: &dyn Backend, table: TableId, key: &str) -> Option<String> {
    let stored = backend.load(table, key.as_bytes()).await.unwrap()?;
    Some(String::from_utf8(stored.value.to_vec()).unwrap())
}

/// Runs a test over each backend. `again` closes and opens it.
async fn each(test: impl AsyncFn(&str, Local, &dyn Fn(Local) -> Local)) {
    test("memory", Local::memory(StoreId(1)).unwrap(), &|backend| backend).await;
    for kind in Kind::ALL {
        let dir = tempfile::tempdir().unwrap();
        let open = || Local::new(&store::open(dir.path(), kind, &Options::default()).unwrap()).unwrap();
        test(kind.as_str(), open(), &|backend| {
            drop(backend);
            open()
        })
        .await;
    }
}

#[tokio::test]
async fn what_is_applied_is_loaded_also_after_opening_again() {
    each(async |name, backend, again| {
        assert_eq!((backend.name(), value(&backend, ROLES, "a").await), (name, None));
        assert_eq!(backend.durable(node("game-1")).await.unwrap(), None);
        let changes = vec![put(ROLES, "a", 1, "1"), put(ROLES, "b", 2, "2"), put(BAGS, "a", 3, "")];
        assert_eq!(backend.apply(batch(1, 1, 3, changes)).await, Ok(Applied::Now));
        let changes = vec![put(ROLES, "a", 1, "11"), remove(ROLES, "b", 4)];
        assert_eq!(backend.apply(batch(1, 4, 4, changes)).await, Ok(Applied::Now));
        let id = backend.id();
        let backend = again(backend);
        assert!(id.is_some() && backend.id() == id);
        let stored = backend.load(ROLES, b"a").await.unwrap().unwrap();
        assert_eq!(
            (stored.granted, stored.version, &stored.value[..]),
            (Granted { epoch: Epoch(9), seq: 1 }, 10, &b"11"[..])
        );
        assert_eq!(
            (value(&backend, ROLES, "b").await, value(&backend, BAGS, "a").await),
            (None, Some(String::new()))
        );
        assert_eq!(backend.durable(node("game-1")).await.unwrap(), Some((fence(1), Csn(4))));
    })
    .await;
}

/// Holds: I9, Z-52, Z-60.
#[tokio::test]
async fn who_was_evicted_writes_nothing_any_more() {
    each(async |_, backend, again| {
        backend.apply(batch(1, 1, 1, vec![put(ROLES, "a", 1, "old")])).await.unwrap();
        backend.raise_fence(Some(node("game-1")), fence(1).next()).await.unwrap();
        // With less, and said again, it stays as it is.
        backend.raise_fence(Some(node("game-1")), fence(1)).await.unwrap();
        let backend = again(backend);
        let late = batch(1, 2, 2, vec![put(ROLES, "b", 2, "late"), put(ROLES, "a", 2, "late")]);
        let refused = backend.apply(late).await.unwrap_err();
        let below = fence(2);
        assert_eq!(refused, BackendError::Fenced { node: node("game-1"), fence: fence(1), below });
        assert_eq!(
            (value(&backend, ROLES, "a").await.as_deref(), value(&backend, ROLES, "b").await),
            (Some("old"), None)
        );
        // Others are not concerned, and its next session is not.
        let other = Batch { node: node("game-2"), ..batch(1, 1, 1, vec![put(ROLES, "a", 3, "new")]) };
        assert_eq!(backend.apply(other).await, Ok(Applied::Now));
        assert_eq!(backend.apply(batch(2, 1, 1, vec![put(ROLES, "b", 4, "new")])).await, Ok(Applied::Now));
        // Everybody of an earlier life of the arbiter.
        backend.raise_fence(None, Fence::new(Epoch(10), 0)).await.unwrap();
        for name in ["game-1", "game-2", "game-3"] {
            let late = Batch { node: node(name), ..batch(5, 2, 2, Vec::new()) };
            assert!(matches!(backend.apply(late).await, Err(BackendError::Fenced { .. })), "{name}");
        }
    })
    .await;
}

/// Also when nobody has raised a fence.
#[tokio::test]
async fn a_session_is_over_when_the_next_one_of_its_node_has_written() {
    each(async |_, backend, _| {
        backend.apply(batch(1, 1, 1, Vec::new())).await.unwrap();
        backend.apply(batch(2, 1, 1, Vec::new())).await.unwrap();
        assert!(matches!(backend.apply(batch(1, 2, 2, Vec::new())).await, Err(BackendError::Fenced { .. })));
    })
    .await;
}

/// Holds: I5, Z-52.
#[tokio::test]
async fn a_record_that_was_granted_since_refuses_the_whole_batch() {
    each(async |_, backend, _| {
        let other = Batch { node: node("game-2"), ..batch(2, 1, 1, vec![put(ROLES, "a", 5, "theirs")]) };
        backend.apply(other).await.unwrap();
        let late = batch(1, 1, 1, vec![put(ROLES, "b", 9, "ours"), put(ROLES, "a", 4, "ours")]);
        let refused = backend.apply(late).await.unwrap_err();
        assert!(matches!(refused, BackendError::Superseded { table: ROLES, .. }), "{refused}");
        assert_eq!(
            (value(&backend, ROLES, "a").await.as_deref(), value(&backend, ROLES, "b").await),
            (Some("theirs"), None)
        );
        // A later start of the arbiter counts from one again.
        let mut change = put(ROLES, "a", 1, "later");
        change.granted.epoch = Epoch(10);
        assert_eq!(backend.apply(batch(1, 1, 1, vec![change])).await, Ok(Applied::Now));
    })
    .await;
}

#[tokio::test]
async fn a_batch_that_is_said_again_is_made_once_and_none_is_left_out() {
    each(async |_, backend, again| {
        backend.apply(batch(1, 1, 4, vec![put(ROLES, "a", 1, "1")])).await.unwrap();
        let backend = again(backend);
        assert_eq!(
            backend.apply(batch(1, 1, 4, vec![put(ROLES, "a", 1, "twice")])).await,
            Ok(Applied::Before)
        );
        assert_eq!(value(&backend, ROLES, "a").await.as_deref(), Some("1"));
        for (first, last) in [(6, 7), (4, 6)] {
            let refused = backend.apply(batch(1, first, last, vec![put(ROLES, "a", 1, "x")])).await;
            let durable = Csn(4);
            assert_eq!(refused, Err(BackendError::Order { first: Csn(first), last: Csn(last), durable }));
        }
        assert_eq!(backend.apply(batch(1, 5, 7, Vec::new())).await, Ok(Applied::Now));
        // Another session counts from anywhere.
        assert_eq!(backend.apply(batch(2, 40, 41, Vec::new())).await, Ok(Applied::Now));
        assert_eq!(backend.durable(node("game-1")).await.unwrap(), Some((fence(2), Csn(41))));
    })
    .await;
}

/// Batches that wait together are made in order, and each sees those before it.
#[tokio::test]
async fn many_that_wait_are_judged_in_order() {
    each(async |_, backend, _| {
        let all: Vec<_> = (1..=50)
            .map(|n| backend.apply(batch(1, n, n, vec![put(ROLES, "a", n, &n.to_string())])))
            .collect();
        let raise = backend.raise_fence(Some(node("game-1")), fence(2));
        let late = backend.apply(batch(1, 51, 51, vec![put(ROLES, "a", 51, "late")]));
        let stale = Batch { node: node("game-2"), ..batch(9, 1, 1, vec![put(ROLES, "a", 49, "stale")]) };
        let stale = backend.apply(stale);
        for applied in all {
            assert_eq!(applied.await, Ok(Applied::Now));
        }
        raise.await.unwrap();
        assert!(matches!(late.await, Err(BackendError::Fenced { .. })));
        assert!(matches!(stale.await, Err(BackendError::Superseded { .. })));
        assert_eq!(value(&backend, ROLES, "a").await.as_deref(), Some("50"));
    })
    .await;
}

#[tokio::test]
async fn what_is_beyond_the_bounds_is_refused_and_changes_nothing() {
    each(async |_, backend, _| {
        let of = |key: usize, value: usize| {
            let (key, value) = (Bytes::from(vec![b'k'; key]), Some(Bytes::from(vec![0; value])));
            Change { key, value, ..put(ROLES, "", 1, "") }
        };
        let half = BATCH_BYTES_MAX / 2;
        let bad = [
            vec![put(ROLES, "a", 1, "1"), of(0, 1)],
            vec![of(KEY_BYTES_MAX + 1, 1)],
            vec![of(1, RECORD_BYTES_MAX + 1)],
            vec![of(1, half), of(2, half), of(3, 1)],
            vec![put(ROLES, "a", 1, "1"); BATCH_RECORDS_MAX + 1],
        ];
        for changes in bad {
            assert!(matches!(backend.apply(batch(1, 1, 1, changes)).await, Err(BackendError::Bounds { .. })));
        }
        assert!(matches!(backend.apply(batch(1, 2, 1, Vec::new())).await, Err(BackendError::Bounds { .. })));
        assert!(matches!(backend.apply(batch(1, 0, 1, Vec::new())).await, Err(BackendError::Bounds { .. })));
        assert_eq!(
            (value(&backend, ROLES, "a").await, backend.durable(node("game-1")).await),
            (None, Ok(None))
        );
        let large = vec![of(KEY_BYTES_MAX, RECORD_BYTES_MAX)];
        assert_eq!(backend.apply(batch(1, 1, 1, large)).await, Ok(Applied::Now));
    })
    .await;
}

#[tokio::test]
async fn a_scan_goes_through_one_table_in_order_and_in_pages() {
    each(async |_, backend, _| {
        let mut changes: Vec<_> = ["b", "a", "c", "ab"].map(|key| put(ROLES, key, 1, key)).into();
        changes.extend([put(TableId(6), "z", 1, ""), put(BAGS, "0", 1, "")]);
        backend.apply(batch(1, 1, 1, changes)).await.unwrap();
        let page = async |from: Bound<&[u8]>, count| {
            let found = backend.scan(ROLES, from, count).await.unwrap();
            found.into_iter().map(|(key, _)| String::from_utf8(key.to_vec()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(page(Bound::Unbounded, 9).await, ["a", "ab", "b", "c"]);
        assert_eq!(page(Bound::Unbounded, 2).await, ["a", "ab"]);
        assert_eq!(page(Bound::Excluded(b"ab"), 9).await, ["b", "c"]);
        assert_eq!(page(Bound::Included(b"ab"), 1).await, ["ab"]);
        assert!(page(Bound::Included(b"d"), 9).await.is_empty());
    })
    .await;
}

/// A store that can be made to fail.
#[derive(Debug, Default)]
struct Failing {
    memory: Memory,
    fails: AtomicBool,
}

impl Store for Failing {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.memory.get(key)
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, each: &mut Each<'_>) -> Result<(), StoreError> {
        self.memory.range(from, to, each)
    }

    fn write(&self, batch: &store::Batch, durability: Durability) -> Result<(), StoreError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::Failed("the test says so".to_owned()));
        }
        self.memory.write(batch, durability)
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}

/// What was refused by the disk is not taken for written, neither the records nor how far they go.
///
/// Holds: I7.
#[tokio::test]
async fn a_failed_write_is_said_and_forgotten() {
    let store = Arc::new(Failing::default());
    let backend = Local::over("failing", StoreId(1), store.clone()).unwrap();
    backend.apply(batch(1, 1, 1, vec![put(ROLES, "a", 1, "1")])).await.unwrap();
    store.fails.store(true, Ordering::SeqCst);
    let failed = backend.apply(batch(1, 2, 2, vec![put(ROLES, "a", 2, "2")])).await;
    assert!(matches!(failed, Err(BackendError::Storage(_))));
    assert!(matches!(backend.raise_fence(None, fence(7)).await, Err(BackendError::Storage(_))));
    store.fails.store(false, Ordering::SeqCst);
    assert_eq!(value(&backend, ROLES, "a").await.as_deref(), Some("1"));
    assert_eq!(backend.apply(batch(1, 2, 2, vec![put(ROLES, "a", 2, "2")])).await, Ok(Applied::Now));
    assert_eq!(value(&backend, ROLES, "a").await.as_deref(), Some("2"));
}
