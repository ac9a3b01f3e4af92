//! Bytes that are no frames, and frames that come too slowly.

use std::time::Duration;

use linkd::worker::{Settings, Transport};
use wire::code;

use super::{closed, header, number, still_served};
use crate::world::{World, request, settings};

/// Holds: BI-001, BI-002, BI-003, BI-004, BI-005, BI-018, G-13, Q42.
#[tokio::test]
async fn frames_that_break_the_wire_close_with_their_code() {
    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    let mut neighbour = world.login("neighbour").await;
    let mut no_family = header(7, 1);
    no_family.push(0x7f);
    let mut provider_only = header(11_008, 2);
    provider_only.extend_from_slice(&[2, 0]);
    let cases: [(&str, Vec<u8>, &code::Code); 9] = [
        ("the largest number", header(7, u32::MAX), &code::FRAME_TOO_LARGE),
        ("negative for who reads it signed", header(7, 1 << 31), &code::FRAME_TOO_LARGE),
        ("the largest signed number", header(7, (1 << 31) - 1), &code::FRAME_TOO_LARGE),
        ("one more than the limit", header(7, 65_537), &code::FRAME_TOO_LARGE),
        ("nothing", header(7, 0), &code::EMPTY_FRAME),
        // The third word of the header is far beyond any limit.
        ("an HTTP request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &code::FRAME_TOO_LARGE),
        ("a TLS hello", vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0xaa, 0xbb], &code::FRAME_TOO_LARGE),
        ("no family", no_family, &code::BAD_FRAME),
        ("a provider's message", provider_only, &code::ROLE_VIOLATION),
    ];
    for (n, (name, bytes, code)) in cases.iter().enumerate() {
        for by in Transport::ALL {
            assert_eq!(closed(&world, by, bytes).await, number(code), "{name} by {}", by.as_str());
        }
        still_served(&mut neighbour, n as i64 + 1).await;
    }
}

/// Half a header and then nothing, or one byte now and then: the whole frame has one deadline.
///
/// Holds: BI-006, BI-007, BI-008.
#[tokio::test]
async fn a_frame_that_trickles_is_cut_at_its_deadline() {
    for by in Transport::ALL {
        let world = World::start(Settings { frame_timeout: Duration::from_millis(300), ..settings() });
        let _provider = world.provider("game-1", true).await;
        let mut neighbour = world.login("neighbour").await;
        let mut half = world.login_by(by, "half").await;
        half.send(&request(1, &[0; 100])[..50]).await;
        let mut slow = world.login_by(by, "slow").await;
        let bytes = request(1, &[0; 4_000]);
        for byte in bytes.chunks(1).take(3_000) {
            // Sleep: the trickle is what is tested; the deadline ends it long before the frame is whole.
            tokio::time::sleep(Duration::from_millis(5)).await;
            if slow.try_send(byte).await.is_err() {
                break;
            }
        }
        assert_eq!(half.closed_with().await, number(&code::FRAME_TIMEOUT));
        let slow = slow.closed_with().await;
        assert!(slow.is_none() || slow == number(&code::FRAME_TIMEOUT), "{slow:?}");
        drop(world.connect_by(by).await);
        still_served(&mut neighbour, 1).await;
    }
}

/// Holds: BI-045.
#[tokio::test]
async fn noise_is_closed_and_leaves_nothing_behind() {
    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    let mut neighbour = world.login("neighbour").await;
    let mut seed = 7u64;
    for n in 0..300 {
        let noise: Vec<u8> = (0..512)
            .map(|_| {
                seed = base::hash::mix(seed.wrapping_add(1));
                seed as u8
            })
            .collect();
        assert!(closed(&world, Transport::ALL[n % 2], &noise).await.is_some());
    }
    still_served(&mut neighbour, 1).await;
    drop(neighbour);
    let totals = world.stop().await;
    assert_eq!((totals.accepted, totals.websocket_accepted, totals.sessions), (301, 150, 0));
}

/// After its own goodbye nothing of a client is heard: the end of a stream, or a WebSocket's close.
///
/// Holds: BI-049.
#[tokio::test]
async fn what_comes_after_a_close_is_not_heard() {
    use futures_util::SinkExt;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    let mut client = world.login_by(Transport::WebSocket, "ann").await;
    client.ws().feed(Message::Binary(request(1, b"before").to_vec().into())).await.unwrap();
    let _ = client.ws().feed(Message::Close(None)).await;
    let after = Frame::message(request(2, b"after").to_vec(), OpCode::Data(Data::Binary), true);
    let _ = client.ws().feed(Message::Frame(after)).await;
    let _ = client.ws().flush().await;
    while client.frame().await.is_some() {}
    assert_eq!(world.stop().await.dispatched, 1);
}
