//! What is not granted, and who is not let in.

use net::calls::CallError;
use wire::cache::{self, message, mode};
use wire::code::{self, Code};

use crate::world::{Provider, arbiter, config, within};

fn refused(result: Result<message::Welcome, CallError>) -> &'static Code {
    match result.unwrap_err() {
        CallError::Refused(refusal) => Code::find(refusal.code).unwrap(),
        other => panic!("{other}"),
    }
}

/// Holds: BI-081.
#[tokio::test]
async fn whoever_has_not_logged_in_is_told_so() {
    let arbiter = arbiter(&config()).await;
    for words in [cache::ACQUIRE, cache::RENEW, cache::REDUCED] {
        let provider = Provider::dial(&arbiter, "game-1", 1).await;
        let head = cache::Reduced { record: 1, seq: 1, to: 0, flushed: 0 }.encode();
        let head = if words == cache::REDUCED { &head[..] } else { &[] };
        provider.link.notice(words, head, &[]).unwrap();
        let ended = within(provider.ended).await.unwrap();
        assert!(ended.contains(&code::NOT_LOGGED_IN.number.to_string()), "{ended}");
    }
}

/// Holds: BI-085.
#[tokio::test]
async fn what_can_not_be_read_ends_the_connection_and_not_the_session() {
    let arbiter = arbiter(&config()).await;
    let mut neighbour = Provider::join(&arbiter, "game-2", 2).await;
    let long = [&[0; 17][..], &2_000u16.to_le_bytes(), &[7; 2_000]].concat();
    let bodies = [
        (cache::ACQUIRE, vec![1, 2, 3], &code::BAD_MESSAGE),
        (cache::ACQUIRE, long, &code::KEY_INVALID),
        (cache::ACQUIRE, vec![0; 19], &code::KEY_INVALID),
        (cache::REASSERT, vec![0; 7], &code::BAD_MESSAGE),
        (cache::REDUCED, Vec::new(), &code::BAD_MESSAGE),
        (cache::REFUSED, Vec::new(), &code::BAD_MESSAGE),
        (wire::node::Kind(99), Vec::new(), &code::BAD_MESSAGE),
    ];
    for (kind, body, expected) in bodies {
        let provider = Provider::join(&arbiter, "game-1", 1).await;
        provider.link.notice(kind, &[], &body).unwrap();
        let ended = within(provider.ended).await.unwrap();
        assert!(ended.contains(&format!("code {}", expected.number)), "{kind:?}: {ended}");
    }
    assert_eq!(neighbour.modify(1, b"role/1").await.mode, mode::MODIFY);
    within(arbiter.statuses().wait_for(|status| status.sessions == 2)).await.unwrap();
}

/// Holds: BI-084, BI-086, BI-089.
#[tokio::test]
async fn a_request_beyond_what_may_be_is_denied_by_its_number() {
    let arbiter = arbiter(&global_cache::Config { held_max: 2, ..config() }).await;
    let mut a = Provider::join(&arbiter, "game-1", 1).await;
    let mut b = Provider::join(&arbiter, "game-2", 2).await;
    a.ask(1, 3, 0, b"role/1");
    assert_eq!(a.denied().await, (1, "BAD_STATE"));
    a.modify(2, b"role/1").await;
    a.modify(3, b"role/2").await;
    a.ask(4, mode::SHARE, 0, b"role/3");
    assert_eq!(a.denied().await, (4, "QUOTA"));
    b.ask(5, mode::SHARE, 0, b"role/1");
    b.ask(5, mode::MODIFY, 0, b"role/1");
    assert_eq!(b.denied().await, (5, "ID_CONFLICT"));
}

/// Holds: BI-083.
#[tokio::test]
async fn an_earlier_start_and_another_storage_get_no_session() {
    let arbiter = arbiter(&config()).await;
    let storage = |id: u8| vec![message::Storage { backend: "main".into(), id: vec![id; 16].into() }];
    let first = Provider::dial(&arbiter, "game-1", 5).await;
    first.login(storage(1)).await.unwrap();
    let earlier = Provider::dial(&arbiter, "game-1", 4).await;
    assert_eq!(refused(earlier.login(storage(1)).await), &code::STALE_EPOCH);
    let elsewhere = Provider::dial(&arbiter, "game-2", 6).await;
    assert_eq!(refused(elsewhere.login(storage(2)).await), &code::OTHER_STORAGE);
    let odd = Provider::dial(&arbiter, "game-3", 7).await;
    let id = vec![1; 15].into();
    assert!(odd.login(vec![message::Storage { backend: "main".into(), id }]).await.is_err());
}

/// What a login may leave behind is bounded.
#[tokio::test]
async fn a_login_that_names_too_much_gets_no_session() {
    let arbiter = arbiter(&config()).await;
    let storages = |count: usize, name: usize| {
        let storage = |n: usize| message::Storage { backend: "b".repeat(name), id: vec![n as u8; 16].into() };
        (0..count).map(storage).collect::<Vec<_>>()
    };
    for storages in [storages(65, 1), storages(1, 65)] {
        let provider = Provider::dial(&arbiter, "game-1", 1).await;
        assert!(provider.login(storages).await.is_err());
        let ended = within(provider.ended).await.unwrap();
        assert!(ended.contains(&format!("code {}", code::LIMIT.number)), "{ended}");
    }
    Provider::dial(&arbiter, "game-1", 1).await.login(storages(64, 64)).await.unwrap();
}

/// Holds: Z-57, A15.
#[test]
fn settings_that_break_the_lease_are_refused() {
    let bad = |config: global_cache::Config| {
        config.check().unwrap_err().iter().map(ToString::to_string).collect::<String>()
    };
    let eviction = node::config::Time::secs(9);
    assert!(bad(global_cache::Config { eviction, ..config() }).contains("lease terms"));
    let renew = node::config::Time::secs(2);
    assert!(bad(global_cache::Config { renew, ..config() }).contains("renew"));
    assert!(bad(global_cache::Config { sessions_max: 0, ..config() }).contains("sessions_max"));
    assert!(bad(global_cache::Config { sessions_max: 70_000, ..config() }).contains("65535"));
    assert_eq!(config().check(), Ok(()));
}
