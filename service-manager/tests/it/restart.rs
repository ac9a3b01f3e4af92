//! The directory dies and comes back, knowing nothing.

use std::time::Duration;

use crate::world::{Server, config, until};

/// Losing the directory changes nothing, its empty restart changes nothing, who is still there keeps its epoch, and who
/// is not is removed when the directory has warmed up.
///
/// Holds: H-15, Z-22, Z-23, Q21, Q30.
#[tokio::test]
async fn a_restart_loses_nobody_who_is_still_there() {
    let ttl = Duration::from_secs(1);
    let server = Server::start("127.0.0.1:0", config(ttl)).await;
    let (game, dying) = (server.join("game-1", "hostA"), server.join("game-2", "hostB"));
    let linkd = server.join("linkd-1", "hostC");
    let mut modules = linkd.directory.subscribe("m/");
    game.offer(&["m/7"]);
    dying.offer(&["m/7"]);
    until(&mut modules, &["m/7@game-1", "m/7@game-2"]).await;
    let epochs = (game.directory.epoch().await.unwrap(), linkd.directory.epoch().await.unwrap());

    let addr = server.kill().await.to_string();
    dying.kill();
    let server = Server::start(&addr, config(ttl)).await;
    let late = server.join("game-3", "hostD");
    late.offer(&["m/7"]);

    let seen = until(&mut modules, &["m/7@game-1", "m/7@game-3"]).await;
    assert!(
        seen.iter().all(|list| list.contains(&"m/7@game-1".to_owned())),
        "game-1 was there all along: {seen:?}"
    );
    assert!(seen.len() <= 4, "each change is seen once: {seen:?}");
    assert!(linkd.directory.connected() && !linkd.directory.warming());
    assert_eq!((game.directory.current_epoch(), linkd.directory.current_epoch()), epochs);
    assert!(late.directory.epoch().await.unwrap() > epochs.0.max(epochs.1));
}

/// What is offered and followed while the directory is away is said as soon as it is back.
#[tokio::test]
async fn what_is_said_in_between_is_not_lost() {
    let server = Server::start("127.0.0.1:0", config(Duration::from_secs(1))).await;
    let (game, linkd) = (server.join("game-1", "hostA"), server.join("linkd-1", "hostC"));
    game.directory.epoch().await.unwrap();
    linkd.directory.epoch().await.unwrap();
    let addr = server.kill().await.to_string();
    game.offer(&["m/7"]);
    game.offer(&["m/8"]);
    let mut modules = linkd.directory.subscribe("m/");
    let _server = Server::start(&addr, config(Duration::from_secs(1))).await;
    until(&mut modules, &["m/8@game-1"]).await;
}
