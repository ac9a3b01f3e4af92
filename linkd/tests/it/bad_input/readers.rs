//! Clients and providers that don't read.

use std::time::Duration;

use bytes::BytesMut;
use linkd::worker::{Settings, Transport};
use wire::code;
use wire::link;
use wire::payload::{self, Head};

use super::still_served;
use crate::world::{SEVEN, World, request, settings};

/// A client that never reads while answers pile up loses its connection, not single frames, and nobody else notices.
///
/// Holds: BI-035, Z-32, D65.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_and_its_neighbour_is_not() {
    for by in Transport::ALL {
        let world = World::start(Settings { out_bytes_max: 32 * 1024, ..settings() });
        let _provider = world.provider("game-1", true).await;
        let mut neighbour = world.login("neighbour").await;
        let mut deaf = world.login_by(by, "deaf").await;
        let body = vec![1; 60_000];
        // More than the kernel holds for both sides, less than what the test's own provider may queue.
        for session in 1..260 {
            if deaf.try_send(&request(session, &body)).await.is_err() {
                break;
            }
        }
        still_served(&mut neighbour, 1).await;
        let totals = world.stop().await;
        assert_eq!(totals.sessions, 0);
        assert!(totals.frames_out < 260, "{totals:?}");
        // Whatever was answered left or was counted.
        let lost = totals.dropped["slow_reader"] + totals.dropped["session_gone"];
        assert_eq!(totals.frames_out + lost, totals.dispatched, "{totals:?}");
    }
}

/// Little is queued, but it does not move: the client's window is closed. It is cut in time, and whoever knew it hears
/// why.
///
/// Holds: BI-035, D66, Q77.
#[tokio::test]
async fn a_client_whose_window_stays_closed_is_cut_in_time() {
    for by in Transport::ALL {
        let out_bytes_max = 64 << 20;
        let write_timeout = Duration::from_millis(500);
        let world = World::start(Settings { out_bytes_max, write_timeout, ..settings() });
        let mut provider = world.provider("game-1", false).await;
        let mut deaf = world.login_by(by, "deaf").await;
        deaf.send(&request(1, b"")).await;
        let sid = provider.opened().await;
        let mut push = BytesMut::new();
        payload::encode_frame(&mut push, SEVEN, Head::PROTOCOL, |out| out.extend_from_slice(&[1; 60_000]));
        // More than the kernel holds, less than the outbox of either side.
        for _ in 0..200 {
            provider.link.notice(link::SEND, &sid.0.to_le_bytes(), &push).unwrap();
        }
        let broken = provider.next(link::LINK_BROKEN).await;
        let broken = link::LinkBroken::decode(&broken.head).unwrap();
        assert_eq!((broken.link_sid, broken.cause), (sid, code::SLOW_READER.number));
        drop(deaf);
        assert_eq!(world.stop().await.sessions, 0);
    }
}

/// A provider that stops reading fills up: requests to it are refused, who floods it is held back, and players of other
/// providers notice nothing.
///
/// Holds: BI-063.
#[tokio::test]
async fn a_provider_that_does_not_read_holds_up_only_who_floods_it() {
    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    let _mute = world.mute_provider("game-9").await;
    let mut neighbour = world.login("neighbour").await;
    let mut flooder = world.login("flooder").await;
    let nine = base::TypeId::new(base::ModuleId(9), base::ProtocolId(1));
    let frame = |head: Head, body: &[u8]| {
        let mut out = BytesMut::new();
        payload::encode_frame(&mut out, nine, head, |out| out.extend_from_slice(body));
        out
    };
    // One-way messages until the flooder is held back: nothing of it is read any more.
    let body = vec![1; 60_000];
    let flood = async { while flooder.try_send(&frame(Head::PROTOCOL, &body)).await.is_ok() {} };
    // Sleep: that it is held back shows only in time.
    let held_back = tokio::time::timeout(Duration::from_millis(700), flood).await.is_err();
    assert!(held_back);
    let started = std::time::Instant::now();
    neighbour.send(&frame(Head::request(5), b"anybody there?")).await;
    let refused = neighbour.frame().await.unwrap();
    assert_eq!(refused.head, Head::response(5, code::BUSY.result()));
    for session in 6..200 {
        still_served(&mut neighbour, session).await;
    }
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}
