//! Two providers trade over the same accounts; what happens to them and to the arbiter meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;

use store::StoreId;
use tables::Local;

use crate::bank::Bank;
use crate::part::{EVICTION, Part, connect};
use crate::storage;

struct World {
    storage: SocketAddr,
    arbiter: Part,
    addr: String,
}

impl World {
    async fn new() -> Self {
        let storage = storage::serve(Arc::new(Local::memory(StoreId(1)).unwrap())).await;
        let mut arbiter = Part::start("arbiter 127.0.0.1:0 1");
        let addr = arbiter.wait_for("arbiter ");
        Self { storage, arbiter, addr }
    }

    fn provider(&self, node: &str, epoch: u64) -> Part {
        Part::start(&format!("provider {node} {epoch} {} {}", self.addr, self.storage))
    }

    /// What was acknowledged is there, and the sums hold: as another provider sees it.
    async fn check(&self, acknowledged: [(&str, u64); 2]) {
        let bank = Bank::new(connect("checker", 1, &self.addr, self.storage));
        for (node, acknowledged) in acknowledged {
            let count = bank.count(node).await;
            assert!(count >= acknowledged, "{node}: {acknowledged} were acknowledged, {count} are there");
        }
        bank.check().await;
    }
}

/// A provider that is frozen beyond its eviction writes nothing late, notices, and goes on.
///
/// Holds: Z-52, Z-58, Z-59, Z-60, A3, A5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_provider_writes_nothing_late_and_goes_on() {
    let world = World::new().await;
    let (mut a, mut b) = (world.provider("game-1", 1), world.provider("game-2", 1));
    a.trades(30);
    b.trades(30);
    for _ in 0..2 {
        a.signal("STOP");
        // Until everything that the frozen one held was taken from it.
        let frozen = std::time::Instant::now();
        while frozen.elapsed() < EVICTION {
            b.trades(1);
        }
        b.trades(30);
        a.signal("CONT");
        a.trades(20);
    }
    let acknowledged = [("game-1", a.kill()), ("game-2", b.kill())];
    world.check(acknowledged).await;
}

/// Holds: Z-61.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_killed_mid_trade_comes_back() {
    let world = World::new().await;
    let (mut a, mut b) = (world.provider("game-1", 1), world.provider("game-2", 1));
    for epoch in 2..6 {
        a.trades(10);
        b.trades(10);
        let before = a.kill();
        a = world.provider("game-1", epoch);
        a.trades(10);
        assert!(a.acknowledged > before, "{} after {before}", a.acknowledged);
    }
    let acknowledged = [("game-1", a.kill()), ("game-2", b.kill())];
    world.check(acknowledged).await;
}

/// An arbiter that is killed and restarted is found again; nothing is granted before whoever held something has reasserted
/// it or has lost its lease.
///
/// Holds: Z-54, A6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_arbiter_that_is_killed_is_found_again() {
    let mut world = World::new().await;
    let (mut a, mut b) = (world.provider("game-1", 1), world.provider("game-2", 1));
    for epoch in 2..4 {
        a.trades(20);
        b.trades(20);
        let dead = std::mem::replace(&mut world.arbiter, Part::start("nobody"));
        dead.kill();
        world.arbiter = Part::start(&format!("arbiter {} {epoch}", world.addr));
        world.arbiter.wait_for("arbiter ");
    }
    a.trades(20);
    b.trades(20);
    let acknowledged = [("game-1", a.kill()), ("game-2", b.kill())];
    world.check(acknowledged).await;
}
