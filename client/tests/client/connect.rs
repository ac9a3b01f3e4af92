//! Getting in: greeting, login, and every way it can fail.

use std::time::Duration;

use client::{Cause, Client, Error, Options};
use wire::auth::AUTH;
use wire::{code, payload};

use crate::double::{alice, connected, network};

/// Connects while `script` plays the server of the first dial.
macro_rules! connect {
    ($options:expr, |$server:ident| $script:block) => {{
        let (net, mut dials) = network(4096);
        let serve = async {
            let mut $server = dials.recv().await.unwrap();
            $script
        };
        tokio::join!(Client::connect_over(net, $options), serve).0
    }};
}

#[tokio::test]
async fn a_client_answers_the_greeting_and_logs_in_behind_it() {
    let options = Options { token: "t".into(), app_version: "1.2.0.0".into(), ..alice() };
    let client = connect!(options, |server| {
        assert_eq!(server.admit().await, "alice");
    });
    assert_eq!(client.unwrap().account(), "alice");
}

/// Whatever the pieces, the same connection comes of them.
/// Holds: BI-046.
#[tokio::test]
async fn bytes_may_come_one_by_one() {
    let (net, mut dials) = network(1);
    let serve = async {
        let mut server = dials.recv().await.unwrap();
        server.admit().await;
        let (session, _) = server.said().await;
        server.push("first").await;
        server.answer(session, "yes").await;
    };
    let play = async {
        let client = Client::connect_over(net, alice()).await.unwrap();
        let reply = client.request(crate::double::SAY, crate::double::text("hello")).await.unwrap();
        (reply.text, client.pushes().next().await.unwrap().decode::<crate::double::Text>())
    };
    let ((reply, push), ()) = tokio::join!(play, serve);
    assert_eq!((reply.as_str(), push.unwrap().unwrap().text.as_str()), ("yes", "first"));
}

#[tokio::test]
async fn without_handshake_the_client_speaks_first() {
    let client = connect!(Options { handshake: false, ..alice() }, |server| {
        let auth = server.next().await.unwrap();
        assert_eq!(auth.type_id, AUTH);
        server.send(|out| payload::encode_refusal(out, AUTH, auth.head.session, 0)).await;
    });
    assert!(client.is_ok());
}

#[tokio::test]
async fn a_refused_login_says_why() {
    let refused = connect!(alice(), |server| {
        let (session, _) = server.auth().await;
        server.send(|out| payload::encode_refusal(out, AUTH, session, code::NAME_INVALID.result())).await;
    });
    let error = refused.unwrap_err();
    assert_eq!((error.code(), error.retry()), (Some(&code::NAME_INVALID), base::Retry::Never));
}

#[tokio::test]
async fn the_report_before_the_close_is_the_cause() {
    let full = connect!(alice(), |server| {
        server.report(&code::TOO_MANY_CONNECTIONS).await;
    });
    let error = full.unwrap_err();
    assert_eq!(error.code(), Some(&code::TOO_MANY_CONNECTIONS));
    assert!(matches!(error, Error::Closed(Cause::Reported(_))), "{error}");
}

#[tokio::test]
async fn an_answer_and_a_close_in_one_read_are_both_seen() {
    let refused = connect!(alice(), |server| {
        let (session, _) = server.auth().await;
        let result = code::VERSION_NOT_SERVED.result();
        server
            .send(|out| {
                payload::encode_refusal(out, AUTH, session, result);
                wire::report::encode(out, wire::report::From::Link, code::VERSION_NOT_SERVED.number, "");
            })
            .await;
    });
    assert_eq!(refused.unwrap_err().code(), Some(&code::VERSION_NOT_SERVED));
}

#[tokio::test]
async fn something_else_at_the_port_is_named_so() {
    let http = connect!(alice(), |server| {
        server.send(|out| out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    });
    assert!(matches!(http.unwrap_err(), Error::NotLinkd { addr, .. } if addr == "linkd-1:7710"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_the_connect_timeout_and_no_more() {
    let started = tokio::time::Instant::now();
    let (net, _dials) = network(4096);
    let error = Client::connect_over(net, alice()).await.unwrap_err();
    assert!(matches!(error, Error::ConnectTimeout { .. }), "{error}");
    assert_eq!(started.elapsed(), Duration::from_secs(5));
    let (net, _dials) = network(4096);
    let error = Client::connect_over(net, Options::new("mute:1", "alice")).await.unwrap_err();
    assert!(matches!(error, Error::ConnectTimeout { .. }), "{error}");
}

#[tokio::test]
async fn every_address_is_tried_once() {
    let (net, mut dials) = network(4096);
    let serve = async {
        let mut server = dials.recv().await.unwrap();
        server.admit().await;
        server
    };
    let addrs = "down-1:1,linkd-2:2,down-3:3";
    let (client, server) =
        tokio::join!(Client::connect_over(net.clone(), Options::new(addrs, "alice")), serve);
    assert_eq!(client.unwrap().addr().as_deref(), Some("linkd-2:2"));
    drop(server);
    let error = Client::connect_over(net, Options::new("down-1:1,down-2:2", "alice")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn what_is_queued_leaves_before_the_close() {
    let (client, mut server) = connected(alice()).await;
    client.notify(crate::double::WAVE, crate::double::text("bye")).unwrap();
    let serve = async {
        let wave = server.next().await.unwrap();
        assert_eq!(wave.type_id, crate::double::WAVE.type_id);
        let end = server.next().await;
        drop(server);
        end
    };
    let ((), end) = tokio::join!(client.close(), serve);
    assert_eq!((end, client.closed()), (None, Some(Cause::ByUs)));
    let after = client.notify(crate::double::WAVE, crate::double::text("late")).unwrap_err();
    assert_eq!(after, Error::Closed(Cause::ByUs));
}

#[tokio::test]
async fn over_a_real_socket_it_is_the_same() {
    let (addr, accept) = crate::double::listening().await;
    let serve = async {
        let mut server = accept.await;
        server.admit().await;
        for _ in 0..100 {
            let (session, said) = server.said().await;
            server.push(&said.text).await;
            server.answer(session, &said.text).await;
        }
        assert!(server.next().await.is_none());
    };
    let play = async {
        let client = Client::connect(Options::new(&addr, "alice")).await.unwrap();
        for i in 0..100 {
            let said = crate::double::text(&i.to_string());
            assert_eq!(client.request(crate::double::SAY, said.clone()).await, Ok(said.clone()));
            let push = client.pushes().next().await.unwrap();
            assert_eq!(push.decode::<crate::double::Text>(), Some(Ok(said)));
        }
        client.close().await;
    };
    tokio::join!(serve, play);
}
