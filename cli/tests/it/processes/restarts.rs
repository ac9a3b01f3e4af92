//! Each role is killed and started again while players play: what may fail, what may not, and for how long.

use std::time::{Duration, Instant};

use client::{Client, Error, Options};

use super::players::{Players, lost, refused};
use super::world::{DIRECTORY, World, ready};
use crate::process::PATIENCE;

const PLAYERS: usize = 16;
/// After a node is lost, and after it is back, everybody is served within this.
const SERVED: Duration = Duration::from_secs(5);

/// For longer than every lease nobody notices; then all nodes are back under the epochs that they had, and who came
/// meanwhile is let in.
///
/// Holds: Z-23, H-15, Q30, Q39, Q55.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_directory_is_killed_and_nobody_who_plays_notices() {
    let mut world = World::new();
    world.set(DIRECTORY, "service_manager.ttl=3s");
    world.set(DIRECTORY, "service_manager.heartbeat=500ms");
    let mut nodes = world.start_all();
    let players = Players::begin(&world, PLAYERS).await;
    let before = world.epochs();
    assert_eq!(before.len(), 5, "{before:?}");

    let mut directory = nodes.remove(DIRECTORY).unwrap();
    directory.signal("KILL");
    assert!(!directory.end().success());
    let died = Instant::now();
    // A new ticket can't be looked up; the player is asked to come again and is not sent away.
    let newcomer = Options { reconnect: None, ..world.options("newcomer") };
    let refusal = Client::connect(newcomer).await.unwrap_err();
    assert!(matches!(refusal, Error::Refused { name: "BUSY", .. }), "{refusal}");
    while died.elapsed() < Duration::from_secs(4) {
        players.served_within(SERVED).await;
    }

    let began = Instant::now();
    let mut directory = world.start(DIRECTORY);
    directory.wait_for(&ready(DIRECTORY));
    while world.epochs() != before {
        assert!(began.elapsed() < SERVED * 2, "{:?} instead of {before:?}", world.epochs());
    }
    let newcomer = loop {
        match Client::connect(world.options("newcomer")).await {
            Ok(client) => break client,
            Err(error) => assert!(refused(&error) && began.elapsed() < SERVED * 2, "{error}"),
        }
    };
    newcomer.close().await;
    let outcome = players.end().await;
    assert_eq!(outcome.failed().next(), None, "{outcome:?}");
    assert_eq!(outcome.reconnects, 0);
}

/// Its players come back through the other gateway, those of the other one notice nothing, and its next start serves
/// again under a newer epoch.
///
/// Holds: H-09, Z-20.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_linkd_is_killed_and_its_players_come_back_through_the_other() {
    let world = World::new();
    let mut nodes = world.start_all();
    let players = Players::begin(&world, PLAYERS).await;
    let before = world.epochs()["linkd-1"];
    let mut linkd = nodes.remove("linkd-1").unwrap();
    linkd.signal("KILL");
    assert!(!linkd.end().success());
    players.served_within(SERVED).await;

    let mut linkd = world.start("linkd-1");
    linkd.wait_within(&ready("linkd-1"), SERVED);
    assert!(world.epochs()["linkd-1"] > before);
    let began = Instant::now();
    let through_it = Options { addrs: vec![world.gateway(0).to_owned()], ..world.options("late") };
    let client = Client::connect(through_it).await.unwrap();
    while let Err(error) = client.request(tavern::Tavern::LOGIN, Default::default()).await {
        assert!(refused(&error) && began.elapsed() < SERVED, "{error}");
    }
    client.close().await;
    players.served_within(SERVED).await;
    let outcome = players.end().await;
    for failed in &outcome.failed {
        // Lost is what was on its way; nothing else may be in doubt.
        assert!(failed.iter().all(|error| refused(error) || lost(error)), "{failed:?}");
        assert!(failed.iter().filter(|error| lost(error)).count() <= 1, "{failed:?}");
    }
    let untouched = outcome.failed.iter().filter(|failed| failed.is_empty()).count();
    assert!((1..PLAYERS).contains(&untouched), "{untouched} players noticed nothing");
    assert_eq!(outcome.reconnects as usize, PLAYERS - untouched);
}

/// Its players go on at the other provider, and its next start takes its share again.
///
/// Holds: H-09, Z-08.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_provider_is_killed_and_its_players_go_on_at_the_other() {
    let world = World::new();
    let mut nodes = world.start_all();
    let players = Players::begin(&world, PLAYERS).await;
    let before = world.epochs()["game-1"];
    let mut game = nodes.remove("game-1").unwrap();
    game.signal("KILL");
    assert!(!game.end().success());
    // Requests that were on their way end with their deadline at the latest.
    players.served_within(SERVED + Duration::from_secs(3)).await;

    let mut game = world.start("game-1");
    game.wait_within(&ready("game-1"), SERVED);
    assert!(world.epochs()["game-1"] > before);
    players.served_within(SERVED).await;
    let began = Instant::now();
    while world.status("game-1")["counts"]["requests"].as_u64() == Some(0) {
        assert!(began.elapsed() < PATIENCE, "it serves nobody");
    }
    let outcome = players.end().await;
    for failed in &outcome.failed {
        assert!(failed.iter().all(|error| refused(error) || lost(error)), "{failed:?}");
    }
    assert_eq!(outcome.reconnects, 0, "the gateways live");
}
