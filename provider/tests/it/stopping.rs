//! A stop: nothing new, what runs ends, then goodbye.

use std::sync::Arc;
use std::time::Duration;

use base::{Epoch, NodeId, Span};
use linkstead::{Config, Env, Linkds, code};
use net::link::Closed;
use node::lifecycle::Budgets;
use tokio::sync::watch;
use wire::link::{self, message};

use crate::game::{Hall, game, word};
use crate::linkd::{Gateway, pair, until};

pub const PATIENT: Budgets = Budgets {
    propagation: Span::ZERO,
    close: Span::secs(2),
    drain: Span::secs(20),
    save: Span::secs(5),
    grace: Span::secs(30),
};

/// Holds: G-13, G-14.
#[tokio::test]
async fn what_runs_ends_what_is_new_is_refused_and_then_it_says_goodbye() {
    let gateway = Gateway::new("linkd-1", 3).await;
    let (builder, stage) = game();
    let linkds = watch::channel(Arc::new(vec![gateway.listed(1)])).1;
    let fixed = Linkds::Fixed { epoch: Epoch(7), linkds };
    let mut env = Env::new("test", NodeId::new("game-1").unwrap(), fixed);
    env.budgets = PATIENT;
    let running = Arc::new(builder.start(Config::default(), env, Default::default()).await.unwrap());
    let mut linkd = gateway.accept().await;
    linkd.introduce().await;
    linkd.open(1, "alice", None);
    linkd.request(1, Hall::HOLD, 1, &word("long"));
    until(&running, "held", |_| stage.lines() == ["begin long"]).await;
    let stopping = tokio::spawn({
        let running = running.clone();
        async move { running.stop().await }
    });
    assert_eq!(linkd.call::<message::Disable>(link::DISABLE).await, message::Disable { disabled: true });
    until(&running, "draining", |status| status["links"][0]["draining"] == true).await;
    linkd.request(1, Hall::ECHO, 2, &word("too late"));
    assert_eq!(linkd.sent().await.result(2), code::SHUTTING_DOWN.result());
    assert!(!stopping.is_finished());
    stage.gate.0.add_permits(1);
    assert_eq!(linkd.sent().await.result(1), 0);
    let closed = linkd.ended().await;
    assert!(
        matches!(&closed, Closed::Goodbye(refusal) if refusal.code == code::SHUTTING_DOWN.number),
        "{closed}"
    );
    stopping.await.unwrap().unwrap();
    // The session's end was the last thing, and it was waited for.
    let gone = format!("gone alice Some({})", code::UNAVAILABLE.number);
    assert_eq!(stage.lines(), ["begin long".to_owned(), "end long".to_owned(), gone]);
}

/// Holds: G-15, G-16.
#[tokio::test]
async fn a_drain_that_never_ends_is_cut_off_and_said_so() {
    let (builder, stage) = game();
    let (running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.request(1, Hall::HOLD, 1, &word("for ever"));
    until(&running, "held", |_| stage.lines() == ["begin for ever"]).await;
    let answering = tokio::spawn(async move {
        linkd.call::<message::Disable>(link::DISABLE).await;
        linkd.ended().await
    });
    let stopped = tokio::time::timeout(Duration::from_secs(10), running.stop()).await.unwrap();
    let text = stopped.unwrap_err().to_string();
    assert!(text.contains("cut off"), "{text}");
    answering.await.unwrap();
    // Again: the same outcome, at once.
    assert!(running.stop().await.is_err());
}

/// Dropping it stops it: the linkd sees its connection end.
#[tokio::test]
async fn a_dropped_provider_is_gone() {
    let (builder, _stage) = game();
    let (running, _gateway, linkd) = pair(builder, Config::default()).await;
    drop(running);
    linkd.ended().await;
}

/// Found by simulation: a linkd has seen a newer start of this node, so this one can serve nobody and dialling on would
/// never end.
///
/// Holds: H-16, Z-24.
#[tokio::test]
async fn a_start_that_was_outlived_stops() {
    let (builder, _stage) = game();
    let (running, _gateway, linkd) = pair(builder, Config::default()).await;
    linkd.link.goodbye(&code::STALE_EPOCH, "game-1 was already here with epoch 9, you say 7");
    let stopped =
        tokio::time::timeout(Duration::from_secs(20), running.stopped()).await.expect("it dials on");
    assert!(stopped.unwrap_err().to_string().contains("STALE_EPOCH"));
}
