//! `kill -9` in the middle of transactions: what was acknowledged is there, and what is there is every transaction up to one,
//! none by half.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use base::{Epoch, NodeId};
use tables::backend::{LocalKind, open};
use tables::{Backend, Db, Durability, Error, Options, Record, Settings, Table};

/// Tells a child of this test where to write; without it the child's test does nothing.
const DIR: &str = "LINKSTEAD_TABLES_TEST_DIR";
const KIND: &str = "LINKSTEAD_TABLES_TEST_KIND";
/// The long lane runs more.
const ROUNDS: &str = "LINKSTEAD_KILL_ROUNDS";
const ACCOUNTS: u64 = 16;
const COINS: i64 = 1_000;
/// Every so many transactions one waits until it is durable, and is acknowledged.
const SYNC_EVERY: u64 = 4;

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "account", id = 1, key = u64)]
struct Account {
    #[prost(int64, tag = "1")]
    coins: i64,
}

/// The last transaction that was made.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "last", id = 2, key = u8)]
struct Last {
    #[prost(uint64, tag = "1")]
    number: u64,
}

struct Bank {
    db: Db,
    accounts: Table<u64, Account>,
    last: Table<u8, Last>,
}

/// What transaction `number` does.
fn transfer(number: u64) -> (u64, u64, i64) {
    let mixed = base::hash::mix(number);
    (mixed % ACCOUNTS, (mixed >> 20) % ACCOUNTS, (mixed >> 40) as i64 % 10)
}

impl Bank {
    fn over(backend: Arc<dyn Backend>, epoch: u64) -> Self {
        let settings = Settings::new(NodeId::new("game-1").unwrap());
        let db = Db::embedded(settings, backend, Epoch(epoch)).unwrap();
        let (accounts, last) = (db.table().unwrap(), db.table().unwrap());
        Self { db, accounts, last }
    }

    async fn last(&self) -> Last {
        let last = self.db.run(|tx| self.last.get(tx, &0)).await.unwrap();
        last.map_or_else(Last::default, |last| Last::clone(&last))
    }

    async fn trade(&self, number: u64) -> Result<(), Error> {
        let (from, to, coins) = transfer(number);
        let sync = number.is_multiple_of(SYNC_EVERY);
        let durability = if sync { Durability::Sync } else { Durability::Grouped };
        let options = Options { durability, ..Options::default() };
        let traded = self.db.run_with(options, |tx| {
            self.accounts.get_or_default(tx, &from)?.coins -= coins;
            self.accounts.get_or_default(tx, &to)?.coins += coins;
            self.last.get_or_default(tx, &0)?.number = number;
            Ok(())
        });
        traded.await
    }

    /// Every account is what all transactions up to the last one have made it.
    async fn check(&self) -> u64 {
        let last = self.last().await.number;
        let mut expected = vec![0; ACCOUNTS as usize];
        if last > 0 {
            expected.fill(COINS);
        }
        for number in 2..=last {
            let (from, to, coins) = transfer(number);
            expected[from as usize] -= coins;
            expected[to as usize] += coins;
        }
        for (account, expected) in (0..ACCOUNTS).zip(expected) {
            let found = self.db.run(|tx| self.accounts.get(tx, &account)).await.unwrap();
            assert_eq!(found.map_or(0, |account| account.coins), expected, "account {account} after {last}");
        }
        last
    }
}

/// Not a test by itself: what the next ones kill.
#[tokio::test]
async fn child() {
    let (Ok(dir), Ok(kind)) = (std::env::var(DIR), std::env::var(KIND)) else { return };
    let backend = open(self::kind(&kind), Path::new(&dir)).unwrap();
    let bank = Bank::over(backend, next_start(&dir));
    let mut number = bank.last().await.number + 1;
    if number == 1 {
        let opened = bank.db.run(|tx| {
            (0..ACCOUNTS).try_for_each(|key| bank.accounts.put(tx, &key, Account { coins: COINS }))?;
            bank.last.put(tx, &0, Last { number: 1 })
        });
        opened.await.unwrap();
        number = 2;
    }
    let mut out = std::io::stdout();
    loop {
        bank.trade(number).await.unwrap();
        if number.is_multiple_of(SYNC_EVERY) {
            // Its parent may be gone.
            if writeln!(out, "acknowledged {number}").and_then(|()| out.flush()).is_err() {
                return;
            }
        }
        number += 1;
    }
}

/// The number of this start: each start's epoch is larger than the one's before.
fn next_start(dir: &str) -> u64 {
    let path = format!("{dir}.starts");
    let starts = std::fs::read_to_string(&path).map_or(0, |text| text.parse::<u64>().unwrap()) + 1;
    std::fs::write(path, starts.to_string()).unwrap();
    starts
}

fn kind(name: &str) -> LocalKind {
    if name == "sled" { LocalKind::Sled } else { LocalKind::Redb }
}

async fn killed(name: &str) {
    let rounds = std::env::var(ROUNDS).map_or(50, |rounds| rounds.parse::<u64>().unwrap());
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    let mut total = 0;
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(DIR, &dir)
            .env(KIND, name)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let number =
            |line: String| line.rsplit_once("acknowledged ").and_then(|(_, n)| n.parse::<u64>().ok());
        // A different moment each round.
        let nth = 1 + (base::hash::mix(round) % 29) as usize;
        let mut acknowledged = lines.by_ref().filter_map(number).nth(nth).unwrap();
        child.kill().unwrap();
        acknowledged = lines.filter_map(number).last().unwrap_or(acknowledged);
        child.wait().unwrap();
        let bank = Bank::over(open(kind(name), &dir).unwrap(), next_start(dir.to_str().unwrap()));
        let found = bank.check().await;
        bank.db.stop().await;
        assert!(found >= acknowledged, "round {round}: {acknowledged} was acknowledged, {found} is there");
        assert!(found > total, "round {round} wrote nothing");
        total = found;
    }
}

/// Holds: I11, A39.
#[tokio::test]
async fn what_sled_acknowledged_survives_kill_9() {
    killed("sled").await;
}

/// Holds: I11, A39.
#[tokio::test]
async fn what_redb_acknowledged_survives_kill_9() {
    killed("redb").await;
}
