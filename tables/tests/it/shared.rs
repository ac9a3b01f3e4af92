//! Two providers over one storage.

use tables::{Db, Error, Table};

use crate::world::{Account, Purse, backend, pair, pair_at, purse};

/// Each reads what the other wrote, at once.
///
/// Holds: I8, Z-50, A49.
#[tokio::test]
async fn a_record_goes_to_and_fro() {
    let backend = backend();
    let (a, b) = pair(&backend);
    let (of_a, of_b) = (a.table::<u64, Purse>().unwrap(), b.table::<u64, Purse>().unwrap());
    for n in 0..50 {
        a.run(|tx| of_a.put(tx, &1, purse(n))).await.unwrap();
        assert_eq!(b.run(|tx| of_b.get(tx, &1)).await.unwrap().unwrap().coins, n);
        b.run(|tx| {
            of_b.get_mut(tx, &1)?.unwrap().coins += 1_000;
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
        assert_eq!(a.run(|tx| of_a.get(tx, &1)).await.unwrap().unwrap().coins, n + 1_000);
    }
    // A removal is seen as well, and what comes after it.
    a.run(|tx| of_a.remove(tx, &1)).await.unwrap();
    assert_eq!(b.run(|tx| of_b.get(tx, &1)).await.unwrap(), None);
    b.run(|tx| of_b.put(tx, &1, purse(3))).await.unwrap();
    assert_eq!(a.run(|tx| of_a.get(tx, &1)).await.unwrap().unwrap().coins, 3);
}

/// Coins go to and fro between accounts by both providers; none is made and none is lost.
///
/// Holds: A24, A45.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_sum_of_all_coins_stays() {
    const ACCOUNTS: u64 = 8;
    let backend = backend();
    let (a, b) = pair(&backend);
    let tables =
        [(a.clone(), a.table::<u64, Purse>().unwrap()), (b.clone(), b.table::<u64, Purse>().unwrap())];
    let (db, purses) = &tables[0];
    db.run(|tx| (0..ACCOUNTS).try_for_each(|key| purses.put(tx, &key, purse(100)))).await.unwrap();
    let trading = (0..6u64).map(|trader| {
        let (db, purses) = tables[(trader % 2) as usize].clone();
        tokio::spawn(async move {
            for n in 0..40u64 {
                let (from, to) = ((trader + n) % ACCOUNTS, (trader * 3 + n * 5 + 1) % ACCOUNTS);
                trade(&db, &purses, from, to).await;
                assert_eq!(sum(&db, &purses, ACCOUNTS).await, 800);
            }
        })
    });
    for one in trading.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    for (db, purses) in &tables {
        assert_eq!(sum(db, purses, ACCOUNTS).await, 800);
    }
}

async fn trade(db: &Db, purses: &Table<u64, Purse>, from: u64, to: u64) {
    let traded = db.run(|tx| {
        purses.get_or_default(tx, &from)?.coins -= 1;
        purses.get_or_default(tx, &to)?.coins += 1;
        Ok::<_, Error>(())
    });
    traded.await.unwrap();
}

async fn sum(db: &Db, purses: &Table<u64, Purse>, accounts: u64) -> i64 {
    let keys: Vec<u64> = (0..accounts).collect();
    let summed = db.run(|tx| {
        purses.want(tx, &keys)?;
        keys.iter()
            .try_fold(0, |sum, key| Ok::<_, Error>(sum + purses.get(tx, key)?.map_or(0, |purse| purse.coins)))
    });
    summed.await.unwrap()
}

/// What was acknowledged is in the storage.
#[tokio::test]
async fn a_sync_commit_is_durable_before_its_answer() {
    let backend = backend();
    let (a, _b) = pair(&backend);
    let accounts = a.table::<String, Account>().unwrap();
    for n in 0..20 {
        let name = format!("n{n}");
        a.run(|tx| accounts.put(tx, &name, Account { coins: n })).await.unwrap();
        let mut key = Vec::new();
        tables::Key::encode(&name, &mut key);
        let stored = backend.load(tables::TableId(2), &key).await.unwrap().unwrap();
        assert_eq!(<Account as prost::Message>::decode(stored.value).unwrap().coins, n);
    }
}

/// Two providers give out numbers; none is given twice, also not after a crash that took everything that was not durable.
///
/// Holds: A42.
#[tokio::test]
async fn a_number_is_given_once() {
    let backend = backend();
    let mut given = std::collections::BTreeSet::new();
    for epoch in 5..8 {
        let (a, b) = pair_at(&backend, epoch);
        let keys = [(a.clone(), a.auto_key("offer")), (b.clone(), b.auto_key("offer"))];
        for n in 0..100 {
            let (db, key) = &keys[n % 2];
            let number = db.run(|tx| key.next(tx)).await.unwrap();
            assert!(number > 0 && given.insert(number), "{number} is given twice");
        }
        assert_eq!(a.run(|tx| a.auto_key("other").next(tx)).await.unwrap() % 16, 1);
        // Dropped without a stop.
    }
}
