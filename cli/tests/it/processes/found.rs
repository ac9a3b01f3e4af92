//! A node that comes is found by those who follow it, at once and without a change of anybody's settings.

use std::time::{Duration, Instant};

use client::{Client, Options};
use tavern::Tavern;
use tavern::messages::Login;

use super::players::refused;
use super::world::{DIRECTORY, World, ready};
use crate::process::PATIENCE;

/// From its registration on, everybody who follows a node uses it within this.
const FOUND: Duration = Duration::from_secs(2);

/// Waits until the directory lists the node, and says when it was surely not listed yet.
fn registered(world: &World, node: &str) -> Instant {
    let started = Instant::now();
    loop {
        let asked = Instant::now();
        if world.epochs().contains_key(node) {
            return asked;
        }
        assert!(started.elapsed() < PATIENCE, "{node} is not listed");
    }
}

fn through(world: &World, gateway: usize, account: &str) -> Options {
    Options { addrs: vec![world.gateway(gateway).to_owned()], reconnect: None, ..world.options(account) }
}

/// Asks for a handler of the game until one answers.
async fn served(client: &Client) {
    while let Err(error) = client.request(Tavern::LOGIN, Login::default()).await {
        assert!(refused(&error), "{error}");
        // Sleep: who is asked to come again does not come at once.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A provider that comes is routed to by the linkds that were there before, and a linkd that comes is connected by the
/// providers that were there before; nobody's settings name any of them.
///
/// Holds: H-13, H-14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_is_found_by_all_who_follow_it() {
    let world = World::new();
    let mut nodes = Vec::new();
    for node in [DIRECTORY, "linkd-1"] {
        let mut process = world.start(node);
        process.wait_for(&ready(node));
        nodes.push(process);
    }
    let ann = Client::connect(through(&world, 0, "ann")).await.unwrap();
    assert!(refused(&ann.request(Tavern::LOGIN, Login::default()).await.unwrap_err()));

    nodes.push(world.start("game-1"));
    let listed = registered(&world, "game-1");
    tokio::time::timeout(PATIENCE, served(&ann)).await.expect("the provider is not found");
    let took = listed.elapsed();
    assert!(took < FOUND, "the linkd routes to the provider after {took:?}");

    nodes.push(world.start("linkd-2"));
    let listed = registered(&world, "linkd-2");
    let connected = async {
        loop {
            if let Ok(bob) = Client::connect(through(&world, 1, "bob")).await {
                return served(&bob).await;
            }
            // Sleep: its port may not be open yet.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, connected).await.expect("the linkd is not found");
    let took = listed.elapsed();
    assert!(took < FOUND, "the provider serves through the linkd after {took:?}");
}
