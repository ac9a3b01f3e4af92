//! The faults of the ancestor's cache and transactions, each as a test that it would have failed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::{Epoch, Fence, Mono, Span};
use futures_util::FutureExt;
use tables::{Backend, Error, Mode, Options, Settings, Word};

use crate::faulty::{Faulty, grant, provider, say};
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

/// What the arbiter says may be old is read again, also by who had the record already.
///
/// Holds: A19, I6.
#[tokio::test]
async fn an_upgrade_reads_again_what_may_be_old() {
    let backend = backend();
    let (other, _) = pair(&backend);
    let theirs = other.table::<u64, Purse>().unwrap();
    other.run(|tx| theirs.put(tx, &1, purse(1))).await.unwrap();
    other.stop().await;
    let (db, arbiter, hear) = provider(&backend);
    let purses = db.table::<u64, Purse>().unwrap();
    let reading = db.run(|tx| purses.get(tx, &1));
    let granting = async {
        let (request, have) = arbiter.asked(Mode::Share).await;
        assert_eq!(have, 0);
        say(&hear, grant(request, Mode::Share, 3, true));
    };
    let (read, ()) = tokio::join!(reading, granting);
    assert_eq!(read.unwrap().unwrap().coins, 1);
    // Somebody else has changed it since, which only the arbiter knows.
    let (other, _) = crate::world::pair_at(&backend, 6);
    let theirs = other.table::<u64, Purse>().unwrap();
    other.run(|tx| theirs.put(tx, &1, purse(50))).await.unwrap();
    other.stop().await;
    let mut seen = Vec::new();
    let writing = db.run(|tx| {
        let purse = purses.get_or_default(tx, &1)?;
        seen.push(purse.coins);
        purse.coins += 1;
        Ok::<_, Error>(purse.coins)
    });
    let granting = async {
        let (request, have) = arbiter.asked(Mode::Modify).await;
        assert_eq!(have, 3);
        say(&hear, grant(request, Mode::Modify, 9, true));
    };
    let (written, ()) = tokio::join!(writing, granting);
    assert_eq!(written.unwrap(), 51);
}

/// A refusal is tried again while there is time, and one record that can't be had holds up no other.
///
/// Holds: A21, A22, A31.
#[tokio::test]
async fn a_refused_record_is_asked_for_again_and_others_are_not_concerned() {
    let (db, arbiter, hear) = provider(&backend());
    let purses = db.table::<u64, Purse>().unwrap();
    let stuck = tokio::spawn({
        let (db, purses) = (db.clone(), purses.clone());
        async move { db.run(|tx| purses.get(tx, &1)).await }
    });
    let (request, _) = arbiter.asked(Mode::Share).await;
    let denied = |request| tables::Heard::Denied {
        request,
        code: wire::code::TIMEOUT.number,
        retry_after: Span::millis(1),
    };
    say(&hear, denied(request));
    let (request, _) = arbiter.asked(Mode::Share).await;
    let other = async {
        let (request, _) = arbiter.asked(Mode::Share).await;
        say(&hear, grant(request, Mode::Share, 1, true));
    };
    let (read, ()) = tokio::join!(db.run(|tx| purses.get(tx, &2)), other);
    assert_eq!(read.unwrap(), None);
    say(&hear, grant(request, Mode::Share, 2, true));
    assert_eq!(stuck.await.unwrap().unwrap(), None);
}

