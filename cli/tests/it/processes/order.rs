//! Every order of starting comes to the same cluster; who starts too early says for what it waits, and says it once.

use std::time::{Duration, Instant};

use client::Client;
use tavern::Tavern;
use tavern::messages::Login;

use super::world::{ARBITER, DIRECTORY, NODES, World, ready};
use crate::process::{Process, output};

/// A node that has to wait says so within this.
const SAYS: Duration = Duration::from_secs(2);
/// After the last missing node has come, everybody serves within this.
const SERVES: Duration = Duration::from_secs(5);
/// How long nodes are left waiting.
const MISSING: Duration = Duration::from_secs(3);
const NO_DIRECTORY: &str = "waiting for the directory";
const NO_LINKD: &str = "waiting for linkds";

/// Lines of the log that say that something is missing.
fn complaints(process: &mut Process) -> usize {
    process.said().iter().filter(|line| line.contains("waiting for")).count()
}

/// Waits a while and looks that nobody fills the log meanwhile.
fn left_waiting(waiting: &mut [(&'static str, Process)]) {
    #[allow(clippy::disallowed_methods)]
    // Sleep: the time for which something is missing is what is tested.
    std::thread::sleep(MISSING);
    for (node, process) in waiting {
        let all = complaints(process);
        assert!((1..=3).contains(&all), "{node} says {all} times that it waits: {:#?}", process.seen);
    }
}

/// A player comes in through either gateway.
async fn serves(world: &World, began: Instant) {
    let login = async {
        loop {
            if let Ok(client) = Client::connect(world.options("ann")).await {
                while client.request(Tavern::LOGIN, Login::default()).await.is_err() {
                    // Sleep: who is asked to come again does not come at once.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                return;
            }
        }
    };
    tokio::time::timeout(SERVES, login).await.expect("nobody gets in");
    assert!(began.elapsed() < SERVES * 2, "{:?} until a player was served", began.elapsed());
}

/// Starts `first`, which all wait for the directory, then the rest in this order.
async fn without_a_directory(first: &[&'static str], rest: &[&'static str]) {
    let world = World::new();
    let mut waiting: Vec<_> = first.iter().map(|node| (*node, world.start(node))).collect();
    for (node, process) in &mut waiting {
        process.wait_within(NO_DIRECTORY, SAYS);
        let status = world.status(node);
        assert_eq!(status["waiting_for"], "directory", "{status}");
    }
    left_waiting(&mut waiting);
    let began = Instant::now();
    let mut others: Vec<_> = rest.iter().map(|node| (*node, world.start(node))).collect();
    for (node, process) in others.iter_mut().chain(&mut waiting) {
        process.wait_within(&ready(node), SERVES);
    }
    serves(&world, began).await;
}

/// Holds: Z-66, Z-20.
#[tokio::test]
async fn a_provider_that_is_first_waits_for_the_directory() {
    without_a_directory(&["game-1", "game-2"], &[DIRECTORY, ARBITER, "linkd-1", "linkd-2"]).await;
}

/// Holds: Z-66.
#[tokio::test]
async fn linkds_that_are_first_wait_for_the_directory() {
    without_a_directory(&["linkd-1", "linkd-2", "game-1"], &["game-2", DIRECTORY, ARBITER]).await;
}

/// Holds: Z-66.
#[tokio::test]
async fn an_arbiter_that_is_first_waits_for_the_directory_and_one_that_is_last_is_found() {
    without_a_directory(&[ARBITER], &["game-1", DIRECTORY, "linkd-1", "game-2", "linkd-2"]).await;
    without_a_directory(&["game-1"], &[DIRECTORY, "linkd-2", "linkd-1", "game-2", ARBITER]).await;
}

/// Holds: Z-66.
#[tokio::test]
async fn all_at_once_comes_to_the_same_cluster() {
    let world = World::new();
    let began = Instant::now();
    let mut all: Vec<_> = NODES.into_iter().rev().map(|node| (node, world.start(node))).collect();
    for (node, process) in &mut all {
        process.wait_within(&ready(node), SERVES);
    }
    serves(&world, began).await;
}

/// Holds: Z-66, Z-20.
#[tokio::test]
async fn providers_without_a_linkd_say_so_and_serve_when_one_comes() {
    let world = World::new();
    let mut directory = world.start(DIRECTORY);
    directory.wait_for(&ready(DIRECTORY));
    let mut games = vec![("game-1", world.start("game-1")), ("game-2", world.start("game-2"))];
    for (_, game) in &mut games {
        let line = game.wait_within(NO_LINKD, SAYS);
        assert!(line.contains("no linkd is known"), "{line}");
    }
    left_waiting(&mut games);
    let began = Instant::now();
    let mut linkds = [("linkd-1", world.start("linkd-1")), ("linkd-2", world.start("linkd-2"))];
    for (node, process) in linkds.iter_mut().chain(&mut games) {
        process.wait_within(&ready(node), SERVES);
    }
    serves(&world, began).await;
}

/// Whoever stops a node that still waits stops it at once and without a fault, whatever its role.
///
/// Holds: Z-66, G-09.
#[tokio::test]
async fn a_node_that_waits_stops_at_once() {
    let world = World::new();
    for node in ["linkd-1", "game-1", ARBITER] {
        let mut process = world.start(node);
        process.wait_within(NO_DIRECTORY, SAYS);
        let began = Instant::now();
        process.signal("TERM");
        assert!(process.end().success(), "{node}: {:#?}", process.seen);
        assert!(began.elapsed() < SAYS, "{node} took {:?}", began.elapsed());
    }
    // A directory that is the only node tells an operator so.
    let mut directory = world.start(DIRECTORY);
    directory.wait_for(&ready(DIRECTORY));
    let (code, out, err) = output(&["topology", "--ops", world.ops(DIRECTORY), "--json"]);
    assert_eq!((code, out.trim()), (0, "[]"), "{err}");
}
