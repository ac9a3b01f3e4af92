//! What nodes hear of each other beside services: loads, what the dead have left, addresses nobody answers at.

use std::sync::Arc;
use std::time::Duration;

use node::config::Time;
use node::directory::{Load, Loads, Service, Services};
use service_manager::ServiceManagerConfig;
use tokio::sync::watch;

use crate::world::{LIMIT, Server, config};

/// Loads reach whoever observes, also of nodes that come later, and again after the directory has restarted.
///
/// Holds: Q25.
#[tokio::test]
async fn loads_follow_the_subscription_across_restarts() {
    let server = Server::start("127.0.0.1:0", config(Duration::from_secs(1))).await;
    let (game, linkd) = (server.join("game-1", "hostA"), server.join("linkd-1", "hostB"));
    let mut loads = linkd.directory.observe("m/");
    let online = |online| Load { online, ..Load::default() };
    game.offer(&["m/7"]);
    game.directory.report_load(online(5));
    loads_are(&mut loads, &[("game-1", 5)]).await;
    let addr = server.kill().await.to_string();
    let server = Server::start(&addr, config(Duration::from_secs(1))).await;
    let late = server.join("game-2", "hostC");
    late.directory.report_load(online(7));
    late.offer(&["m/8"]);
    loads_are(&mut loads, &[("game-1", 5), ("game-2", 7)]).await;
    game.directory.report_load(online(6));
    loads_are(&mut loads, &[("game-1", 6), ("game-2", 7)]).await;
    late.directory.leave().await;
    loads_are(&mut loads, &[("game-1", 6)]).await;
}

async fn loads_are(loads: &mut watch::Receiver<Arc<Loads>>, expected: &[(&str, u32)]) {
    let seen = |loads: &Arc<Loads>| {
        let online = loads.iter().map(|(node, (_, load))| (node.as_str(), load.online));
        online.eq(expected.iter().copied())
    };
    let waited = tokio::time::timeout(LIMIT, loads.wait_for(seen)).await.map(|seen| seen.is_ok());
    assert_eq!(waited, Ok(true), "{:?} instead of {expected:?}", loads.borrow());
}

/// What a dead node has left goes on at another one that names it; one that declines is passed over.
///
/// Holds: Q26.
#[tokio::test]
async fn what_a_node_leaves_behind_is_offered_until_somebody_takes_it() {
    let offline_linger = Time(Duration::from_millis(300));
    let config = ServiceManagerConfig { offline_linger, ..config(Duration::from_secs(1)) };
    let server = Server::start("127.0.0.1:0", config).await;
    let dying = server.join("game-1", "hostA");
    let epoch = dying.directory.epoch().await.unwrap();
    let _timers = dying.directory.name_offline("timers");
    let (second, third) = (server.join("game-2", "hostB"), server.join("game-3", "hostC"));
    let (mut declines, mut takes) =
        (second.directory.name_offline("timers"), third.directory.name_offline("timers"));
    second.directory.epoch().await.unwrap();
    third.directory.epoch().await.unwrap();
    dying.directory.leave().await;
    let asked = tokio::time::timeout(LIMIT, declines.recv()).await.unwrap().unwrap();
    assert_eq!((asked.id.as_str(), asked.node.as_str(), asked.epoch), ("timers", "game-1", epoch));
    drop(asked);
    tokio::time::timeout(LIMIT, takes.recv()).await.unwrap().unwrap().taken();
}

/// An address that nobody answers at is listed as such within seconds, and no more once somebody does.
///
/// Holds: H-17.
#[tokio::test]
async fn an_address_that_cannot_be_dialled_is_listed_as_unreachable() {
    let server = Server::start("127.0.0.1:0", config(Duration::from_secs(30))).await;
    let (game, linkd) = (server.join("game-1", "hostA"), server.join("linkd-1", "hostB"));
    let taken = net::Tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = taken.local_addr().unwrap();
    drop(taken);
    let mut services = linkd.directory.subscribe("m/");
    let service = Service { name: "m/7".to_owned(), address: addr.to_string(), ..Service::default() };
    game.directory.register(vec![service]);
    let begun = tokio::time::Instant::now();
    let mut listed = async |unreachable: bool| {
        let is =
            |services: &Arc<Services>| services.values().any(|instance| instance.unreachable == unreachable);
        let waited = tokio::time::timeout(LIMIT, services.wait_for(is)).await;
        assert!(waited.is_ok_and(|seen| seen.is_ok()));
    };
    listed(true).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let _answers = net::Tcp::listen(addr).unwrap();
    listed(false).await;
}