/// A word about an earlier grant takes nothing from a later one, and each question of the arbiter has one answer.
///
/// Holds: A18, A74, A12.
#[tokio::test]
async fn late_words_change_nothing_and_everything_is_answered_once() {
    let (db, arbiter, hear) = provider(&backend());
    let purses = db.table::<u64, Purse>().unwrap();
    let writing = async {
        let (request, _) = arbiter.asked(Mode::Modify).await;
        say(&hear, grant(request, Mode::Modify, 5, true));
    };
    let (put, ()) = tokio::join!(db.run(|tx| purses.put(tx, &1, purse(1))), writing);
    put.unwrap();
    let record = base::hash::wide(&[&1_u32.to_be_bytes()[..], &1_u64.to_be_bytes()].concat());
    let reduce = |seq, to| tables::Heard::Reduce { record, seq, to, within: Span::secs(2) };
    say(&hear, reduce(4, Mode::Invalid));
    db.run(|tx| purses.put(tx, &1, purse(2))).await.unwrap();
    assert!(arbiter.is_silent());
    say(&hear, reduce(5, Mode::Share));
    let flushed = Word::Reduced { record, seq: 5, to: Mode::Share, flushed: 2 };
    assert_eq!(arbiter.word().await, flushed);
    say(&hear, reduce(5, Mode::Share));
    assert_eq!(arbiter.word().await, flushed);
    // Nothing of it is usable when the session is over.
    hear.lost();
    assert!(!db.status().leased);
    let options = Options { timeout: Span::millis(50), ..Options::default() };
    assert!(db.run_with(options, |tx| purses.get(tx, &1)).await.is_err());
    let unknown = reduce(1, Mode::Invalid);
    say(&hear, unknown);
    while !matches!(arbiter.word().await, Word::Reduced { to: Mode::Invalid, .. }) {}
}

/// Without a lease nothing is committed, and nothing is answered that was only read; with the next one all goes on.
///
/// Holds: A3, A4, Z-59.
#[tokio::test]
async fn without_a_lease_nothing_is_committed() {
    let (db, arbiter, hear) = provider(&backend());
    let purses = db.table::<u64, Purse>().unwrap();
    let granting = async {
        let (request, _) = arbiter.asked(Mode::Modify).await;
        say(&hear, grant(request, Mode::Modify, 1, true));
    };
    let (put, ()) = tokio::join!(db.run(|tx| purses.put(tx, &1, purse(1))), granting);
    put.unwrap();
    hear.extended(Mono(1));
    hear.released();
    let options = Options { timeout: Span::millis(100), ..Options::default() };
    assert_eq!(db.run_with(options, |tx| purses.put(tx, &1, purse(2))).await, Err(Error::NoLease));
    assert_eq!(db.run_with(options, |tx| purses.get(tx, &1)).await, Err(Error::NoLease));
    let waiting = tokio::spawn({
        let (db, purses) = (db.clone(), purses.clone());
        async move { db.run(|tx| purses.get(tx, &1)).await }
    });
    tokio::time::timeout(Duration::from_millis(1), std::future::pending::<()>()).await.unwrap_err();
    hear.extended(Mono(u64::MAX));
    assert_eq!(waiting.await.unwrap().unwrap().unwrap().coins, 1);
}

/// Whoever the storage shuts out drops everything, says so and begins anew; what it had not written is counted as lost.
///
/// Holds: A5, I9.
#[tokio::test]
async fn who_is_shut_out_drops_everything() {
    let backend = backend();
    let (db, arbiter, hear) = provider(&backend);
    let purses = db.table::<u64, Purse>().unwrap();
    let granting = async {
        let (request, _) = arbiter.asked(Mode::Modify).await;
        say(&hear, grant(request, Mode::Modify, 1, true));
    };
    let options = Options { durability: tables::Durability::Sync, ..Options::default() };
    let (put, ()) = tokio::join!(db.run_with(options, |tx| purses.put(tx, &1, purse(1))), granting);
    put.unwrap();
    backend.raise_fence(Some(base::NodeId::new("game-1").unwrap()), Fence::new(Epoch(1), 2)).await.unwrap();
    assert_eq!(db.run_with(options, |tx| purses.put(tx, &1, purse(2))).await, Err(Error::Unknown));
    let status = db.status();
    assert!(arbiter.abandoned.load(Ordering::SeqCst) && status.refused == 1 && !status.leased, "{status:?}");
    assert_eq!(backend.load(tables::TableId(1), &1_u64.to_be_bytes()).await.unwrap().map(|_| ()), Some(()));
}
