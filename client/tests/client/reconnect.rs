//! A lost connection is taken up again, and nobody is left guessing what became of requests.

use std::time::Duration;

use client::{Cause, Client, Error, Event, Options, Reconnect};
use tokio::time::Instant;
use wire::code;

use crate::double::{Dials, SAY, Server, WAVE, alice, network, text};

async fn admitted(dials: &mut Dials) -> Server {
    let mut server = dials.recv().await.unwrap();
    server.admit().await;
    server
}

async fn connected(options: Options) -> (Client, Server, Dials) {
    let (net, mut dials) = network(4096);
    let (client, server) = tokio::join!(Client::connect_over(net, options), admitted(&mut dials));
    (client.unwrap(), server, dials)
}

fn steady() -> Options {
    Options { reconnect: Some(Reconnect::default()), ..alice() }
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_comes_back_and_requests_in_flight_say_unknown() {
    let (client, mut server, mut dials) = connected(steady()).await;
    let lose = async {
        server.said().await;
        drop(server);
    };
    let (lost, ()) = tokio::join!(client.request(SAY, text("x")), lose);
    let error = lost.unwrap_err();
    assert_eq!((error.clone(), error.retry()), (Error::Lost(Cause::ByServer), base::Retry::Unknown));

    let events = client.events();
    assert_eq!(events.next().await, Some(Event::Lost(Cause::ByServer)));
    let while_down = client.request(SAY, text("y")).await.unwrap_err();
    assert_eq!((while_down, client.addr()), (Error::Reconnecting, None));
    let (server, event) = tokio::join!(admitted(&mut dials), events.next());
    assert_eq!(event, Some(Event::Reconnected { addr: "linkd-1:7710".into(), tries: 1 }));

    let mut server = server;
    let serve = async {
        let (session, said) = server.said().await;
        server.answer(session, &said.text).await;
    };
    let (reply, ()) = tokio::join!(client.request(SAY, text("again")), serve);
    assert_eq!((reply.unwrap().text.as_str(), client.stats().reconnects), ("again", 1));
}

#[tokio::test(start_paused = true)]
async fn the_next_address_is_dialled_first() {
    let (client, server, mut dials) =
        connected(Options { reconnect: Some(Reconnect::default()), ..Options::new("a:1,b:2", "alice") })
            .await;
    let first = server.addr.clone();
    drop(server);
    let other = admitted(&mut dials).await;
    assert_ne!(first, other.addr);
    let events = client.events();
    assert_eq!(events.next().await, Some(Event::Lost(Cause::ByServer)));
    assert_eq!(events.next().await, Some(Event::Reconnected { addr: other.addr, tries: 1 }));
}

#[tokio::test(start_paused = true)]
async fn failed_dials_wait_longer_each_time_and_are_bounded_if_asked() {
    let reconnect = Reconnect { tries_max: 6, ..Reconnect::default() };
    let (client, server, dials) = connected(Options { reconnect: Some(reconnect), ..alice() }).await;
    drop((server, dials));
    let started = Instant::now();
    let events = client.events();
    assert_eq!(events.next().await, Some(Event::Lost(Cause::ByServer)));
    assert_eq!(events.next().await, Some(Event::Closed(Cause::ByServer)));
    // Five waits of 200, 400, 800, 1600 and 3200 ms, each between half and whole.
    let (half, whole) = (Duration::from_millis(3100), Duration::from_millis(6200));
    assert!(
        (half..=whole + Duration::from_millis(10)).contains(&started.elapsed()),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(client.request(SAY, text("x")).await.unwrap_err(), Error::Closed(Cause::ByServer));
}

#[tokio::test]
async fn a_kicked_client_does_not_come_back() {
    let (client, mut server, _dials) = connected(steady()).await;
    server.report(&code::KICKED).await;
    drop(server);
    let events = client.events();
    assert!(matches!(events.next().await, Some(Event::Report(_))));
    let Some(Event::Closed(cause)) = events.next().await else { panic!("not closed") };
    assert_eq!(cause.code(), Some(&code::KICKED));
}

#[tokio::test]
async fn a_login_refused_for_good_ends_the_redialling() {
    let (client, server, mut dials) = connected(steady()).await;
    drop(server);
    let mut server = dials.recv().await.unwrap();
    let (session, _) = server.auth().await;
    let result = code::AUTH_REFUSED.result();
    server.send(|out| wire::payload::encode_refusal(out, wire::auth::AUTH, session, result)).await;
    let events = client.events();
    assert!(matches!(events.next().await, Some(Event::Lost(_))));
    let Some(Event::Closed(cause)) = events.next().await else { panic!("not closed") };
    assert!(cause.to_string().contains("AUTH_REFUSED"), "{cause}");
}

#[tokio::test]
async fn closing_while_redialling_ends_at_once() {
    let (client, server, mut dials) = connected(steady()).await;
    drop(server);
    let _never_greets = dials.recv().await.unwrap();
    client.close().await;
    assert_eq!(client.closed(), Some(Cause::ByUs));
    assert_eq!(client.notify(WAVE, text("x")).unwrap_err(), Error::Closed(Cause::ByUs));
}
