//! The session over channels under a paused clock: what it says, and when it gives up.

use std::convert::Infallible;

use net::dial::Backoff;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;

use super::*;
use crate::directory::{Claim, ClaimError, Join, Service};

/// The directory's side of one session.
struct Peer {
    to: mpsc::Sender<Result<msg::FromDirectory, Infallible>>,
    from: mpsc::Receiver<msg::ToDirectory>,
    end: JoinHandle<End>,
}

fn handle() -> Directory {
    Directory::alone(Join {
        cluster: "c".to_owned(),
        node: NodeId::new("game-1").unwrap(),
        role: "provider".to_owned(),
        host: "hostA".to_owned(),
        directory: Vec::new(),
        ops_address: String::new(),
        reconnect: Backoff::new(Duration::from_millis(1), Duration::from_millis(1), 0),
        security: net::Security::Insecure,
    })
}

impl Peer {
    fn meet(directory: &Directory) -> Self {
        let (to, answers) = mpsc::channel(64);
        let (outbox, from) = mpsc::channel(64);
        let directory = directory.clone();
        let end =
            tokio::spawn(async move { session(&directory, ReceiverStream::new(answers), outbox).await });
        Self { to, from, end }
    }

    async fn admit(directory: &Directory, epoch: u64) -> Self {
        let mut peer = Self::meet(directory);
        assert!(matches!(peer.heard().await, To::Hello(_)));
        let welcome =
            msg::Welcome { epoch, heartbeat_ms: 5_000, ttl_ms: 15_000, proto: PROTO, ..Default::default() };
        peer.say(From::Welcome(welcome)).await;
        peer
    }

    async fn say(&self, kind: From) {
        self.to.send(Ok(msg::FromDirectory { kind: Some(kind) })).await.unwrap();
    }

    async fn heard(&mut self) -> To {
        self.from.recv().await.unwrap().kind.unwrap()
    }
}

fn service(name: &str) -> Service {
    Service { name: name.to_owned(), ..Service::default() }
}

/// Every session says everything again: services first, then each subscription once.
///
/// Holds: Z-22.
#[tokio::test(start_paused = true)]
async fn each_session_replays_all_the_node_had() {
    let directory = handle();
    directory.register(vec![service("m/7")]);
    let _linkd = directory.subscribe("linkd");
    let mut epochs = directory.epoch_changes();
    for round in 0..2 {
        let mut peer = Peer::admit(&directory, 7).await;
        assert!(matches!(peer.heard().await, To::Register(register) if register.services.len() == 1));
        assert!(matches!(peer.heard().await, To::Subscribe(subscribe) if subscribe.name == "linkd"));
        if round == 0 {
            directory.register(vec![service("m/8")]);
            let _all = directory.subscribe("m/");
            let next = peer.heard().await;
            assert!(
                matches!(&next, To::Register(register) if register.services[0].name == "m/8"),
                "{next:?}"
            );
        }
        assert!(matches!(peer.heard().await, To::Subscribe(subscribe) if subscribe.name == "m/"));
        // Nothing is said twice: the next thing is a beat.
        assert!(matches!(peer.heard().await, To::Heartbeat(_)));
        assert!(directory.connected());
        drop(peer.to);
        assert!(matches!(peer.end.await.unwrap(), End::Closed(_)));
        assert!(!directory.connected());
    }
    assert_eq!((*epochs.borrow_and_update(), directory.epoch().await), (Epoch(7), Ok(Epoch(7))));
    // Another start was admitted meanwhile; this one learns it.
    let _peer = Peer::admit(&directory, 9).await;
    epochs.changed().await.unwrap();
    assert_eq!(*epochs.borrow(), Epoch(9));
}

#[tokio::test(start_paused = true)]
async fn a_node_says_which_epoch_it_has_and_which_it_has_seen() {
    let directory = handle();
    let _all = directory.subscribe("/");
    let mut peer = Peer::admit(&directory, 7).await;
    let other = msg::Service { name: "m".to_owned(), ..Default::default() };
    let other =
        msg::Instance { node: "game-2".to_owned(), epoch: 90, service: Some(other), unreachable: false };
    let list =
        msg::Snapshot { name: "/".to_owned(), revision: 3, instances: vec![other], ..Default::default() };
    peer.say(From::Snapshot(list)).await;
    peer.say(From::Ping(msg::Ping { nonce: 5 })).await;
    while !matches!(peer.heard().await, To::Pong(msg::Pong { nonce: 5 })) {}
    drop(peer);
    let mut peer = Peer::meet(&directory);
    let hello = peer.heard().await;
    assert!(
        matches!(&hello, To::Hello(hello) if (hello.epoch, hello.epoch_seen_max) == (7, 90)),
        "{hello:?}"
    );
}

