//! More than a session may send.

use linkd::router::Rate;
use linkd::worker::{Settings, Transport};
use wire::code;
use wire::handshake::KEEP_ALIVE;
use wire::payload::{self, Head};

use super::{number, still_served};
use crate::world::{SEVEN, World, request, settings};

fn keep_alive() -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    payload::encode_frame(&mut out, KEEP_ALIVE, Head::request(3), |out| out.extend_from_slice(&[0]));
    out.to_vec()
}

fn limited() -> Settings {
    let mut settings = settings();
    settings.rules.frames = Rate::new(200, 400);
    settings.rules.bytes = Rate::new(256 * 1024, 1024 * 1024);
    settings
}

/// Holds: BI-048, Q41.
#[tokio::test]
async fn a_flood_of_keep_alives_is_closed() {
    let world = World::start(limited());
    let _provider = world.provider("game-1", true).await;
    let mut neighbour = world.login("neighbour").await;
    for by in Transport::ALL {
        let mut flooder = world.login_by(by, "flooder").await;
        // It may be closed before all of it has left.
        let _ = flooder.try_send(&keep_alive().repeat(10_000)).await;
        assert_eq!(flooder.closed_with().await, number(&code::FLOOD), "{}", by.as_str());
        let mut stranger = world.connect_by(by).await;
        let _ = stranger.try_send(&keep_alive().repeat(10_000)).await;
        assert_eq!(stranger.closed_with().await, number(&code::FLOOD), "{}", by.as_str());
        still_served(&mut neighbour, 1).await;
    }
}

/// Pings of a WebSocket count as frames do.
///
/// Holds: BI-048, Q42.
#[tokio::test]
async fn a_flood_of_pings_is_closed() {
    use futures_util::SinkExt;
    use tokio_tungstenite::tungstenite::Message;

    let world = World::start(limited());
    let mut flooder = world.login_by(Transport::WebSocket, "flooder").await;
    for _ in 0..5_000 {
        if flooder.ws().feed(Message::Ping(vec![1; 20].into())).await.is_err() {
            break;
        }
    }
    let _ = flooder.ws().flush().await;
    // What it was told may have been lost with what it had not read yet.
    let closed = flooder.closed_with().await;
    assert!(closed.is_none() || closed == number(&code::FLOOD), "{closed:?}");
    let totals = world.stop().await;
    assert_eq!((totals.accepted, totals.closed), (1, 1));
}

/// Requests beyond the burst are answered BUSY as long as there is any sense in it, each exactly once.
///
/// Holds: BI-034.
#[tokio::test]
async fn ten_thousand_requests_in_one_write_are_served_refused_and_then_closed() {
    let world = World::start(limited());
    let _provider = world.provider("game-1", true).await;
    let mut neighbour = world.login("neighbour").await;
    for by in Transport::ALL {
        let mut eager = world.login_by(by, "eager").await;
        let all: Vec<u8> = (1..=10_000).flat_map(|n| request(n, b"x").to_vec()).collect();
        let _ = eager.try_send(&all).await;
        let (mut busy, mut closed) = (0, None);
        while let Some(got) = eager.frame().await {
            match got.head.code {
                0 if got.type_id == SEVEN => {}
                code if code == code::BUSY.result() => busy += 1,
                _ => closed = Some(got.type_id),
            }
        }
        assert!((300..=500).contains(&busy), "{busy} refusals by {}", by.as_str());
        assert_eq!(closed, Some(wire::report::REPORT_ERROR));
        still_served(&mut neighbour, 1).await;
    }
}

#[tokio::test]
async fn bytes_are_counted_as_well_as_frames() {
    let world = World::start(limited());
    let _provider = world.provider("game-1", true).await;
    let mut heavy = world.login("heavy").await;
    for n in 1..=60 {
        if heavy.try_send(&request(n, &[0; 60_000])).await.is_err() {
            break;
        }
    }
    assert_eq!(heavy.closed_with().await, number(&code::FLOOD));
}
