//! Certificates that change while players play.

use std::time::Instant;

use cli::cert::{Authority, Issued};
use net::hello::Role;
use node::config::{NodeConfig, Time};
use tavern::Tavern;
use tavern::messages::Login;
use tokio_util::sync::CancellationToken;

use super::world::{World, authority, id, shown, within};
use crate::process::PATIENCE;

/// Certificates are exchanged while players play: nobody is cut off, new handshakes see the new one, a bad file keeps it
/// and raises an alarm.
///
/// Holds: D93, X-15.
#[tokio::test(flavor = "multi_thread")]
async fn certificates_change_under_load_and_nobody_is_cut_off() {
    let (authority, dir) = (authority(), tempfile::tempdir().unwrap());
    let write = |issued: &Issued| {
        use std::os::unix::fs::PermissionsExt;
        let (cert, key) = (dir.path().join("linkd-1.pem"), dir.path().join("linkd-1.key"));
        std::fs::write(&key, &issued.key).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(cert, &issued.cert).unwrap();
    };
    let issue = |authority: &Authority| authority.issue(Role::Linkd, &id("linkd-1"), &[], 1).unwrap();
    std::fs::write(dir.path().join("ca.pem"), &authority.pem).unwrap();
    write(&issue(&authority));
    let mut config = NodeConfig { cluster: "test".into(), ..NodeConfig::default() };
    config.tls.dir = dir.path().to_owned();
    config.tls.look = Time::millis(20);
    let proven = node::tls::secure(&config, Role::Linkd, &id("linkd-1")).unwrap();
    let (security, readiness) = (proven.security.clone(), node::ops::Readiness::new(&[]));
    let keeping = proven.keep(readiness.clone()).unwrap();
    let world = World::start_with(authority, security).await;
    let ann = world.player("ann").await.unwrap();
    // The summary is taken now and then; the first one comes before the provider.
    let providers = || world.linkd.summary().providers.len();
    let began = Instant::now();
    while providers() == 0 {
        assert!(began.elapsed() < PATIENCE, "the provider was never listed");
        tokio::task::yield_now().await;
    }
    let before = providers();

    let over = CancellationToken::new();
    let playing = tokio::spawn({
        let over = over.clone();
        async move {
            let mut answered = 0u32;
            while !over.is_cancelled() {
                within(ann.request(Tavern::LOGIN, Login::default())).await.unwrap();
                answered += 1;
            }
            answered
        }
    });
    let dialler = world.authority.security(Role::Provider, &id("game-9")).unwrap();
    for _ in 0..3 {
        let (old, new) = (shown(&world, &dialler).await, issue(&world.authority));
        write(&new);
        let began = Instant::now();
        while shown(&world, &dialler).await == old {
            assert!(began.elapsed() < PATIENCE, "the new certificate was never shown");
        }
    }
    let last = shown(&world, &dialler).await;
    std::fs::write(dir.path().join("linkd-1.pem"), "-----BEGIN NOTHING").unwrap();
    let began = Instant::now();
    while readiness.warnings().is_empty() {
        assert!(began.elapsed() < PATIENCE, "no alarm");
        tokio::task::yield_now().await;
    }
    assert!(readiness.warnings()["node_tls"].contains("linkd-1.pem"), "{:?}", readiness.warnings());
    assert_eq!(shown(&world, &dialler).await, last);
    assert!(readiness.reasons().is_empty());
    over.cancel();
    assert!(within(playing).await.unwrap() > 0);
    assert!(world.game.is_ready());
    assert_eq!(providers(), before);
    keeping.abort();
}
