//! What is to happen after a transaction.

use std::sync::Arc;

use parking_lot::Mutex;
use tables::{Changed, Error};

use crate::world::{Purse, alone, backend, purse};

/// What was called, in order.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn say(&self, text: &str) -> impl FnOnce() + Send + 'static {
        let (said, text) = (self.clone(), text.to_owned());
        move || said.0.lock().push(text)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// Holds: A43.
#[tokio::test]
async fn each_call_is_made_once_and_after_the_end() {
    let db = alone(&backend(), 1);
    let purses = db.table::<u64, Purse>().unwrap();
    let said = Said::default();
    let mut runs = 0;
    db.run(|tx| {
        runs += 1;
        tx.on_commit(said.say("committed"));
        tx.on_abort(said.say("aborted"));
        let undone: Result<(), Error> = tx.nested(|tx| {
            tx.on_commit(said.say("inner committed"));
            tx.on_abort(said.say("inner aborted"));
            Err(Error::Stopping)
        });
        assert_eq!(undone, Err(Error::Stopping));
        purses.put(tx, &1, purse(1))?;
        assert!(said.0.lock().is_empty());
        Ok::<_, Error>(())
    })
    .await
    .unwrap();
    // The record was not at hand at first.
    assert!(runs > 1, "{runs}");
    assert_eq!(said.take(), ["inner aborted", "committed"]);

    let failed = db.run(|tx| {
        tx.on_commit(said.say("committed"));
        tx.on_abort(said.say("aborted"));
        purses.get(tx, &2)?;
        Err::<(), _>(Error::Stopping)
    });
    assert_eq!(failed.await, Err(Error::Stopping));
    assert_eq!(said.take(), ["aborted"]);

    let refused = db.run(|tx| {
        tx.on_abort(said.say("aborted"));
        purses.put(tx, &1, purse(1))?;
        tx.require(tables::Durability::Memory);
        let long = Purse { coins: 1, changes: 1 };
        purses.put(tx, &1, long)?;
        let _ = purses.want(tx, &[1]);
        Err::<(), _>(Error::Unknown)
    });
    assert_eq!(refused.await, Err(Error::Unknown));
    assert_eq!(said.take(), ["aborted"]);
}

/// Also when whoever runs it waits no longer.
///
/// Holds: A43.
#[tokio::test]
async fn a_transaction_that_nobody_waits_for_is_aborted() {
    let backend = backend();
    let (a, b) = crate::world::pair(&backend);
    let (of_a, of_b) = (a.table::<u64, Purse>().unwrap(), b.table::<u64, Purse>().unwrap());
    a.run(|tx| of_a.put(tx, &1, purse(1))).await.unwrap();
    let said = Said::default();
    let running = b.run(|tx| {
        tx.on_abort(said.say("aborted"));
        of_b.put(tx, &1, purse(2))
    });
    // Polled once, it waits for the record.
    assert!(futures_util::poll!(std::pin::pin!(running)).is_pending());
    assert_eq!(said.take(), ["aborted"]);
    // The record is not held up by it.
    assert_eq!(a.run(|tx| of_a.get(tx, &1)).await.unwrap().unwrap().coins, 1);
}

#[tokio::test]
async fn a_panic_of_a_call_harms_nobody() {
    let db = alone(&backend(), 1);
    let purses = db.table::<u64, Purse>().unwrap();
    let said = Said::default();
    db.run(|tx| {
        tx.on_commit(|| panic!("planned"));
        tx.on_commit(said.say("next"));
        purses.put(tx, &1, purse(1))
    })
    .await
    .unwrap();
    assert_eq!(said.take(), ["next"]);
}

/// Listeners hear each change once, in the order of the commits, and may begin transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn listeners_hear_every_change_in_order() {
    let db = alone(&backend(), 1);
    let purses = db.table::<u64, Purse>().unwrap();
    let heard: Arc<Mutex<Vec<Changed<u64, Purse>>>> = Arc::default();
    purses.listen({
        let heard = heard.clone();
        move |change| heard.lock().push(change)
    });
    let writing = (0..4).map(|_| {
        let (db, purses) = (db.clone(), purses.clone());
        tokio::spawn(async move {
            for _ in 0..200 {
                let count = |tx: &mut _| {
                    purses.get_or_default(tx, &1)?.coins += 1;
                    Ok::<_, Error>(())
                };
                db.run(count).await.unwrap();
            }
        })
    });
    for one in writing.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    db.run(|tx| purses.remove(tx, &1)).await.unwrap();
    let heard = heard.lock();
    let coins = |value: &Option<Arc<Purse>>| value.as_ref().map(|purse| purse.coins);
    let expected = |n: i64| (if n == 0 { None } else { Some(n) }, Some(n + 1));
    let all: Vec<_> = heard.iter().map(|change| (coins(&change.before), coins(&change.after))).collect();
    let mut wanted: Vec<_> = (0..800).map(expected).collect();
    wanted.push((Some(800), None));
    assert_eq!(all, wanted);
}
