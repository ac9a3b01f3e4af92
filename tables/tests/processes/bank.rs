//! What providers trade, and what must be true of it.

use tables::{Db, Error, Options, Record, Table};

pub const ACCOUNTS: u64 = 12;
pub const COINS: i64 = 100;

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "account", id = 1, key = u64, durability = "sync")]
pub struct Account {
    #[prost(int64, tag = "1")]
    pub coins: i64,
    /// It was opened.
    #[prost(bool, tag = "2")]
    pub open: bool,
}

/// How many trades a provider has made.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "trades", id = 2, key = String, durability = "sync")]
pub struct Trades {
    #[prost(uint64, tag = "1")]
    pub count: u64,
}

pub struct Bank {
    pub db: Db,
    accounts: Table<u64, Account>,
    trades: Table<String, Trades>,
}

impl Bank {
    pub fn new(db: Db) -> Self {
        let (accounts, trades) = (db.table().unwrap(), db.table().unwrap());
        Self { db, accounts, trades }
    }

    /// Makes a provider's next trade, and says which it was.
    pub async fn trade(&self, node: &str, number: u64) -> Result<u64, Error> {
        let mixed = base::hash::mix(number ^ base::hash::bytes(node.as_bytes()));
        let (from, to) = (mixed % ACCOUNTS, (mixed >> 20) % ACCOUNTS);
        let options = Options { timeout: base::Span::secs(30), ..Options::default() };
        let traded = self.db.run_with(options, |tx| {
            self.accounts.want_mut(tx, &[from, to])?;
            for (key, coins) in [(from, -3), (to, 3)] {
                let account = self.accounts.get_or_default(tx, &key)?;
                if !account.open {
                    (account.open, account.coins) = (true, COINS);
                }
                account.coins += coins;
            }
            let trades = self.trades.get_or_default(tx, &node.to_owned())?;
            trades.count += 1;
            Ok(trades.count)
        });
        traded.await
    }

    pub async fn count(&self, node: &str) -> u64 {
        let trades = self.db.run(|tx| self.trades.get(tx, &node.to_owned())).await.unwrap();
        trades.map_or(0, |trades| trades.count)
    }

    /// No coin was made or lost.
    pub async fn check(&self) {
        let all = self.db.run(|tx| {
            let account = |key| self.accounts.get(tx, &key);
            (0..ACCOUNTS).map(account).collect::<Result<Vec<_>, Error>>()
        });
        let (mut coins, mut open) = (0, 0);
        for account in all.await.unwrap().into_iter().flatten() {
            coins += account.coins;
            open += i64::from(account.open);
        }
        assert_eq!(coins, open * COINS, "{open} accounts");
    }
}
