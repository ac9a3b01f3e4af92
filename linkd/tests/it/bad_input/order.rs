//! Frames that are well made and come when they must not.

use linkd::worker::Transport;
use wire::code;
use wire::link::{self, message};
use wire::payload::Head;
use wire::report::{REPORT_ERROR, ReportError};

use super::number;
use crate::world::{World, request, settings, within};

/// Two business frames before login are refused, the third closes.
///
/// Holds: BI-016.
#[tokio::test]
async fn business_before_login_is_refused_twice_and_then_closed() {
    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    for by in Transport::ALL {
        let mut client = world.connect_by(by).await;
        let all: Vec<u8> = (1..=3).flat_map(|n| request(n, b"x").to_vec()).collect();
        client.send(&all).await;
        let (mut refused, mut told) = (Vec::new(), Vec::new());
        while let Some(got) = client.frame().await {
            if got.type_id == REPORT_ERROR {
                told.push(ReportError::decode(&got.body).unwrap().code);
            } else if got.head.session > 0 {
                refused.push((got.head.session, got.head.code));
            }
        }
        let not_authed = code::NOT_AUTHED.result();
        assert_eq!(refused, [(1, not_authed), (2, not_authed)], "{}", by.as_str());
        assert_eq!(told.last().copied(), number(&code::NOT_AUTHED));
    }
    assert_eq!(world.stop().await.dispatched, 0);
}

/// Of a kicked session no frame is dispatched any more, not even one that was sent before the client knew.
///
/// Holds: Q28.
#[tokio::test]
async fn nothing_of_a_kicked_session_is_dispatched() {
    for by in Transport::ALL {
        let world = World::start(settings());
        let mut provider = world.provider("game-1", false).await;
        let mut client = world.login_by(by, "ann").await;
        client.send(&request(1, b"hi")).await;
        let sid = provider.opened().await;
        provider.next(link::DISPATCH).await;
        let kick = message::Kick { link_sid: sid.0, code: 77, text: "bye".into(), report_only: false };
        within(provider.link.call::<()>(link::KICK, &kick, crate::world::PATIENCE)).await.unwrap();
        // The kick is confirmed, so whatever is sent from here on is too late.
        for n in 2..50 {
            if client.try_send(&request(n, b"zombie")).await.is_err() {
                break;
            }
        }
        assert_eq!(client.closed_with().await, Some(77));
        assert_eq!(world.stop().await.dispatched, 1);
    }
}

/// An answer to a request nobody sent goes nowhere and is counted; a frame that names another session in its body names
/// nobody.
///
/// Holds: BI-017, Q74.
#[tokio::test]
async fn a_client_speaks_only_for_itself() {
    let world = World::start(settings());
    let mut provider = world.provider("game-1", true).await;
    let mut ann = world.login("ann").await;
    ann.send(&request(1, b"")).await;
    let first = provider.opened().await;
    let mut eve = world.login("eve").await;
    let mut stray = bytes::BytesMut::new();
    wire::payload::encode_frame(&mut stray, crate::world::SEVEN, Head::response(9, 0), |_| {});
    eve.send(&stray).await;
    eve.send(&request(1, &first.0.to_le_bytes())).await;
    assert_ne!(provider.opened().await, first);
    assert_eq!(eve.frame().await.unwrap().body, first.0.to_le_bytes());
    assert_eq!(world.stop().await.dropped["stray_answer"], 1);
}
