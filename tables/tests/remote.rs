//! Two databases over one storage, and an arbiter in another thread that restarts meanwhile.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Epoch, NodeId};
use global_cache::{Config, Env as ArbiterEnv, Server};
use net::Security;
use node::Clock;
use node::config::Time;
use store::StoreId;
use tables::arbiter::client::{Client, Env, Place};
use tables::{Backend, Db, Error, Local, Record, Settings, Table};

#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "counter", id = 1, key = String, durability = "sync")]
struct Counter {
    #[prost(uint64, tag = "1")]
    count: u64,
}

async fn arbiter(config: &Config, epoch: u64) -> Server {
    let node = NodeId::new("global-cache-1").unwrap();
    let env = ArbiterEnv { cluster: "test".into(), node, epoch: Epoch(epoch), security: Security::Insecure };
    global_cache::start(config, env).await.unwrap()
}

type Provider = (Db, Table<String, Counter>, Arc<Client>);

fn provider(addr: SocketAddr, node: &str, backend: &Arc<dyn Backend>) -> Provider {
    let (cluster, node, clock) = ("test".to_owned(), NodeId::new(node).unwrap(), Clock::start());
    let (security, place) = (Security::Insecure, Place::Listed(vec![addr.to_string()]));
    let (storages, epoch) = (vec![("memory".to_owned(), StoreId(1))], Epoch(1));
    let env = Env { cluster, node: node.clone(), epoch, security, clock, storages, place };
    let client = Arc::new(Client::new(env));
    let opening = Db::with(Settings::new(node), backend.clone(), client.clone(), clock).unwrap();
    client.start(opening.hear()).unwrap();
    let db = opening.done();
    let counters = db.table().unwrap();
    (db, counters, client)
}

async fn count_up(db: &Db, counters: &Table<String, Counter>) -> Result<u64, Error> {
    db.run(|tx| {
        let counter = counters.get_or_default(tx, &"all".to_owned())?;
        counter.count += 1;
        Ok::<_, Error>(counter.count)
    })
    .await
}

/// Nothing that was acknowledged is lost and nothing is done twice, while the arbiter goes and comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_outlives_a_restart_of_the_arbiter() {
    let config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        renew: Time::millis(100),
        self_release: Time::millis(1_000),
        flush: Time::millis(500),
        ping: Time::millis(50),
        eviction: Time::millis(2_600),
        grace: Some(Time::secs(0)),
        ..Config::default()
    };
    let before = arbiter(&config, 7).await;
    // From now on the grace is as long as an eviction.
    let config = Config { listen: before.addr, grace: None, ..config };
    let backend: Arc<dyn Backend> = Arc::new(Local::memory(StoreId(1)).unwrap());
    let (sure, tried) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let providers = ["game-1", "game-2"].map(|node| provider(before.addr, node, &backend));
    let counting = providers.clone().map(|(db, counters, _)| {
        let (sure, tried) = (sure.clone(), tried.clone());
        tokio::spawn(async move {
            // What is denied meanwhile is tried again.
            let mut own = 0;
            while own < 200 {
                tried.fetch_add(1, Ordering::SeqCst);
                match count_up(&db, &counters).await {
                    Ok(_) => {
                        own += 1;
                        sure.fetch_add(1, Ordering::SeqCst);
                    }
                    // Sleep: a refusal that comes at once would be asked for without end.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        })
    });
    let restarted = async {
        while sure.load(Ordering::SeqCst) < 50 {
            tokio::task::yield_now().await;
        }
        before.stop().await;
        arbiter(&config, 8).await
    };
    let after = tokio::time::timeout(Duration::from_secs(30), restarted).await.unwrap();
    for one in counting {
        tokio::time::timeout(Duration::from_secs(30), one).await.unwrap().unwrap();
    }
    let (db, counters, _) = &providers[0];
    let count = db.run(|tx| counters.get(tx, &"all".to_owned())).await.unwrap().unwrap().count;
    let (sure, tried) = (sure.load(Ordering::SeqCst), tried.load(Ordering::SeqCst));
    assert!(
        sure == 400 && count >= sure && count <= tried,
        "{sure} of {tried} acknowledged, {count} counted"
    );
    for (db, _, client) in &providers {
        assert_eq!(client.status().fence.map(|fence| fence.epoch), Some(Epoch(8)));
        db.stop().await;
        client.leave().await;
    }
    assert_eq!(after.status().counts.evicted, 0, "both have held their sessions");
}