/// Also of a peer that no list has shown, with the next session.
#[tokio::test(start_paused = true)]
async fn a_node_says_the_epoch_of_whomever_it_has_met() {
    let directory = handle();
    let peer = Peer::admit(&directory, 7).await;
    directory.met(Epoch(95));
    drop(peer);
    let mut peer = Peer::meet(&directory);
    let hello = peer.heard().await;
    assert!(matches!(&hello, To::Hello(hello) if hello.epoch_seen_max == 95), "{hello:?}");
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_falls_silent_is_left_after_one_lease() {
    let directory = handle();
    let peer = Peer::admit(&directory, 7).await;
    let before = Instant::now();
    assert_eq!(peer.end.await.unwrap(), End::Silent(Duration::from_secs(15)));
    assert_eq!(before.elapsed(), Duration::from_secs(15));

    let mut peer = Peer::meet(&directory);
    assert!(matches!(peer.heard().await, To::Hello(_)));
    assert_eq!(peer.end.await.unwrap(), End::Silent(ADMISSION_TIMEOUT));
}

#[tokio::test(start_paused = true)]
async fn leaving_says_bye_and_a_refusal_names_the_hosts() {
    let directory = handle();
    let mut peer = Peer::admit(&directory, 7).await;
    while !directory.connected() {
        tokio::task::yield_now().await;
    }
    directory.shared.leave.cancel();
    assert!(matches!(peer.heard().await, To::Bye(_)));
    drop(peer.to);
    assert_eq!(peer.end.await.unwrap(), End::Left);

    let mut peer = Peer::meet(&handle());
    assert!(matches!(peer.heard().await, To::Hello(_)));
    let code = code::DUPLICATE_NODE.number;
    peer.say(From::Refused(msg::Refused { code, other_host: "hostB".to_owned(), ..Default::default() }))
        .await;
    let end = peer.end.await.unwrap();
    assert!(
        matches!(&end, End::Refused(error) if error.is_final())
            && end.to_string().contains("hostB")
            && end.to_string().contains("hostA"),
        "{end}"
    );
}

/// Whatever a directory says out of turn ends the session with its reason, and never more than that.
#[tokio::test(start_paused = true)]
async fn what_comes_out_of_order_ends_the_session() {
    for first in [From::Warm(msg::Warm::default()), From::Welcome(msg::Welcome::default())] {
        let mut peer = Peer::meet(&handle());
        assert!(matches!(peer.heard().await, To::Hello(_)));
        peer.say(first).await;
        assert!(matches!(peer.end.await.unwrap(), End::OutOfOrder(_)));
    }
    let peer = Peer::admit(&handle(), 7).await;
    peer.say(From::Welcome(msg::Welcome { epoch: 8, ..Default::default() })).await;
    assert!(matches!(peer.end.await.unwrap(), End::OutOfOrder(_)));
}

/// What was won is said again to the next directory, before anything new could be.
///
/// Holds: BI-022.
#[tokio::test(start_paused = true)]
async fn a_claim_is_asked_answered_and_replayed() {
    let directory = handle();
    let claim = |key: &str| Claim {
        key: key.to_owned(),
        value: b"linkd-1".to_vec(),
        ttl: Duration::from_secs(60),
        outlives_node: true,
    };
    let patience = Duration::from_secs(2);
    assert_eq!(directory.claim(claim("t/1"), patience).await, Err(ClaimError::NotNow));
    let mut peer = Peer::admit(&directory, 7).await;
    while !directory.connected() {
        tokio::task::yield_now().await;
    }
    for (key, code, expected) in [
        ("t/1", 0, Ok(())),
        ("t/2", code::TAKEN.number, Err(ClaimError::Taken)),
        ("t/3", code::BUSY.number, Err(ClaimError::NotNow)),
    ] {
        let asking = directory.clone();
        let asked = claim(key);
        let asked = tokio::spawn(async move { asking.claim(asked, patience).await });
        let To::Claim(claim) = peer.heard().await else { panic!("a claim") };
        assert_eq!((claim.key.as_str(), claim.replay, claim.ttl_ms), (key, false, 60_000));
        peer.say(From::Claimed(msg::Claimed { seq: claim.seq, code, ..Default::default() })).await;
        assert_eq!(asked.await.unwrap(), expected);
    }
    // Nobody answers, then the session ends: both times nobody knows.
    assert_eq!(directory.claim(claim("t/4"), patience).await, Err(ClaimError::Unknown));
    let asking = directory.clone();
    let asked = claim("t/5");
    let asked = tokio::spawn(async move { asking.claim(asked, patience).await });
    while !matches!(peer.heard().await, To::Claim(claim) if claim.key == "t/5") {}
    drop(peer);
    assert_eq!(asked.await.unwrap(), Err(ClaimError::Unknown));

    let mut peer = Peer::admit(&directory, 7).await;
    let To::Claim(claim) = peer.heard().await else { panic!("a replay") };
    assert_eq!((claim.key.as_str(), claim.replay), ("t/1", true));
    assert!(claim.ttl_ms > 50_000 && claim.ttl_ms < 60_000, "{}", claim.ttl_ms);
    assert!(matches!(peer.heard().await, To::Heartbeat(_)), "only what was won is replayed");
}
