//! The faults of the ancestor's cache and transactions, each as a test that it would have failed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Epoch, Span};
use futures_util::FutureExt;
use tables::{Backend, Error, Options, Settings};

use crate::faulty::Faulty;
use crate::world::{Account, Purse, alone, backend, pair, purse, settings};

/// Holds: A1, A2, Q36.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_gives_nothing_away_that_is_not_written() {
    let backend = backend();
    let (a, b) = pair(&backend);
    let (of_a, of_b) = (a.table::<u64, Purse>().unwrap(), b.table::<u64, Purse>().unwrap());
    let adding = tokio::spawn({
        let a = a.clone();
        async move {
            let mut added = 0;
            loop {
                let result = a.run(|tx| {
                    of_a.get_or_default(tx, &1)?.coins += 1;
                    Ok::<_, Error>(())
                });
                match result.await {
                    Ok(()) => added += 1,
                    // Whoever races with the stop is told; nothing of it happens.
                    Err(error) => return (added, error),
                }
            }
        }
    });
    let mut added = 0;
    for n in 0..200 {
        if n == 100 {
            a.stop().await;
        }
        b.run(|tx| {
            of_b.get_or_default(tx, &1)?.coins += 1;
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
        added += 1;
    }
    let (by_a, error) = adding.await.unwrap();
    assert_eq!(error, Error::Stopping);
    let coins = b.run(|tx| of_b.get(tx, &1)).await.unwrap().unwrap().coins;
    assert_eq!(coins, by_a + added);
}

/// A value that others have made clean, that was loaded again and that memory is short for, is still there.
///
/// Holds: A35, A79.
#[tokio::test]
async fn nothing_is_lost_when_memory_is_short() {
    let backend = backend();
    let small = Settings { cache_bytes_max: 64 * 1024, ..settings("game-1") };
    let db = tables::Db::embedded(small, backend, Epoch(1)).unwrap();
    let accounts = db.table::<String, Account>().unwrap();
    for round in 0..3 {
        for n in 0..1_000 {
            let name = format!("account {n}");
            let coins = db.run(|tx| {
                let account = accounts.get_or_default(tx, &name)?;
                account.coins += 1;
                Ok::<_, Error>(account.coins)
            });
            assert_eq!(coins.await.unwrap(), round + 1, "{name}");
        }
    }
    let status = db.status();
    assert!(status.evicted > 1_000 && status.bytes < 200 * 1024, "{status:?}");
}

/// What is written of one record is never older than what was written of it before.
///
/// Holds: A36.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_record_is_written_in_the_order_of_its_commits() {
    let faulty = Faulty::new(backend());
    let backend: Arc<dyn Backend> = faulty.clone();
    let db = alone(&backend, 1);
    let (purses, accounts) = (db.table::<u64, Purse>().unwrap(), db.table::<String, Account>().unwrap());
    let writing = (0..4).map(|task: u64| {
        let (db, purses, accounts) = (db.clone(), purses.clone(), accounts.clone());
        tokio::spawn(async move {
            for n in 0..200 {
                db.run(|tx| {
                    purses.get_or_default(tx, &1)?.coins += 1;
                    // Every now and then one whose answer waits.
                    if n % 10 == task {
                        accounts.get_or_default(tx, &"all".to_owned())?.coins += 1;
                    }
                    Ok::<_, Error>(())
                })
                .await
                .unwrap();
            }
        })
    });
    for one in writing.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    db.stop().await;
    let written = faulty.written.lock();
    let purse: Vec<u64> =
        written.iter().filter(|(key, _)| key.len() == 8).map(|(_, version)| *version).collect();
    assert!(purse.len() > 10 && purse.is_sorted(), "{purse:?}");
    assert_eq!(purse.last(), Some(&800));
}

/// A storage that fails while others want the record costs time, and nothing else: who waited is denied, the provider
/// lives, and what it had committed is there when the storage is.
///
/// Holds: A37, A38, A21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_storage_loses_nothing() {
    let faulty = Faulty::new(backend());
    let backend: Arc<dyn Backend> = faulty.clone();
    let (a, b) = pair(&backend);
    let (of_a, of_b) = (a.table::<u64, Purse>().unwrap(), b.table::<u64, Purse>().unwrap());
    a.run(|tx| of_a.put(tx, &1, purse(1))).await.unwrap();
    faulty.set_broken(true);
    a.run(|tx| of_a.put(tx, &1, purse(2))).await.unwrap();
    let accounts = a.table::<String, Account>().unwrap();
    let options = Options { timeout: Span::millis(300), ..Options::default() };
    let refused = b.run_with(options, |tx| of_b.get(tx, &1)).await.unwrap_err();
    assert!(matches!(refused, Error::Timeout(_) | Error::Denied { .. }), "{refused}");
    let sync = tokio::spawn({
        let a = a.clone();
        async move { a.run(|tx| accounts.put(tx, &"x".to_owned(), Account { coins: 7 })).await }
    });
    while faulty.failed.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    assert!(a.status().failing.is_some() && a.status().write_errors > 0);
    // Its own are still there.
    faulty.set_broken(false);
    sync.await.unwrap().unwrap();
    assert_eq!(b.run(|tx| of_b.get(tx, &1)).await.unwrap().unwrap().coins, 2);
    assert_eq!(a.status().failing, None);
}

