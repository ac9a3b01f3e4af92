//! Nodes join, see each other, leave, die and are doubled.

use std::time::Duration;

use node::admin::Client;
use node::directory::JoinError;

use crate::world::{LIMIT, Server, config, until};

const TTL: Duration = Duration::from_millis(600);

/// Holds: H-13.
#[tokio::test]
async fn nodes_see_each_other_come_and_go() {
    let server = Server::start("127.0.0.1:0", config(TTL)).await;
    let (game, linkd) = (server.join("game-1", "hostA"), server.join("linkd-1", "hostB"));
    let mut modules = linkd.directory.subscribe("m/");
    let mut exact = linkd.directory.subscribe("m/8");
    game.offer(&["m/7", "m/8", "other"]);
    until(&mut modules, &["m/7@game-1", "m/8@game-1"]).await;
    until(&mut exact, &["m/8@game-1"]).await;
    game.offer(&["m/7"]);
    until(&mut exact, &[]).await;
    until(&mut modules, &["m/7@game-1"]).await;

    let nodes = linkd.directory.nodes().await;
    let shown: Vec<_> =
        nodes.iter().map(|node| (node.node.as_str(), node.role.as_str(), node.host.as_str())).collect();
    assert_eq!(shown, [("game-1", "provider", "hostA"), ("linkd-1", "provider", "hostB")]);
    assert_eq!(nodes[0].ops_address, "hostA:7703");
    assert_eq!(nodes[0].epoch, game.directory.epoch().await.unwrap());

    let mut operator = Client::connect(&server.ops.to_string()).await.unwrap();
    let topology = operator.topology().await.unwrap();
    assert_eq!(topology[0]["services"][0]["name"], "m/7");
    assert_eq!(operator.status().await.unwrap()["role"], "directory");

    game.directory.leave().await;
    until(&mut modules, &[]).await;
}

/// Holds: H-11, Q43.
#[tokio::test]
async fn a_node_that_died_is_gone_when_its_lease_ran_out() {
    let server = Server::start("127.0.0.1:0", config(TTL)).await;
    let (game, linkd) = (server.join("game-1", "hostA"), server.join("linkd-1", "hostB"));
    let mut modules = linkd.directory.subscribe("m/");
    game.offer(&["m/7"]);
    until(&mut modules, &["m/7@game-1"]).await;
    let died = tokio::time::Instant::now();
    game.kill();
    until(&mut modules, &[]).await;
    // The last beat was at most one tenth of the lease before.
    assert!(died.elapsed() > TTL / 2, "removed after {:?}, within its lease", died.elapsed());
}

/// Holds: H-10, BI-112, Q43.
#[tokio::test]
async fn a_second_start_is_refused_naming_both_hosts_and_admitted_after_the_first() {
    let server = Server::start("127.0.0.1:0", config(Duration::from_secs(15))).await;
    let first = server.join("game-1", "hostA");
    let before = first.directory.epoch().await.unwrap();
    let second = server.join("game-1", "hostB");
    let refused = second.directory.epoch().await.unwrap_err();
    let hosts = matches!(&refused, JoinError::DuplicateNode { ours, theirs, .. } if ours == "hostB" && theirs == "hostA");
    assert!(hosts, "{refused}");
    assert!(first.directory.connected());
    // Its connection closes: nobody waits for the lease of 15 s.
    first.kill();
    let third = server.join("game-1", "hostC");
    let after = tokio::time::timeout(LIMIT / 2, third.directory.epoch()).await.unwrap().unwrap();
    assert!(after > before);
}

/// Holds: H-09.
#[tokio::test]
async fn epochs_grow_however_close_two_starts_are() {
    let server = Server::start("127.0.0.1:0", config(TTL)).await;
    let mut last = base::Epoch::NONE;
    for _ in 0..5 {
        let node = server.join("game-1", "hostA");
        let epoch = node.directory.epoch().await.unwrap();
        assert!(epoch > last, "{epoch} after {last}");
        last = epoch;
        node.directory.leave().await;
    }
}

/// Holds: BI-112.
#[tokio::test]
async fn a_node_of_another_cluster_is_told_both_names() {
    let server = Server::start("127.0.0.1:0", config(TTL)).await;
    let refused =
        server.join_cluster("game-1", "hostA", "elsewhere").directory.epoch().await.unwrap_err().to_string();
    assert!(refused.contains("\"linkstead\"") && refused.contains("\"elsewhere\""), "{refused}");
}

#[tokio::test]
async fn a_stop_asked_for_by_an_operator_ends_the_directory() {
    let server = Server::start("127.0.0.1:0", config(TTL)).await;
    let mut operator = Client::connect(&server.ops.to_string()).await.unwrap();
    assert!(!operator.stop(false).await.unwrap());
    server.ended().await;
}
