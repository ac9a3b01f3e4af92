//! What works: a frame to a handler and back, pipelined, split, kicked, stopped.

use base::Role;
use wire::link::{self, LinkBroken, UserState, message};
use wire::payload::Head;

use crate::world::{World, auth, request, settings};

/// Holds: Z-11, BI-046, BI-047.
#[tokio::test]
async fn pipelined_and_split_requests_come_back_in_order() {
    let world = World::start(settings());
    let mut provider = world.provider("game-1", true).await;
    let mut client = world.login("ann").await;
    let mut all = Vec::new();
    for session in 1..=1_000 {
        all.extend_from_slice(&request(session, &session.to_le_bytes()));
    }
    let (whole, split) = all.split_at(all.len() / 2);
    client.send(whole).await;
    for chunk in split.chunks(7) {
        client.send(chunk).await;
    }
    for session in 1..=1_000 {
        let got = client.frame().await.unwrap();
        assert_eq!((got.head, got.body), (Head::response(session, 0), session.to_le_bytes().to_vec()));
    }
    provider.opened().await;
    drop(client);
    let broken = provider.next(link::LINK_BROKEN).await;
    assert_eq!(LinkBroken::decode(&broken.head).unwrap().cause, 0);
    let totals = world.stop().await;
    assert_eq!((totals.frames_out, totals.dispatched, totals.sessions), (1_000, 1_000, 0));
}

/// Auth in the same segment as CHandshakeDone, and a request behind both.
#[tokio::test]
async fn a_client_may_pipeline_everything_from_its_first_byte() {
    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    let mut client = world.connect().await;
    let mut all = auth("bot").to_vec();
    all.extend_from_slice(&request(2, b"hi"));
    client.send(&all).await;
    for expected in [wire::handshake::SHANDSHAKE0, wire::auth::AUTH, crate::world::SEVEN] {
        assert_eq!(client.frame().await.unwrap().type_id, expected);
    }
}

#[tokio::test]
async fn a_kick_tells_the_client_then_closes_and_the_provider_hears_once() {
    let world = World::start(settings());
    let mut provider = world.provider("game-1", false).await;
    let mut client = world.login("ann").await;
    client.send(&request(1, b"")).await;
    let sid = provider.opened().await;
    let state = UserState { link_sid: sid, role: Some(Role(5)) };
    provider.link.notice(link::USER_STATE, &state.encode(), &[]).unwrap();
    let kick = message::Kick { link_sid: sid.0, code: 77, text: "bye".into(), report_only: false };
    provider.link.call::<()>(link::KICK, &kick, std::time::Duration::from_secs(5)).await.unwrap();
    assert_eq!(client.closed_with().await, Some(77));
    let broken = provider.next(link::LINK_BROKEN).await;
    assert_eq!(LinkBroken::decode(&broken.head).unwrap().link_sid, sid);
    let again = provider.link.call::<()>(link::KICK, &kick, std::time::Duration::from_secs(5)).await;
    assert_eq!(again.unwrap_err().code(), &wire::code::UNKNOWN_SESSION);
}

/// Holds: Z-08, Z-66.
#[tokio::test]
async fn the_end_of_a_provider_and_of_the_worker_reach_the_client() {
    let world = World::start(settings());
    let provider = world.provider("game-1", true).await;
    let mut client = world.login("ann").await;
    client.send(&request(1, b"x")).await;
    assert_eq!(client.frame().await.unwrap().head.session, 1);
    provider.link.outbox.close();
    let report = client.frame().await.unwrap();
    let report = wire::report::ReportError::decode(&report.body).unwrap();
    assert_eq!(report.code, i64::from(wire::code::PROVIDER_BROKEN.number));
    client.send(&request(2, b"x")).await;
    let refused = client.frame().await.unwrap();
    assert_eq!(refused.head, Head::response(2, wire::code::NO_PROVIDER.result()));
    let stopping = tokio::spawn(world.stop());
    assert_eq!(client.closed_with().await, Some(wire::code::SHUTTING_DOWN.number.into()));
    drop(client);
    let totals = stopping.await.unwrap();
    assert_eq!((totals.accepted, totals.closed), (1, 1));
}

/// Providers bind sessions as fast as they can and vanish in the middle of it, again and again: the worker goes on, and
/// a neighbour is served all the while.
///
/// Holds: Q3.
#[tokio::test]
async fn a_storm_of_binds_while_providers_vanish_stops_nobody() {
    let world = World::start(settings());
    let mut steady = world.provider("steady-1", true).await;
    let mut clients = Vec::new();
    let mut sids = Vec::new();
    for n in 0..20 {
        let mut client = world.login(&format!("player-{n}")).await;
        client.send(&request(1, b"hi")).await;
        client.frame().await.unwrap();
        sids.push(steady.opened().await.0);
        clients.push(client);
    }
    for round in 0..30 {
        let storm = world.provider(&format!("storm-{round}"), false).await;
        let module =
            message::Module { id: 8, name: "Eight".into(), dynamic: true, contract: 8, ..Default::default() };
        let modules = vec![module];
        let patience = std::time::Duration::from_secs(20);
        let subscribe = message::Subscribe { modules: modules.clone() };
        storm.link.call::<()>(link::SUBSCRIBE, &subscribe, patience).await.unwrap();
        let bind = message::Bind { modules, link_sids: sids.clone() };
        for _ in 0..200 {
            let meta = wire::node::Meta::call(link::BIND, 0, 0);
            storm.link.push_message(&meta, &bind).unwrap();
        }
        // Gone with most of it still on its way.
        storm.link.outbox.flush();
        storm.link.outbox.abandon();
        clients[0].send(&request(100 + round, b"still here")).await;
        loop {
            let got = clients[0].frame().await.unwrap();
            if got.head.session == 100 + round && got.type_id == crate::world::SEVEN {
                break;
            }
        }
    }
    assert_eq!(world.stop().await.sessions, 0);
}
