//! The records of a run: a few whose coins only move between them, and a few that come and go. Half of them are kept as
//! usual, half of them so that answers wait for the storage.

use std::collections::BTreeMap;
use std::sync::Arc;

use tables::cache::{Cache, arbiter_key};
use tables::{Error, Key, Record, Table, TableId, Tx};

/// Coins, kept as usual.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "purse", id = 1, key = u64, durability = "grouped")]
pub struct Purse {
    #[prost(int64, tag = "1")]
    pub coins: i64,
    /// Which transaction has written it.
    #[prost(uint64, tag = "2")]
    pub writer: u64,
}

/// Whose answer waits for the storage.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "vault", id = 2, key = u64, durability = "sync")]
pub struct Vault {
    #[prost(int64, tag = "1")]
    pub coins: i64,
    #[prost(uint64, tag = "2")]
    pub writer: u64,
}

/// What only this provider knows.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "scratch", id = 3, key = u64, durability = "memory")]
pub struct Scratch {
    #[prost(int64, tag = "1")]
    pub coins: i64,
    #[prost(uint64, tag = "2")]
    pub writer: u64,
}

/// Coins and writer of a record.
pub type Seen = Option<(i64, u64)>;

/// A record of the run, by its place among all.
#[derive(Debug)]
pub struct Info {
    pub table: TableId,
    pub bytes: Vec<u8>,
    pub record: u128,
    pub sync: bool,
    /// Its coins only move, and it is never removed.
    pub money: bool,
}

/// All of them.
#[derive(Debug)]
pub struct Keys {
    pub all: Vec<Info>,
    by_record: BTreeMap<u128, usize>,
}

impl Keys {
    pub fn new(count: usize) -> Self {
        let info = |at: usize| {
            let (table, sync) = if is_vault(at) { (Vault::ID, true) } else { (Purse::ID, false) };
            let mut bytes = Vec::new();
            (at as u64).encode(&mut bytes);
            let record = base::hash::wide(&arbiter_key(table, &bytes));
            Info { table, bytes, record, sync, money: is_money(at, count) }
        };
        let all: Vec<Info> = (0..count).map(info).collect();
        let by_record = all.iter().enumerate().map(|(at, info)| (info.record, at)).collect();
        Self { all, by_record }
    }

    pub fn of_record(&self, record: u128) -> Option<usize> {
        self.by_record.get(&record).copied()
    }

    pub fn of_bytes(&self, table: TableId, bytes: &[u8]) -> Option<usize> {
        self.all.iter().position(|info| info.table == table && info.bytes == bytes)
    }

    pub fn money(&self) -> Vec<usize> {
        (0..self.all.len()).filter(|at| self.all[*at].money).collect()
    }
}

fn is_vault(at: usize) -> bool {
    at % 2 == 1
}

/// At least two, so that something can move.
fn is_money(at: usize, count: usize) -> bool {
    count >= 2 && at < (count / 2).max(2)
}

/// The tables of one provider.
pub struct Shelves {
    purses: Table<u64, Purse>,
    vaults: Table<u64, Vault>,
    scratches: Table<u64, Scratch>,
}

impl std::fmt::Debug for Shelves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelves").finish_non_exhaustive()
    }
}

impl Shelves {
    pub fn new(cache: &Arc<Cache>) -> Self {
        use tables::sim::table;
        Self { purses: table(cache), vaults: table(cache), scratches: table(cache) }
    }

    pub fn get(&self, tx: &mut Tx, at: usize) -> Result<Seen, Error> {
        let key = at as u64;
        Ok(if is_vault(at) {
            self.vaults.get(tx, &key)?.map(|vault| (vault.coins, vault.writer))
        } else {
            self.purses.get(tx, &key)?.map(|purse| (purse.coins, purse.writer))
        })
    }

    /// Puts it there and says what was.
    pub fn put(&self, tx: &mut Tx, at: usize, coins: i64, writer: u64) -> Result<(), Error> {
        let key = at as u64;
        if is_vault(at) {
            self.vaults.put(tx, &key, Vault { coins, writer })
        } else {
            self.purses.put(tx, &key, Purse { coins, writer })
        }
    }

    pub fn remove(&self, tx: &mut Tx, at: usize) -> Result<bool, Error> {
        let key = at as u64;
        if is_vault(at) { self.vaults.remove(tx, &key) } else { self.purses.remove(tx, &key) }
    }

    /// Says early what will be changed.
    pub fn want_mut(&self, tx: &mut Tx, all: &[usize]) -> Result<(), Error> {
        let of = |vault| -> Vec<u64> {
            all.iter().filter(|at| is_vault(**at) == vault).map(|at| *at as u64).collect()
        };
        let vaults = self.vaults.want_mut(tx, &of(true));
        self.purses.want_mut(tx, &of(false))?;
        vaults
    }

    /// Counts in what only this provider knows; how far it is.
    pub fn scratch(&self, tx: &mut Tx) -> Result<i64, Error> {
        let scratch = self.scratches.get_or_default(tx, &0)?;
        scratch.coins += 1;
        Ok(scratch.coins)
    }
}

/// What the storage has of a record.
pub fn read(info: &Info, bytes: &[u8]) -> Seen {
    use prost::Message;
    if info.sync {
        Vault::decode(bytes).ok().map(|vault| (vault.coins, vault.writer))
    } else {
        Purse::decode(bytes).ok().map(|purse| (purse.coins, purse.writer))
    }
}

pub fn write(info: &Info, coins: i64, writer: u64) -> bytes::Bytes {
    use prost::Message;
    if info.sync {
        Vault { coins, writer }.encode_to_vec().into()
    } else {
        Purse { coins, writer }.encode_to_vec().into()
    }
}
