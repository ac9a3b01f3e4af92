//! Requests: answers, refusals, deadlines, bounds.

use std::time::Duration;

use base::ModuleId;
use client::{Cause, Error, Options};
use tokio::time::{Instant, timeout};
use wire::code;
use wire::payload::Family;

use crate::double::{SAY, WAVE, alice, connected, text};

#[tokio::test]
async fn answers_find_their_requests_in_any_order() {
    let (client, mut server) = connected(alice()).await;
    let serve = async {
        let (first, second) = (server.said().await, server.said().await);
        server.answer(second.0, &second.1.text).await;
        server.answer(first.0, &first.1.text).await;
    };
    let asks = async { tokio::join!(client.request(SAY, text("a")), client.request(SAY, text("b"))) };
    let ((a, b), ()) = tokio::join!(asks, serve);
    assert_eq!((a.unwrap().text.as_str(), b.unwrap().text.as_str()), ("a", "b"));
}

#[tokio::test]
async fn refusals_keep_their_codes() {
    let (client, mut server) = connected(alice()).await;
    let serve = async {
        for result in [code::BUSY.result(), code::NO_PROVIDER.result(), (2 << 32) | 7] {
            let (session, _) = server.said().await;
            server.refuse(session, result).await;
        }
    };
    let ask = async || client.request(SAY, text("x")).await.unwrap_err();
    let asks = async { (ask().await, ask().await, ask().await) };
    let ((busy, nobody, game), ()) = tokio::join!(asks, serve);
    assert_eq!((busy.code(), nobody.code()), (Some(&code::BUSY), Some(&code::NO_PROVIDER)));
    assert_eq!(game.game_code(), Some((ModuleId(2), 7)));
}

#[tokio::test]
async fn a_notice_is_a_protocol_without_session() {
    let (client, mut server) = connected(alice()).await;
    client.notify(WAVE, text("hello")).unwrap();
    let wave = server.next().await.unwrap();
    assert_eq!((wave.type_id, wave.head.family, wave.head.session), (WAVE.type_id, Family::Protocol, 0));
}

/// Holds: BI-064.
#[tokio::test(start_paused = true)]
async fn a_late_answer_is_counted_and_disturbs_nobody() {
    let (client, mut server) = connected(alice()).await;
    let started = Instant::now();
    let late = client.request_within(SAY, text("slow"), Duration::from_millis(50)).await;
    assert_eq!(late.unwrap_err(), Error::Timeout(Duration::from_millis(50)));
    assert_eq!((started.elapsed(), client.in_flight()), (Duration::from_millis(50), 0));
    let serve = async {
        let (first, _) = server.said().await;
        let (second, _) = server.said().await;
        server.answer(first, "late").await;
        server.answer(777, "never asked").await;
        server.answer(second, "in time").await;
    };
    let (reply, ()) = tokio::join!(client.request(SAY, text("quick")), serve);
    assert_eq!((reply.unwrap().text.as_str(), client.stats().late_replies), ("in time", 2));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_is_forgotten() {
    let (client, _server) = connected(alice()).await;
    let dropped = timeout(Duration::from_millis(1), client.request(SAY, text("x"))).await;
    assert!(dropped.is_err());
    assert_eq!(client.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_bounded() {
    let (client, _server) = connected(Options { in_flight_max: 2, ..alice() }).await;
    let ask = || client.request_within(SAY, text("x"), Duration::from_secs(1));
    let (a, b, c) = tokio::join!(ask(), ask(), ask());
    assert_eq!(c.unwrap_err(), Error::Busy { waiting: 2 });
    assert!([a, b].into_iter().all(|waited| matches!(waited, Err(Error::Timeout(_)))));
    assert!(matches!(ask().await, Err(Error::Timeout(_))), "room again");
}

#[tokio::test(start_paused = true)]
async fn bytes_waiting_to_leave_are_bounded() {
    let (client, _server) = connected(Options { outbox_bytes_max: 100_000, ..alice() }).await;
    let large = text(&"x".repeat(60_000));
    let mut sent = 0;
    let full = loop {
        match client.notify(WAVE, large.clone()) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::Busy { waiting } if waiting <= 100_000), "{full}");
    assert!((1..=3).contains(&sent), "{sent}");
}

#[tokio::test]
async fn a_message_too_large_is_not_sent() {
    let (client, mut server) = connected(alice()).await;
    let error = client.request(SAY, text(&"x".repeat(65_536))).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { bytes_max: 65_536, .. }), "{error}");
    client.notify(WAVE, text("next")).unwrap();
    assert_eq!(server.next().await.unwrap().type_id, WAVE.type_id);
}

#[tokio::test]
async fn an_unreadable_answer_names_its_protocol() {
    let (client, mut server) = connected(alice()).await;
    let serve = async {
        let (session, _) = server.said().await;
        let head = wire::payload::Head::response(session, 0);
        server
            .send(|out| {
                wire::payload::encode_frame(out, SAY.type_id, head, |out| out.extend_from_slice(&[0xff]))
            })
            .await;
    };
    let (error, ()) = tokio::join!(client.request(SAY, text("x")), serve);
    assert!(matches!(error, Err(Error::BadReply { name: "Rooms.say", .. })), "{error:?}");
}

#[tokio::test]
async fn the_end_of_the_connection_ends_its_requests() {
    let (client, mut server) = connected(alice()).await;
    let serve = async {
        server.said().await;
        server.report(&code::SHUTTING_DOWN).await;
        drop(server);
    };
    let (error, ()) = tokio::join!(client.request(SAY, text("x")), serve);
    let error = error.unwrap_err();
    assert!(matches!(&error, Error::Lost(Cause::Reported(_))), "{error}");
    assert_eq!((error.code(), error.retry()), (Some(&code::SHUTTING_DOWN), base::Retry::Unknown));
    assert!(matches!(client.request(SAY, text("x")).await, Err(Error::Closed(_))));
}
