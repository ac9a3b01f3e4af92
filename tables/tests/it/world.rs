//! A database, and the records that the tests keep in it.

use std::sync::Arc;

use base::{Epoch, NodeId};
use node::Clock;
use store::StoreId;
use tables::arbiter::embedded::Embedded;
use tables::{Backend, Db, Local, Record, Settings};

/// Coins, kept as usual.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "purse", id = 1, key = u64, durability = "grouped")]
pub struct Purse {
    #[prost(int64, tag = "1")]
    pub coins: i64,
    #[prost(uint64, tag = "2")]
    pub changes: u64,
}

/// Whose answer waits for the storage.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "account", id = 2, key = String, durability = "sync")]
pub struct Account {
    #[prost(int64, tag = "1")]
    pub coins: i64,
}

/// What only this provider knows.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "seen", id = 3, key = u64, durability = "memory")]
pub struct Seen {
    #[prost(uint64, tag = "1")]
    pub times: u64,
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
    pair_at(backend, 5)
}

/// The same, at a later start.
pub fn pair_at(backend: &Arc<dyn Backend>, epoch: u64) -> (Db, Db) {
    let clock = Clock::start();
    let arbiter = Embedded::new(Epoch(epoch), Box::new(move || clock.now()));
    let db = |name| Db::beside(settings(name), backend.clone(), &arbiter, Epoch(epoch)).unwrap();
    (db("game-1"), db("game-2"))
}