/// Calls and listeners run without any lock: they may use the very records that were committed.
///
/// Holds: A44, A50.
#[tokio::test]
async fn calls_may_use_the_records_themselves() {
    let db = alone(&backend(), 1);
    let purses = db.table::<u64, Purse>().unwrap();
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let look = |what: &'static str| {
        let (db, purses, seen) = (db.clone(), purses.clone(), seen.clone());
        move || {
            let read = db.run(|tx| purses.get(tx, &1)).now_or_never().expect("nobody holds it");
            seen.lock().push((what, read.unwrap().unwrap().coins));
        }
    };
    purses.listen({
        let look = look("heard");
        move |_| look()
    });
    let committed = look("committed");
    db.run(|tx| {
        tx.on_commit(committed.clone());
        purses.put(tx, &1, purse(5))
    })
    .await
    .unwrap();
    assert_eq!(*seen.lock(), [("heard", 5), ("committed", 5)]);
}

/// A transaction that is larger than what memory is for comes to its end.
///
/// Holds: A45.
#[tokio::test]
async fn a_transaction_may_be_larger_than_memory() {
    let small = Settings { cache_bytes_max: 8 * 1024, ..settings("game-1") };
    let db = tables::Db::embedded(small, backend(), Epoch(1)).unwrap();
    let purses = db.table::<u64, Purse>().unwrap();
    let keys: Vec<u64> = (0..300).collect();
    for _ in 0..2 {
        db.run(|tx| {
            for key in &keys {
                purses.get_or_default(tx, key)?.coins += 1;
            }
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    }
    assert_eq!(db.run(|tx| purses.get(tx, &299)).await.unwrap().unwrap().coins, 2);
}

/// Parts within parts cost what they write, not what was written before them; and a value that was given out stays as it
/// was.
///
/// Holds: A51, A52.
#[tokio::test]
async fn parts_are_cheap_and_values_stay_what_they_were() {
    let db = alone(&backend(), 1);
    let purses = db.table::<u64, Purse>().unwrap();
    let before = db
        .run(|tx| {
            for key in 0..2_000 {
                purses.put(tx, &key, purse(1))?;
            }
            let before = purses.get(tx, &7)?;
            for _ in 0..20_000 {
                let part: Result<(), Error> = tx.nested(|tx| {
                    purses.get_or_default(tx, &7)?.coins += 1;
                    Err(Error::Stopping)
                });
                assert!(part.is_err());
            }
            purses.get_or_default(tx, &7)?.coins = 9;
            Ok::<_, Error>(before)
        })
        .await
        .unwrap();
    assert_eq!(before.unwrap().coins, 1);
    assert_eq!(db.run(|tx| purses.get(tx, &7)).await.unwrap().unwrap().coins, 9);
}

/// A reader elsewhere costs the writer one question when it writes again, and none when it reads.
///
/// Holds: A20, Z-65.
#[tokio::test]
async fn a_writer_goes_on_reading_what_others_read() {
    let backend = backend();
    let (a, b) = pair(&backend);
    let (of_a, of_b) = (a.table::<u64, Purse>().unwrap(), b.table::<u64, Purse>().unwrap());
    a.run(|tx| of_a.put(tx, &1, purse(1))).await.unwrap();
    let asked = a.status().asked;
    assert_eq!(b.run(|tx| of_b.get(tx, &1)).await.unwrap().unwrap().coins, 1);
    for _ in 0..10 {
        assert_eq!(a.run(|tx| of_a.get(tx, &1)).await.unwrap().unwrap().coins, 1);
    }
    assert_eq!(a.status().asked, asked);
    assert_eq!(b.status().asked, 1);
    a.run(|tx| of_a.put(tx, &1, purse(2))).await.unwrap();
    assert_eq!(a.status().asked, asked + 1);
}

/// Readers that never rest do not keep a writer waiting.
///
/// Holds: Z-56.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_do_not_starve_a_writer() {
    let backend = backend();
    let (a, b) = pair(&backend);
    let (of_a, of_b) = (a.table::<u64, Purse>().unwrap(), b.table::<u64, Purse>().unwrap());
    let stop = tokio_util::sync::CancellationToken::new();
    let reading = (0..4).map(|_| {
        let (b, of_b, stop) = (b.clone(), of_b.clone(), stop.clone());
        tokio::spawn(async move {
            let mut read = 0_u64;
            while !stop.is_cancelled() {
                b.run(|tx| of_b.get(tx, &1)).await.unwrap();
                read += 1;
                tokio::task::yield_now().await;
            }
            read
        })
    });
    let reading: Vec<_> = reading.collect();
    for n in 0..50 {
        let options = Options { timeout: Span::secs(1), ..Options::default() };
        a.run_with(options, |tx| of_a.put(tx, &1, purse(n))).await.unwrap();
    }
    stop.cancel();
    for one in reading {
        assert!(one.await.unwrap() > 0);
    }
}
