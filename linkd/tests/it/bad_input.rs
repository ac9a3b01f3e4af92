//! What strangers send: each gets a code or a close with a code, and others are untouched.

use std::time::Duration;

use bytes::BytesMut;
use wire::code;
use wire::payload::{self, Head};

use crate::world::{Client, World, request, settings};

async fn closed(world: &World, bytes: &[u8]) -> Option<i64> {
    let mut client = world.connect().await;
    client.send(bytes).await;
    client.closed_with().await
}

fn number(code: &code::Code) -> Option<i64> {
    Some(code.number.into())
}

/// A neighbour that works before, during and after.
async fn still_served(neighbour: &mut Client, session: i64) {
    neighbour.send(&request(session, b"still here")).await;
    let got = neighbour.frame().await.unwrap();
    assert_eq!((got.head.session, got.head.code, &got.body[..]), (session, 0, &b"still here"[..]));
}

/// Holds: BI-001, BI-002, BI-003, BI-004, BI-005, BI-018, G-13.
#[tokio::test]
async fn frames_that_break_the_wire_close_with_their_code() {
    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    let mut neighbour = world.login("neighbour").await;
    let header = |module: i32, size: u32| {
        let mut header = module.to_le_bytes().to_vec();
        header.extend_from_slice(&[0; 4]);
        header.extend_from_slice(&size.to_le_bytes());
        header
    };
    assert_eq!(closed(&world, &header(7, u32::MAX)).await, number(&code::FRAME_TOO_LARGE));
    assert_eq!(closed(&world, &header(7, 65_537)).await, number(&code::FRAME_TOO_LARGE));
    assert_eq!(closed(&world, &header(7, 0)).await, number(&code::EMPTY_FRAME));
    still_served(&mut neighbour, 1).await;
    // "GET / HTTP/1.1": the third word of the header is far beyond any limit.
    assert_eq!(closed(&world, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await, number(&code::FRAME_TOO_LARGE));
    let tls_hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0xaa, 0xbb];
    assert_eq!(closed(&world, &tls_hello).await, number(&code::FRAME_TOO_LARGE));
    let mut no_family = header(7, 1);
    no_family.push(0x7f);
    assert_eq!(closed(&world, &no_family).await, number(&code::BAD_FRAME));
    let mut provider_only = header(11_008, 2);
    provider_only.extend_from_slice(&[2, 0]);
    assert_eq!(closed(&world, &provider_only).await, number(&code::ROLE_VIOLATION));
    still_served(&mut neighbour, 2).await;
}

/// Half a header and then nothing, or one byte now and then: the whole frame has one deadline.
///
/// Holds: BI-006, BI-007, BI-008.
#[tokio::test]
async fn a_frame_that_trickles_is_cut_at_its_deadline() {
    let world =
        World::start(linkd::worker::Settings { frame_timeout: Duration::from_millis(300), ..settings() });
    let _provider = world.provider("game-1", true).await;
    let mut neighbour = world.login("neighbour").await;
    let mut half = world.login("half").await;
    half.send(&request(1, &[0; 100])[..50]).await;
    let mut slow = world.login("slow").await;
    let bytes = request(1, &[0; 4_000]);
    for byte in bytes.chunks(1).take(3_000) {
        // Sleep: the trickle is what is tested; the deadline ends it long before the frame is whole.
        tokio::time::sleep(Duration::from_millis(5)).await;
        if slow.try_send(byte).await.is_err() {
            break;
        }
    }
    assert_eq!(half.closed_with().await, number(&code::FRAME_TIMEOUT));
    assert_eq!(slow.closed_with().await, number(&code::FRAME_TIMEOUT));
    drop(world.connect().await);
    still_served(&mut neighbour, 1).await;
}

/// A client that never reads while answers pile up loses its connection, not single frames, and nobody else notices.
///
/// Holds: BI-035, Z-32.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_and_its_neighbour_is_not() {
    let world = World::start(linkd::worker::Settings { out_bytes_max: 32 * 1024, ..settings() });
    let _provider = world.provider("game-1", true).await;
    let mut neighbour = world.login("neighbour").await;
    let mut deaf = world.login("deaf").await;
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
}

/// Holds: BI-045.
#[tokio::test]
async fn noise_is_closed_and_leaves_nothing_behind() {
    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    let mut neighbour = world.login("neighbour").await;
    let mut seed = 7u64;
    for _ in 0..200 {
        let noise: Vec<u8> = (0..512)
            .map(|_| {
                seed = base::hash::mix(seed.wrapping_add(1));
                seed as u8
            })
            .collect();
        let mut client = world.connect().await;
        client.send(&noise).await;
        assert!(client.closed_with().await.is_some());
    }
    still_served(&mut neighbour, 1).await;
    drop(neighbour);
    let totals = world.stop().await;
    assert_eq!((totals.accepted, totals.sessions), (201, 0));
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
