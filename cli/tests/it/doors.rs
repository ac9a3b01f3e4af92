//! The gateway's ports as players meet them: WebSocket inside TLS, the balancer's door, and the caps.

use std::sync::Arc;

use cli::cert::Authority;
use futures_util::{SinkExt, StreamExt};
use linkd::config::{Listen, ProxyProtocol};
use net::hello::Role;
use net::tls::{ClientTls, Material, NODE_NAME, ServerTls};
use prost::Message as _;
use tavern::Tavern;
use tavern::messages::Login;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use wire::auth::{AUTH, Auth};
use wire::frame::{self, Decoded};
use wire::payload::{self, Head};

use crate::bad_input::client::{Client, auth, frame as framed};
use crate::cluster::{ANY, Directory, join, provider, within};
use crate::identity::world::{SOON, authority, id};

/// A gateway with these settings, and its players' certificate if there is one.
async fn linkd(
    directory: &Directory,
    tls: Option<&Authority>,
    change: impl FnOnce(&mut linkd::Config),
) -> Arc<linkd::Linkd> {
    let (node, joined, _) = join(directory.addr, "linkd-1", "linkd");
    let mut config = linkd::Config {
        listen: ANY,
        ws_listen: Listen::At(ANY),
        provider_listen: ANY,
        workers: 1,
        ..Default::default()
    };
    change(&mut config);
    let tls = tls.map(|authority| {
        let issued = authority.issue(Role::Linkd, &id("linkd-1"), &[], 1).unwrap();
        ServerTls::players(&Material::players(issued.cert.as_bytes(), issued.key.as_bytes()).unwrap())
            .unwrap()
    });
    let env = linkd::Env { tls, ..linkd::Env::insecure("test", node, joined) };
    Arc::new(within(linkd::start(&config, env)).await.unwrap())
}

/// The answer of this type among what comes.
async fn answer<S>(ws: &mut WebSocketStream<S>, type_id: base::TypeId) -> (Head, Vec<u8>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let Some(Ok(Message::Binary(bytes))) = within(ws.next()).await else { panic!("no more answers") };
        let Decoded::Frame(frame) = frame::decode(&bytes, 1 << 20).unwrap() else { panic!("half a frame") };
        let (head, body) = payload::decode(frame.payload).unwrap();
        if frame.type_id == type_id {
            return (head, body.to_vec());
        }
    }
}

/// TLS around the WebSocket around the session: login, and a request that a provider answers. In clear nothing answers.
///
/// Holds: Q42, Q57.
#[tokio::test(flavor = "multi_thread")]
async fn a_player_comes_by_websocket_inside_tls() {
    let (directory, authority) = (Directory::start(ANY), authority());
    let linkd = linkd(&directory, Some(&authority), |_| {}).await;
    let (_game, _membership) = provider(directory.addr, "game-1", 1).await;
    let addr = linkd.ws_addr.unwrap().to_string();
    let player = ClientTls::player(authority.pem.as_bytes(), NODE_NAME).unwrap();
    let stream = net::Tcp::dial(&addr).await.unwrap();
    let stream = player.connect(stream, SOON).await.unwrap();
    let (mut ws, _) = within(tokio_tungstenite::client_async("ws://linkd/", stream)).await.unwrap();
    let login = auth(Auth { account: b"ann", ..Auth::default() });
    ws.send(Message::Binary(login.into())).await.unwrap();
    assert_eq!(answer(&mut ws, AUTH).await.0, Head::response(1, 0));
    let login = Tavern::LOGIN.type_id;
    let ask = framed(login, Head::request(2), &Login::default().encode_to_vec());
    ws.send(Message::Binary(ask.into())).await.unwrap();
    assert_eq!(answer(&mut ws, login).await.0, Head::response(2, 0));
    let clear = net::Tcp::dial(&addr).await.unwrap();
    assert!(within(tokio_tungstenite::client_async("ws://linkd/", clear)).await.is_err());
}

/// Who comes around the balancer is closed without a word, whatever it says, and counted.
///
/// Holds: Q12.
#[tokio::test(flavor = "multi_thread")]
async fn who_comes_around_the_balancer_is_closed_and_counted() {
    let directory = Directory::start(ANY);
    let behind = |config: &mut linkd::Config| {
        config.proxy_protocol = ProxyProtocol::Required;
        config.proxy_from = vec!["10.0.0.0/8".to_owned().try_into().unwrap()];
    };
    let linkd = linkd(&directory, None, behind).await;
    let line = b"PROXY TCP4 203.0.113.7 10.0.0.1 5 443\r\n";
    for addr in [linkd.client_addr, linkd.ws_addr.unwrap()] {
        let mut stranger = Client::connect(&addr.to_string()).await;
        let got = stranger.begin(line).await;
        assert_eq!(got.code, "nothing");
    }
    let turned = linkd.status()["turned_away"].clone();
    assert_eq!((&turned["proxy_untrusted"], &turned["proxy_missing"]), (&2.into(), &0.into()), "{turned}");
}

/// Holds: Q12.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_too_many_is_told_so() {
    let directory = Directory::start(ANY);
    let caps = |config: &mut linkd::Config| (config.connections_max, config.unauthed_max) = (3, 2);
    let linkd = linkd(&directory, None, caps).await;
    let addr = linkd.client_addr.to_string();
    let login = |name: &'static str| auth(Auth { account: name.as_bytes(), ..Auth::default() });
    let mut one = Client::connect(&addr).await;
    let mut two = Client::connect(&addr).await;
    // Answered, so they are inside.
    assert_eq!((one.say(&[]).await.code, two.say(&[]).await.code), ("nothing".into(), "nothing".into()));
    assert_eq!(Client::connect(&addr).await.begin(&[]).await.code, "TOO_MANY_UNAUTHED");
    assert_eq!(one.say(&login("ann")).await.code, "answered");
    assert_eq!(two.say(&login("bob")).await.code, "answered");
    let mut three = Client::connect(&addr).await;
    assert_eq!(three.say(&login("carl")).await.code, "answered");
    assert_eq!(Client::connect(&addr).await.begin(&[]).await.code, "TOO_MANY_CONNECTIONS");
    assert_eq!(linkd.status()["turned_away"]["too_many_connections"], 1);
}
