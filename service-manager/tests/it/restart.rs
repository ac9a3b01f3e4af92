//! The directory dies and comes back, knowing nothing.

use std::time::Duration;

use node::directory::{Claim, ClaimError};
use service_manager::ServiceManagerConfig;
use service_manager::config::StoreKind;

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

/// A directory with a store knows what it answered, also when nobody is there to say it again.
///
/// Holds: H-09, Z-24.
#[tokio::test]
async fn with_a_store_a_restart_forgets_nothing_that_was_answered() {
    let (dir, patience) = (tempfile::tempdir().unwrap(), Duration::from_secs(10));
    let stored = || ServiceManagerConfig {
        store: StoreKind::Redb,
        data_dir: dir.path().to_owned(),
        ..config(Duration::from_secs(1))
    };
    let server = Server::start("127.0.0.1:0", stored()).await;
    let game = server.join("game-1", "hostA");
    let first = game.directory.epoch().await.unwrap();
    let ticket = |value: &str| Claim {
        key: "ticket/1".to_owned(),
        value: value.into(),
        ttl: Duration::from_secs(600),
        outlives_node: true,
    };
    game.directory.claim(ticket("game-1"), patience).await.unwrap();
    let ids = game.directory.allocate_ids("guild", 10, patience).await.unwrap();
    game.kill();
    let addr = server.kill().await.to_string();

    let server = Server::start(&addr, stored()).await;
    let other = server.join("game-2", "hostB");
    assert!(other.directory.epoch().await.unwrap() > first);
    let second = other.directory.claim(ticket("game-2"), patience).await;
    assert_eq!(second, Err(ClaimError::Taken));
    assert_eq!(other.directory.allocate_ids("guild", 1, patience).await.unwrap(), ids.end..ids.end + 1);
}
