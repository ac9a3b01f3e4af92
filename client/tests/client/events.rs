//! What comes unasked: pushes in order, a bounded queue that stops the reading, reports, keep-alives.

use std::time::Duration;

use client::{Cause, Event, Options};
use tokio::time::{Instant, timeout};
use wire::handshake::{KEEP_ALIVE, keep_alive, keep_alive_answer};
use wire::payload::Family;
use wire::{code, report};

use crate::double::{SAY, Text, alice, connected, push, text};

async fn pushed(client: &client::Client) -> String {
    client.pushes().next().await.unwrap().decode::<Text>().unwrap().unwrap().text
}

/// Holds: BI-047.
#[tokio::test]
async fn a_thousand_pushes_in_one_write_come_in_order() {
    let (client, mut server) = connected(alice()).await;
    server.send(|out| (0..1000).for_each(|i| push(out, &i.to_string()))).await;
    for i in 0..1000 {
        assert_eq!(pushed(&client).await, i.to_string());
    }
    assert_eq!(client.stats().pushes, 1000);
}

#[tokio::test]
async fn pushes_right_behind_the_login_are_not_lost() {
    let (net, mut dials) = crate::double::network(4096);
    let serve = async {
        let mut server = dials.recv().await.unwrap();
        let (session, _) = server.auth().await;
        server
            .send(|out| {
                wire::payload::encode_refusal(out, wire::auth::AUTH, session, 0);
                push(out, "welcome");
            })
            .await;
        server
    };
    let (client, _server) = tokio::join!(client::Client::connect_over(net, alice()), serve);
    assert_eq!(pushed(&client.unwrap()).await, "welcome");
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_stops_the_reading_and_loses_nothing() {
    let (client, mut server) = connected(Options { events_max: 4, ..alice() }).await;
    // More than one read brings.
    let said = |i: usize| format!("{i} {}", "x".repeat(1000));
    let serve = async {
        let (session, _) = server.said().await;
        for i in 0..20 {
            server.push(&said(i)).await;
        }
        server.answer(session, "behind the pushes").await;
        server
    };
    let ask = async {
        let answer = client.request_within(SAY, text("x"), Duration::from_secs(1)).await;
        assert!(answer.is_err(), "the answer waits behind pushes nobody takes");
    };
    let (_server, ()) = tokio::join!(serve, ask);
    for i in 0..20 {
        assert_eq!(pushed(&client).await, said(i));
    }
    assert!(client.stats().stalls > 0);
}

/// While it does not read, a client still shows that it lives, and does not take its own deafness for silence.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_stays_alive_for_the_server() {
    let (client, mut server) = connected(Options { events_max: 1, ..alice() }).await;
    for i in 0..5 {
        server.push(&i.to_string()).await;
    }
    let started = Instant::now();
    for _ in 0..4 {
        assert_eq!(server.next().await.unwrap().type_id, KEEP_ALIVE);
    }
    assert_eq!(started.elapsed(), Duration::from_secs(100));
    assert_eq!(client.closed(), None);
    assert_eq!(pushed(&client).await, "0");
}

#[tokio::test]
async fn a_client_without_events_counts_them_and_reads_on() {
    let (client, mut server) = connected(Options { events_max: 0, ..alice() }).await;
    let serve = async {
        let (session, _) = server.said().await;
        server.send(|out| (0..5000).for_each(|_| push(out, ""))).await;
        server.answer(session, "read on").await;
        server
    };
    let (reply, _server) = tokio::join!(client.request(SAY, text("x")), serve);
    assert_eq!((reply.unwrap().text.as_str(), client.stats().ignored), ("read on", 5000));
    assert_eq!(client.events().next().await, None);
}

#[tokio::test]
async fn reports_come_as_events_and_the_last_one_is_the_cause() {
    let (client, mut server) = connected(alice()).await;
    server.report(&code::NO_PROVIDER).await;
    server.send(|out| report::encode(out, report::From::DynamicModule, 2, "rooms")).await;
    server.report(&code::KICKED).await;
    drop(server);
    let events = client.events();
    let mut numbers = Vec::new();
    let cause = loop {
        match events.next().await.unwrap() {
            Event::Report(report) => numbers.push((report.from, report.number)),
            Event::Closed(cause) => break cause,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(numbers, [(0, 2), (2, 2), (0, 118)]);
    assert_eq!((cause.code(), cause.retry()), (Some(&code::KICKED), base::Retry::Never));
    assert_eq!(events.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_old_report_is_not_the_cause() {
    let (client, mut server) = connected(alice()).await;
    server.report(&code::PROVIDER_BUSY).await;
    assert!(matches!(client.events().next().await, Some(Event::Report(_))));
    tokio::time::sleep(Duration::from_secs(6)).await;
    drop(server);
    assert_eq!(client.events().next().await, Some(Event::Closed(Cause::ByServer)));
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_sends_keep_alives_and_a_silent_server_is_noticed() {
    let (client, mut server) = connected(alice()).await;
    let started = Instant::now();
    let asked = server.next().await.unwrap();
    assert_eq!((asked.type_id, asked.head.family), (KEEP_ALIVE, Family::Request));
    assert_eq!(started.elapsed(), Duration::from_secs(25));
    server.send(|out| keep_alive_answer(out, asked.head.session)).await;
    assert_eq!(server.next().await.unwrap().type_id, KEEP_ALIVE);
    assert_eq!(started.elapsed(), Duration::from_secs(50));
    let silent = Event::Closed(Cause::Silent(Duration::from_secs(60)));
    assert_eq!(client.events().next().await, Some(silent));
    assert_eq!((started.elapsed(), client.stats().late_replies), (Duration::from_secs(85), 0));
}

#[tokio::test(start_paused = true)]
async fn a_busy_client_needs_no_keep_alives() {
    let (client, mut server) = connected(alice()).await;
    let serve = async {
        for _ in 0..10 {
            let (session, _) = server.said().await;
            server.answer(session, "yes").await;
        }
        timeout(Duration::from_secs(24), server.next()).await
    };
    let ask = async {
        for _ in 0..10 {
            client.request(SAY, text("x")).await.unwrap();
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
    };
    let (next, ()) = tokio::join!(serve, ask);
    assert!(next.is_err(), "{next:?}");
}

#[tokio::test]
async fn the_servers_keep_alive_is_answered_and_its_requests_are_refused() {
    let (client, mut server) = connected(alice()).await;
    server.send(|out| keep_alive(out, 42)).await;
    let answer = server.next().await.unwrap();
    assert_eq!((answer.type_id, answer.head.family, answer.head.session), (KEEP_ALIVE, Family::Response, 42));
    let head = wire::payload::Head::request(43);
    server.send(|out| wire::payload::encode_frame(out, SAY.type_id, head, |_| {})).await;
    let refused = server.next().await.unwrap();
    assert_eq!((refused.head.code, refused.head.session), (code::UNKNOWN_PROTOCOL.result(), 43));
    assert_eq!(client.stats().unexpected, 1);
}

#[tokio::test]
async fn bytes_of_no_frame_end_the_connection() {
    let (client, mut server) = connected(alice()).await;
    server.send(|out| out.extend_from_slice(&[0xff; 12])).await;
    assert!(matches!(client.events().next().await, Some(Event::Closed(Cause::BadFrame(_)))));
}
