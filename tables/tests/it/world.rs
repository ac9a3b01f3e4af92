//! A database, and the records that the tests keep in it.

use std::sync::Arc;

use base::{Epoch, NodeId};
use node::Clock;
use store::StoreId;
use tables::arbiter::embedded::Embedded;
use tables::{Backend, Db, Durability, Local, Record, Settings, TableId};

/// Coins, kept as usual.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Purse {
    #[prost(int64, tag = "1")]
    pub coins: i64,
    #[prost(uint64, tag = "2")]
    pub changes: u64,
}

impl Record for Purse {
    type Key = u64;
    const TABLE: &'static str = "purse";
    const ID: TableId = TableId(1);
    const DURABILITY: Durability = Durability::Grouped;
}

/// Whose answer waits for the storage.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Account {
    #[prost(int64, tag = "1")]
    pub coins: i64,
}

impl Record for Account {
    type Key = String;
    const TABLE: &'static str = "account";
    const ID: TableId = TableId(2);
    const DURABILITY: Durability = Durability::Sync;
}

/// What only this provider knows.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Seen {
    #[prost(uint64, tag = "1")]
    pub times: u64,
}

impl Record for Seen {
    type Key = u64;
    const TABLE: &'static str = "seen";
    const ID: TableId = TableId(3);
    const DURABILITY: Durability = Durability::Memory;
}

pub fn purse(coins: i64) -> Purse {
    Purse { coins, changes: 0 }
}

pub fn backend() -> Arc<dyn Backend> {
    Arc::new(Local::memory(StoreId(1)).unwrap())
}

pub fn settings(node: &str) -> Settings {
    Settings::new(NodeId::new(node).unwrap())
}

pub fn alone(backend: &Arc<dyn Backend>, epoch: u64) -> Db {
    Db::embedded(settings("game-1"), backend.clone(), Epoch(epoch)).unwrap()
}

/// Two providers, one arbiter, one storage.
pub fn pair(backend: &Arc<dyn Backend>) -> (Db, Db) {
    let clock = Clock::start();
    let arbiter = Embedded::new(Epoch(5), Box::new(move || clock.now()));
    let db = |name| Db::beside(settings(name), backend.clone(), &arbiter, Epoch(5)).unwrap();
    (db("game-1"), db("game-2"))
}
