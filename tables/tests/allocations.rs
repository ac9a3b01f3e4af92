//! Reads of a record that is in memory allocate nothing. A process of its own, since its allocator counts.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use base::{Epoch, NodeId};
use store::StoreId;
use tables::{Backend, Db, Error, Local, Record, Settings, Table, Tx};

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "purse", id = 1, key = u64, durability = "grouped")]
struct Purse {
    #[prost(int64, tag = "1")]
    coins: i64,
    #[prost(uint64, tag = "2")]
    changes: u64,
}

/// Records that one transaction reads: more than it looks through one by one.
const MANY: u64 = 40;

fn change(purses: &Table<u64, Purse>, tx: &mut Tx, key: u64) -> Result<(), Error> {
    let purse = purses.get_or_default(tx, &key)?;
    purse.coins += 1;
    purse.changes += 1;
    Ok(())
}

/// What waits for nothing. By hand, since a runtime may put what it runs in a box.
fn at_once(transaction: impl Future<Output = Result<(), Error>>) {
    let polled = pin!(transaction).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Ready(Ok(())));
}

#[test]
fn reading_what_is_in_memory_allocates_nothing() {
    let backend: Arc<dyn Backend> = Arc::new(Local::memory(StoreId(1)).unwrap());
    let db = Db::embedded(Settings::new(NodeId::new("game-1").unwrap()), backend, Epoch(1)).unwrap();
    let purses = db.table::<u64, Purse>().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let run = |code: &dyn Fn(&mut Tx) -> Result<(), Error>| runtime.block_on(db.run(|tx| code(tx))).unwrap();
    for key in 0..MANY {
        run(&|tx| change(&purses, tx, key));
    }
    let one = |tx: &mut Tx| purses.get(tx, &7).map(|purse| assert!(purse.is_some()));
    let many = |tx: &mut Tx| (0..MANY).try_for_each(|key| purses.get(tx, &key).map(drop));
    // The first run of a thread makes the room that later ones use again.
    run(&many);
    for _ in 0..100 {
        assert_eq!(measure(|| at_once(db.run(one))).count_total, 0);
    }
    assert_eq!(measure(|| at_once(db.run(many))).count_total, 0, "and no more for many");
    // The counter counts: what is written is a copy.
    assert!(measure(|| at_once(db.run(|tx| change(&purses, tx, 7)))).count_total > 0);
}
