//! What becomes of a cache when its session ends in one place before the other has heard of it.

use std::sync::Arc;

use base::NodeId;

use super::*;
use crate::arbiter::Arbiter;
use crate::cache::{Load, Outward};
use crate::record::Durability;
use crate::table::Table;
use crate::tx::{Finish, Home, Level, Tx};
use crate::{Record, TableId};

/// Surroundings that do nothing.
#[derive(Debug)]
struct Nobody;

impl Arbiter for Nobody {
    fn say(&self, words: &mut Vec<Word>) {
        words.clear();
    }
}

impl Outward for Nobody {
    fn load(&self, _: Load) {}
    fn raise(&self, _: Vec<Evicted>) {}
    fn look_at(&self, _: Mono) {}
    fn flush(&self, _: bool) {}
    fn abandon(&self) {}
}

#[derive(Clone, PartialEq, prost::Message)]
struct Coin {
    #[prost(uint64, tag = "1")]
    value: u64,
}

impl Record for Coin {
    type Key = u64;
    const TABLE: &'static str = "coin";
    const ID: TableId = TableId(1);
    const DURABILITY: Durability = Durability::Sync;
}

fn cache() -> Arc<Cache> {
    let (node, clock) = (NodeId::new("p").unwrap(), Box::new(|| Mono(1)));
    let cache = Arc::new(Cache::new(node, "none", 1 << 20, clock, Arc::new(Nobody), Arc::new(Nobody)));
    cache.opened(Epoch(1), fence(1), Mono(1_000));
    cache
}

fn fence(session: u64) -> Fence {
    Fence::new(Epoch(1), session)
}

/// Holds the only record there is, and commits a change of it.
fn commit(cache: &Arc<Cache>, seq: u64) {
    let table: Table<u64, Coin> = Table::new(cache.clone());
    let mut tx = Tx::new(Home::new(cache.clone()), Level::Serializable);
    assert!(table.put(&mut tx, &7, Coin { value: 1 }).is_err());
    assert!(matches!(tx.finish(false), Finish::NotYet));
    let mut wants = std::mem::take(&mut tx.wants);
    let waiter = Arc::new(crate::cache::waiter::Waiter::new(1));
    cache.want(&mut wants, &waiter);
    let cell = wants[0].0.clone();
    let request = cell.lock().permit.asked().unwrap();
    let (mode, evicted) = (Mode::Modify, Vec::new());
    cache.heard(&mut vec![Heard::Granted {
        request,
        mode,
        seq,
        must_reload: false,
        version_min: 0,
        evicted,
    }]);
    cache.step_locked(&cell, &mut cell.lock(), Event::Loaded { seq });
    let mut tx = Tx::new(Home::new(cache.clone()), Level::Serializable);
    table.put(&mut tx, &7, Coin { value: 2 }).unwrap();
    assert!(matches!(tx.finish(true), Finish::Committed(_)));
}

fn fenced() -> crate::BackendError {
    crate::BackendError::Fenced { node: NodeId::new("p").unwrap(), fence: fence(1), below: fence(2) }
}

/// The storage has refused the session, and the arbiter renews it before it hears of that: what would be committed then
/// could be answered as durable, and would never be written.
///
/// Holds: I7, I11.
#[test]
fn a_session_that_the_storage_has_refused_is_not_extended() {
    let cache = cache();
    commit(&cache, 1);
    let cut = cache.take().unwrap();
    assert!(cache.is_leased());
    cache.refused(&cut, &fenced());
    assert!(!cache.is_leased());
    cache.extended(Mono(2_000));
    assert!(!cache.is_leased());
    cache.lost();
    cache.opened(Epoch(1), fence(2), Mono(2_000));
    assert!(cache.is_leased());
}

/// A batch was on its way when its session was lost, and is refused when the next one has begun: that one goes on.
#[test]
fn a_late_refusal_of_an_earlier_session_ends_no_later_one() {
    let cache = cache();
    commit(&cache, 1);
    let cut = cache.take().unwrap();
    cache.lost();
    cache.opened(Epoch(1), fence(2), Mono(2_000));
    cache.refused(&cut, &fenced());
    assert!(cache.is_leased());
    assert_eq!(cache.counts.losses.get(), 1);
    commit(&cache, 2);
    let cut = cache.take().unwrap();
    cache.refused(&cut, &fenced());
    assert!(!cache.is_leased());
}
