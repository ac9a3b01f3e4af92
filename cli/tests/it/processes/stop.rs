//! The documented order of stopping: providers, gateways, the arbiter, the directory. Nothing is in doubt, and everybody ends with 0.

use std::time::{Duration, Instant};

use super::players::{Players, refused};
use super::world::{ARBITER, DIRECTORY, World, ready};

const PLAYERS: usize = 16;
const STOPS: Duration = Duration::from_secs(10);

/// A provider that stops answers what it has, and the other one takes over; without any provider players are asked to
/// wait. No request is in doubt at any time.
///
/// Holds: Z-66, G-02, G-05.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stopped_in_order_everybody_ends_cleanly_and_nothing_is_in_doubt() {
    let world = World::new();
    let mut nodes = world.start_all();
    let players = Players::begin(&world, PLAYERS).await;
    let mut stop = |node: &'static str| {
        let began = Instant::now();
        let mut process = nodes.remove(node).unwrap();
        process.signal("TERM");
        assert_eq!(process.end().code(), Some(0), "{node}: {:#?}", process.seen);
        assert!(began.elapsed() < STOPS, "{node} took {:?}", began.elapsed());
        assert!(process.seen.iter().any(|line| line.contains("stop: over")), "{node}: {:#?}", process.seen);
    };
    stop("game-1");
    players.served_within(STOPS).await;
    stop("game-2");
    let outcome = players.end().await;
    for failed in &outcome.failed {
        assert!(failed.iter().all(refused), "{failed:?}");
    }
    assert_eq!(outcome.reconnects, 0, "a provider's end is no end of a connection");
    stop("linkd-1");
    stop("linkd-2");
    stop(ARBITER);
    stop(DIRECTORY);
}

/// One node after the other is stopped and started again, and the players play on.
///
/// Holds: G-02.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rolling_restart_leaves_everybody_served() {
    let world = World::new();
    let mut nodes = world.start_all();
    let players = Players::begin(&world, PLAYERS).await;
    for node in [DIRECTORY, ARBITER, "game-1", "game-2", "linkd-1", "linkd-2"] {
        let mut process = nodes.remove(node).unwrap();
        process.signal("TERM");
        assert_eq!(process.end().code(), Some(0), "{node}: {:#?}", process.seen);
        let mut process = world.start(node);
        process.wait_for(&ready(node));
        nodes.insert(node, process);
        players.served_within(STOPS).await;
    }
    let outcome = players.end().await;
    assert!(outcome.said > 0 && outcome.reconnects > 0, "{outcome:?}");
}
