//! The ways in: WebSocket and the balancer's PROXY line, and what becomes of those who fail them.

use std::time::Duration;

use base::Span;
use futures_util::{SinkExt, StreamExt};
use linkd::worker::{Layers, Settings, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;
use wire::code;
use wire::payload::Head;

use crate::client::Client;
use crate::world::{World, request, settings, within};

fn layers(change: impl FnOnce(&mut Layers)) -> Settings {
    let mut settings = settings();
    change(&mut settings.layers);
    settings
}

/// The same session on another transport: login, requests in one message and in many, a kick, and the stop.
///
/// Holds: Q42.
#[tokio::test]
async fn a_websocket_carries_the_same_session() {
    let world = World::start(settings());
    let _provider = world.provider("game-1", true).await;
    let mut client = world.login_by(Transport::WebSocket, "ann").await;
    let all: Vec<u8> = (1..=50).flat_map(|n| request(n, &[n as u8; 100]).to_vec()).collect();
    client.send(&all).await;
    for piece in all.chunks(33) {
        client.send(piece).await;
    }
    for n in (1..=50).chain(1..=50) {
        let got = client.frame().await.unwrap();
        assert_eq!((got.head, got.body), (Head::response(n, 0), vec![n as u8; 100]));
    }
    let stopping = tokio::spawn(world.stop());
    assert_eq!(client.closed_with().await, Some(code::SHUTTING_DOWN.number.into()));
    let totals = stopping.await.unwrap();
    assert_eq!((totals.websocket_accepted, totals.accepted, totals.sessions), (1, 1, 0));
    assert_eq!(totals.frames_out, 100);
}

/// Pings are answered and keep a silent session alive; a silent one without them is closed, on either transport.
///
/// Holds: Q42.
#[tokio::test]
async fn a_ping_is_a_sign_of_life() {
    let mut settings = settings();
    settings.rules.idle_timeout = Span::millis(900);
    let world = World::start(settings);
    let mut silent = world.login("silent").await;
    let mut deaf = world.login_by(Transport::WebSocket, "deaf").await;
    let mut alive = world.login_by(Transport::WebSocket, "alive").await;
    for n in 0..10u8 {
        // Sleep: it is the time between signs of life that is tested.
        tokio::time::sleep(Duration::from_millis(250)).await;
        alive.ws().send(Message::Ping(vec![n].into())).await.unwrap();
        assert_eq!(within(alive.ws().next()).await.unwrap().unwrap(), Message::Pong(vec![n].into()));
    }
    assert_eq!(silent.closed_with().await, Some(code::IDLE_TIMEOUT.number.into()));
    assert_eq!(deaf.closed_with().await, Some(code::IDLE_TIMEOUT.number.into()));
    alive.ws().close(None).await.unwrap();
    assert!(matches!(within(alive.ws().next()).await, Some(Ok(Message::Close(_)))));
    assert_eq!(world.stop().await.sessions, 0);
}

#[tokio::test]
async fn what_breaks_the_websocket_closes_with_its_code() {
    let world = World::start(settings());
    let mut text = world.login_by(Transport::WebSocket, "text").await;
    text.ws().send(Message::Text("hello".into())).await.unwrap();
    assert_eq!(text.closed_with().await, Some(code::BAD_WEBSOCKET.number.into()));
    let mut large = world.login_by(Transport::WebSocket, "large").await;
    // Refused on the announced size, so the rest may not even leave.
    let _ = large.try_send(&vec![0; 300_000]).await;
    let closed = large.closed_with().await;
    assert!(closed.is_none_or(|code| code == i64::from(code::FRAME_TOO_LARGE.number)), "{closed:?}");
    let mut shaking = world.connect_by(Transport::WebSocket).await;
    let mut done = bytes::BytesMut::new();
    wire::handshake::client_done(&mut done);
    shaking.send(&done).await;
    assert_eq!(shaking.closed_with().await, Some(code::HANDSHAKE_VIOLATION.number.into()));
}

/// What is said to a WebSocket port that is no request for one, and to one that says nothing.
///
/// Holds: Q41, BI-009.
#[tokio::test]
async fn who_asks_for_no_websocket_is_turned_away_in_time() {
    let world = World::start(layers(|layers| {
        layers.handshake_timeout = Duration::from_millis(400);
        layers.origins = net::ws::Origins::Only(["https://game.example".to_string()].into());
    }));
    let ask = async |text: &str| {
        let mut stream = world.knock(Transport::WebSocket).await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        within(stream.read_to_string(&mut answer)).await.unwrap();
        answer
    };
    assert!(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.starts_with("HTTP/1.1 426 "));
    let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    assert!(
        ask(&format!("{request}Origin: https://evil.example\r\n\r\n")).await.starts_with("HTTP/1.1 403 ")
    );
    assert!(ask("").await.is_empty());
    assert!(ask("GET / HT").await.is_empty());
    let door = world.door.clone();
    assert_eq!(world.stop().await.accepted, 0);
    let turned = door.turned();
    assert_eq!((turned["upgrade"], turned["handshake_timeout"]), (2, 2));
    assert_eq!(door.connections(), 0);
}

/// The balancer's line says whose the connection is: that address is capped, hashed and told to providers.
///
/// Holds: Q12.
#[tokio::test]
async fn behind_a_balancer_the_real_address_counts() {
    let world = World::start(layers(|layers| layers.proxy = true));
    let mut provider = world.provider("game-1", true).await;
    for (transport, port) in [(Transport::Tcp, 50_001), (Transport::WebSocket, 65_535)] {
        let mut stream = world.knock(transport).await;
        let line = format!("PROXY TCP4 203.0.113.7 10.0.0.1 {port} 443\r\n");
        stream.write_all(line.as_bytes()).await.unwrap();
        let mut client = match transport {
            Transport::Tcp => Client::plain(stream),
            Transport::WebSocket => Client::upgrade(stream).await,
        };
        client.login("ann").await;
        client.send(&request(1, b"hi")).await;
        assert_eq!(client.frame().await.unwrap().head.session, 1);
        let opened = provider.introduced().await;
        assert_eq!(opened.client_addr, format!("203.0.113.7:{port}"));
    }
}

/// Without a balancer a PROXY line is an invalid frame; with one, its absence closes. Neither lets anybody choose an
/// address.
///
/// Holds: Q12.
#[tokio::test]
async fn nobody_chooses_an_address() {
    let world = World::start(settings());
    let mut client = world.connect().await;
    client.send(b"PROXY TCP4 203.0.113.7 10.0.0.1 5 443\r\n").await;
    assert_eq!(client.closed_with().await, Some(code::FRAME_TOO_LARGE.number.into()));
    let world = World::start(layers(|layers| layers.proxy = true));
    let mut client = Client::plain(world.knock(Transport::Tcp).await);
    client.send(&crate::world::auth("ann")).await;
    assert_eq!(client.closed_with().await, None);
    let mut client = Client::plain(world.knock(Transport::Tcp).await);
    client.send(b"PROXY TCP4 nonsense\r\n").await;
    assert_eq!(client.closed_with().await, None);
    let door = world.door.clone();
    world.stop().await;
    let turned = door.turned();
    assert_eq!((turned["proxy_missing"], turned["proxy_unreadable"]), (1, 1));
}
