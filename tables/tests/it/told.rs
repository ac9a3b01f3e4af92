//! What the arbiter tells a provider, as a test has it say, and what the provider makes of it.

use std::time::Duration;

use base::{Epoch, Fence, Mono, Span};
use tables::{Error, Mode, Options, Word};

use crate::faulty::{grant, provider, say};
use crate::world::{Purse, backend, pair, purse};

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
    // Whoever waited hears of it first.
    tokio::time::timeout(Duration::from_secs(10), arbiter.abandoned()).await.unwrap();
    let status = db.status();
    assert!(status.refused == 1 && !status.leased, "{status:?}");
    assert_eq!(backend.load(tables::TableId(1), &1_u64.to_be_bytes()).await.unwrap().map(|_| ()), Some(()));
}

/// A refusal for longer than a transaction may take ends it at once, also when it takes its records in order.
///
/// Holds: A21.
#[tokio::test]
async fn nobody_waits_longer_than_he_may_for_a_refusal_to_end() {
    let (db, arbiter, hear) = provider(&backend());
    let purses = db.table::<u64, Purse>().unwrap();
    let options = Options { timeout: Span::secs(30), ..Options::default() };
    let running = db.run_with(options, |tx| purses.put(tx, &1, purse(1)));
    let refusing = async {
        // It loses what it was granted until it takes its records in order.
        for seq in 1..=3 {
            let (request, _) = arbiter.asked(Mode::Modify).await;
            say(&hear, grant(request, Mode::Modify, seq, true));
            hear.lost();
            hear.opened(Epoch(1), Fence::new(Epoch(1), 1 + seq), Mono(u64::MAX));
        }
        loop {
            let (request, _) = arbiter.asked(Mode::Modify).await;
            let (code, retry_after) = (wire::code::WARMING.number, Span::secs(60));
            say(&hear, tables::Heard::Denied { request, code, retry_after });
        }
    };
    let refused = tokio::select! {
        refused = running => refused,
        () = refusing => unreachable!(),
    };
    assert!(matches!(refused, Err(Error::Denied { .. })), "{refused:?}");
}
