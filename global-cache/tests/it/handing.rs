//! Records go from one provider to another.

use wire::cache::{self, message, mode};

use crate::world::{PATIENCE, Provider, Word, arbiter, config, within};

/// Holds: Z-48, Z-50, Z-51.
#[tokio::test]
async fn a_record_is_handed_over_when_its_holder_has_reduced() {
    let arbiter = arbiter(&config()).await;
    let mut a = Provider::join(&arbiter, "game-1", 1).await;
    let mut b = Provider::join(&arbiter, "game-2", 2).await;
    let first = a.modify(1, b"role/1").await;
    assert_eq!((first.request, first.mode, first.must_reload), (1, mode::MODIFY, 1));
    b.ask(9, mode::SHARE, 0, b"role/1");
    let Word::Reduce(reduce) = a.word().await else { panic!("nobody asked") };
    assert_eq!((reduce.record, reduce.seq, reduce.to), (cache::record(b"role/1"), first.seq, mode::SHARE));
    a.reduced(b"role/1", reduce.seq, mode::SHARE, 40);
    let second = b.granted().await;
    assert_eq!((second.request, second.mode, second.version_min), (9, mode::SHARE, 40));
    assert!(second.seq > first.seq);
    // Others are not concerned.
    assert_eq!(b.modify(10, b"role/2").await.mode, mode::MODIFY);
    within(arbiter.statuses().wait_for(|status| (status.sessions, status.keys) == (2, 2))).await.unwrap();
}

/// Whoever comes back over another connection has its session, what it holds, and what it was asked meanwhile.
///
/// Holds: Z-53.
#[tokio::test]
async fn a_provider_that_comes_back_has_lost_nothing() {
    let arbiter = arbiter(&config()).await;
    let mut a = Provider::join(&arbiter, "game-1", 1).await;
    let mut b = Provider::join(&arbiter, "game-2", 2).await;
    let first = a.modify(1, b"role/1").await;
    a.link.outbox.close();
    within(&mut a.ended).await.unwrap();
    b.ask(9, mode::MODIFY, 0, b"role/1");
    let mut a = Provider::dial(&arbiter, "game-1", 1).await;
    let welcome = a.login(Vec::new()).await.unwrap();
    assert_eq!((welcome.fresh, welcome.epoch), (false, 7));
    // The request may have come before or after it was back; either way it hears of it.
    let Word::Reduce(reduce) = a.word().await else { panic!("nobody asked") };
    assert_eq!(reduce.seq, first.seq);
    a.reduced(b"role/1", reduce.seq, mode::INVALID, 41);
    assert_eq!(b.granted().await.version_min, 41);
    a.link.call::<message::Done>(cache::RENEW, &message::Done {}, PATIENCE).await.unwrap();
}

/// Holds: Z-61, I9.
#[tokio::test]
async fn a_later_start_takes_the_place_and_others_hear_whom_to_refuse() {
    let arbiter = arbiter(&config()).await;
    let mut before = Provider::join(&arbiter, "game-1", 1).await;
    before.modify(1, b"role/1").await;
    let after = Provider::dial(&arbiter, "game-1", 2).await;
    let welcome = after.login(Vec::new()).await.unwrap();
    assert!(welcome.fresh);
    assert!(within(before.ended).await.unwrap().contains("log in anew"));
    let mut b = Provider::join(&arbiter, "game-2", 3).await;
    b.ask(1, mode::MODIFY, 0, b"role/1");
    let Word::Grant(_, evicted) = b.word().await else { panic!("not granted") };
    let of = |node: &str| evicted.iter().find(|one| one.node == node).map(|one| (one.epoch, one.session));
    assert_eq!((of("game-1"), of("")), (Some((7, welcome.session)), Some((7, 0))));
}

/// After a start what is held is held on, and nothing is granted before the grace is over.
#[tokio::test]
async fn what_is_reasserted_is_held_on() {
    let config = global_cache::Config { grace: None, ..config() };
    let arbiter = arbiter(&config).await;
    let mut a = Provider::join(&arbiter, "game-1", 1).await;
    let held = cache::Held { record: cache::record(b"role/1"), mode: mode::MODIFY, seq: 0 };
    a.link.notice(cache::REASSERT, &[], &held.encode()).unwrap();
    let Word::Held(held) = a.word().await else { panic!("not held") };
    assert!(held.seq > 0);
    a.ask(1, mode::SHARE, 0, b"role/2");
    assert_eq!(a.denied().await, (1, "WARMING"));
}

#[tokio::test]
async fn a_goodbye_frees_and_a_stop_says_goodbye() {
    let arbiter = arbiter(&config()).await;
    let mut a = Provider::join(&arbiter, "game-1", 1).await;
    let mut b = Provider::join(&arbiter, "game-2", 2).await;
    a.modify(1, b"role/1").await;
    a.link.call::<message::Done>(cache::BYE, &message::Done {}, PATIENCE).await.unwrap();
    assert_eq!(b.modify(1, b"role/1").await.mode, mode::MODIFY);
    within(arbiter.stop()).await;
    assert!(within(b.ended).await.unwrap().contains("the arbiter stops"));
}
