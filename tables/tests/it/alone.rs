//! One provider.

use tables::{Db, Error, Level, Options, Table};

use crate::world::{Account, Purse, Seen, alone, backend, purse};

async fn transfer(db: &Db, purses: &Table<u64, Purse>, from: u64, to: u64, coins: i64) -> Result<(), Error> {
    db.run(|tx| {
        purses.get_or_default(tx, &from)?.coins -= coins;
        purses.get_or_default(tx, &to)?.coins += coins;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_is_committed_is_read_and_outlives_the_database() {
    let backend = backend();
    let db = alone(&backend, 1);
    let purses = db.table::<u64, Purse>().unwrap();
    db.run(|tx| purses.put(tx, &7, purse(100))).await.unwrap();
    transfer(&db, &purses, 7, 8, 30).await.unwrap();
    let both =
        |tx: &mut _| Ok::<_, Error>((purses.get(tx, &7)?.unwrap().coins, purses.get(tx, &8)?.unwrap().coins));
    assert_eq!(db.run(both).await.unwrap(), (70, 30));
    db.stop().await;
    assert_eq!(db.run(|tx| purses.get(tx, &7)).await, Err(Error::Stopping));

    let db = alone(&backend, 2);
    let purses = db.table::<u64, Purse>().unwrap();
    assert_eq!(db.run(|tx| purses.get(tx, &7)).await.unwrap().unwrap().coins, 70);
    assert!(db.run(|tx| purses.remove(tx, &7)).await.unwrap());
    assert!(!db.run(|tx| purses.contains(tx, &7)).await.unwrap());
    db.stop().await;
    let db = alone(&backend, 3);
    let purses = db.table::<u64, Purse>().unwrap();
    assert_eq!(db.run(|tx| purses.get(tx, &7)).await.unwrap(), None);
}

/// A failed part is undone alone, whatever was written before and after it; a kept one can be undone with what is around it.
#[tokio::test]
async fn parts_are_undone_alone() {
    let db = alone(&backend(), 1);
    let purses = db.table::<u64, Purse>().unwrap();
    let set = |tx: &mut _, key: u64, coins| purses.put(tx, &key, purse(coins));
    let got = db
        .run(|tx| {
            set(tx, 1, 10)?;
            let failed: Result<(), Error> = tx.nested(|tx| {
                set(tx, 1, 11)?;
                set(tx, 2, 20)?;
                tx.nested(|tx| set(tx, 3, 30))?;
                Err(Error::Stopping)
            });
            assert_eq!(failed, Err(Error::Stopping));
            assert_eq!(purses.get(tx, &1)?.unwrap().coins, 10);
            tx.nested(|tx| set(tx, 4, 40))?;
            let outer = tx.savepoint();
            set(tx, 4, 41)?;
            tx.nested(|tx| set(tx, 4, 42))?;
            tx.rollback(outer);
            purses.get_mut(tx, &1)?.unwrap().coins += 5;
            let mut all = Vec::new();
            for key in 1..=4 {
                all.push(purses.get(tx, &key)?.map(|purse| purse.coins));
            }
            Ok::<_, Error>(all)
        })
        .await
        .unwrap();
    assert_eq!(got, [Some(15), None, None, Some(40)]);
    let after = db.run(|tx| purses.get(tx, &1)).await.unwrap().unwrap();
    assert_eq!(after.coins, 15);
}

#[tokio::test]
async fn a_failed_transaction_changes_nothing() {
    let db = alone(&backend(), 1);
    let purses = db.table::<u64, Purse>().unwrap();
    db.run(|tx| purses.put(tx, &1, purse(10))).await.unwrap();
    let failed: Result<(), String> = db
        .run(|tx| {
            purses.get_mut(tx, &1).map_err(said)?.unwrap().coins = 0;
            Err("not today".to_owned().into())
        })
        .await
        .map_err(|Said(text)| text);
    assert_eq!(failed, Err("not today".to_owned()));
    assert_eq!(db.run(|tx| purses.get(tx, &1)).await.unwrap().unwrap().coins, 10);
}

/// A game's own error.
struct Said(String);

fn said(error: Error) -> Said {
    error.into()
}

impl From<Error> for Said {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Everybody counts in one record, and nobody is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_count_in_one_record() {
    let db = alone(&backend(), 1);
    let purses = db.table::<u64, Purse>().unwrap();
    let counting = (0..8).map(|_| {
        let (db, purses) = (db.clone(), purses.clone());
        tokio::spawn(async move {
            for _ in 0..500 {
                let count = |tx: &mut _| {
                    purses.get_or_default(tx, &1)?.coins += 1;
                    Ok::<_, Error>(())
                };
                db.run(count).await.unwrap();
            }
        })
    });
    for one in counting.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    assert_eq!(db.run(|tx| purses.get(tx, &1)).await.unwrap().unwrap().coins, 4_000);
}

#[tokio::test]
async fn a_reading_level_only_reads() {
    let db = alone(&backend(), 1);
    let (purses, seen) = (db.table::<u64, Purse>().unwrap(), db.table::<u64, Seen>().unwrap());
    db.run(|tx| purses.put(tx, &1, purse(10))).await.unwrap();
    for level in [Level::Snapshot, Level::Dirty] {
        let options = Options { level, ..Options::default() };
        assert_eq!(db.run_with(options, |tx| purses.get(tx, &1)).await.unwrap().unwrap().coins, 10);
        let refused = db.run_with(options, |tx| purses.put(tx, &1, purse(0))).await;
        assert_eq!(refused, Err(Error::ReadOnly { table: "purse" }));
        // Also if its code makes nothing of it.
        let swallowed = db.run_with(options, |tx| {
            let _ = seen.put(tx, &1, Seen { times: 1 });
            Ok(())
        });
        assert_eq!(swallowed.await, Err(Error::ReadOnly { table: "seen" }));
    }
}

#[tokio::test]
async fn what_can_not_be_kept_is_refused() {
    let db = alone(&backend(), 1);
    let other = alone(&backend(), 1);
    let accounts = db.table::<String, Account>().unwrap();
    assert!(db.table::<String, Account>().unwrap_err().to_string().contains("each table has its own"));
    let theirs = other.table::<u64, Purse>().unwrap();
    let key = "k".repeat(2_000);
    let refused = db.run(|tx| accounts.get(tx, &key)).await.unwrap_err();
    assert!(matches!(refused, Error::Key { table: "account", .. }), "{refused}");
    let refused = db.run(|tx| theirs.get(tx, &1)).await.unwrap_err();
    assert_eq!(refused, Error::CrossStore { one: "memory", other: "memory" });
    let refused = db
        .run(|tx| {
            let keys: Vec<String> = (0..=tables::tx::RECORDS_MAX).map(|n| n.to_string()).collect();
            accounts.want(tx, &keys)?;
            for key in &keys {
                accounts.get(tx, key)?;
            }
            Ok(())
        })
        .await;
    assert_eq!(refused, Err(Error::TooMany { max: tables::tx::RECORDS_MAX }));
}
