//! What a provider may not send, and what is answered.

use base::LinkSid;
use bytes::BytesMut;
use linkd::worker::Transport;
use net::calls::CallError;
use wire::code;
use wire::frame::PAYLOAD_BYTES_CEILING;
use wire::link::{self, BIND_SIDS_MAX, MODULES_MAX, SEND_SIDS_MAX, message};
use wire::node::{Kind, Meta};
use wire::payload::{self, Head};

use super::still_served;
use crate::world::{PATIENCE, Provider, SEVEN, World, request, settings};

fn push(bytes: usize) -> BytesMut {
    let mut out = BytesMut::new();
    payload::encode_frame(&mut out, SEVEN, Head::PROTOCOL, |out| out.extend_from_slice(&vec![1; bytes]));
    out
}

async fn refused(provider: &Provider, kind: Kind, call: &impl prost::Message) -> &'static code::Code {
    match provider.link.call::<()>(kind, call, PATIENCE).await {
        Err(error @ CallError::Refused(_)) => error.code(),
        other => panic!("{other:?}"),
    }
}

async fn broadcast(
    provider: &Provider,
    version: u64,
    frame: &[u8],
) -> Result<message::BroadcastResult, CallError> {
    provider.link.call_with(Meta::notice(link::BROADCAST), &version.to_le_bytes(), frame, PATIENCE).await
}

/// Too many at once is refused with LIMIT and changes nothing; a sid that is nobody's is named in the answer.
///
/// Holds: BI-055, BI-056, BI-057, BI-058.
#[tokio::test]
async fn binds_beyond_a_limit_change_nothing() {
    let world = World::start(settings());
    let mut provider = world.provider("game-1", true).await;
    let mut ann = world.login("ann").await;
    ann.send(&request(1, b"")).await;
    let sid = provider.opened().await;
    let other = world.provider("game-2", true).await;
    let module =
        |id: i32, dynamic| message::Module { id, name: format!("m{id}"), dynamic, ..Default::default() };
    let modules = (100..100 + MODULES_MAX as i32).map(|id| module(id, false)).collect();
    let bind = message::Bind { modules, link_sids: vec![] };
    assert_eq!(refused(&provider, link::BIND, &bind).await, &code::LIMIT);
    let modules = vec![module(8, true)];
    for provider in [&provider, &other] {
        let subscribe = message::Subscribe { modules: modules.clone() };
        provider.link.call::<()>(link::SUBSCRIBE, &subscribe, PATIENCE).await.unwrap();
    }
    let many = message::Bind { modules: modules.clone(), link_sids: vec![sid.0; BIND_SIDS_MAX + 1] };
    assert_eq!(refused(&provider, link::BIND, &many).await, &code::LIMIT);
    let bind = message::Bind { modules, link_sids: vec![sid.0, sid.0 + 1, u64::MAX] };
    let bound: message::BindResult = provider.link.call(link::BIND, &bind, PATIENCE).await.unwrap();
    assert_eq!(
        (bound.refused, bound.codes),
        (vec![sid.0 + 1, u64::MAX], vec![code::UNKNOWN_SESSION.number; 2])
    );
    let unbind = message::UnBind { modules: vec![8], link_sids: vec![sid.0] };
    let unbound: message::BindResult = other.link.call(link::UNBIND, &unbind, PATIENCE).await.unwrap();
    assert_eq!((unbound.refused, unbound.codes), (vec![sid.0], vec![code::NOT_OWNER.number]));
    assert_eq!(ann.frame().await.unwrap().head.session, 1);
    still_served(&mut ann, 2).await;
}

/// A Send that names too many ends its connection with LIMIT; one that names a session twice reaches it once.
///
/// Holds: BI-059.
#[tokio::test]
async fn a_send_reaches_each_session_once_and_names_at_most_the_limit() {
    for by in Transport::ALL {
        let world = World::start(settings());
        let mut provider = world.provider("game-1", false).await;
        let mut ann = world.login_by(by, "ann").await;
        ann.send(&request(1, b"")).await;
        let sid = provider.opened().await;
        let head: Vec<u8> = [sid, LinkSid(7), sid].iter().flat_map(|sid| sid.0.to_le_bytes()).collect();
        provider.link.notice(link::SEND, &head, &push(10)).unwrap();
        provider.link.notice(link::SEND, &sid.0.to_le_bytes(), &push(20)).unwrap();
        assert_eq!(ann.frame().await.unwrap().body.len(), 10);
        assert_eq!(ann.frame().await.unwrap().body.len(), 20);
        let head = vec![0; 8 * (SEND_SIDS_MAX + 1)];
        provider.link.notice(link::SEND, &head, &push(10)).unwrap();
        assert!(provider.closed().await.contains("LIMIT"));
        let totals = world.stop().await;
        assert_eq!((totals.frames_out, totals.dropped["session_gone"]), (2, 1));
    }
}

/// A broadcast reaches every session of its version on either transport, tells its sender how many, and is refused when
/// it is larger than a client's frame may be. What a client could never receive is refused without ending anything.
///
/// Holds: BI-060, Q31, D60.
#[tokio::test]
async fn a_broadcast_is_counted_and_one_that_is_too_large_is_refused() {
    let world = World::start(settings());
    let provider = world.provider("game-1", false).await;
    let mut clients = Vec::new();
    for n in 0..20 {
        clients.push(world.login_by(Transport::ALL[n % 2], &format!("p{n}")).await);
    }
    let _stranger = world.connect().await;
    let all = broadcast(&provider, 0, &push(100)).await.unwrap();
    assert_eq!((all.sent, all.shed), (20, 0));
    for client in &mut clients {
        assert_eq!(client.frame().await.unwrap().body.len(), 100);
    }
    let limit = 64 * 1024;
    let too_large = broadcast(&provider, 0, &push(limit)).await.unwrap_err();
    assert_eq!(too_large.code(), &code::LIMIT);
    let huge = push(PAYLOAD_BYTES_CEILING as usize);
    assert_eq!(broadcast(&provider, 0, &huge).await.unwrap_err().code(), &code::LIMIT);
    provider.link.notice(link::SEND, &[0; 8], &huge).unwrap();
    assert_eq!(broadcast(&provider, 0, &push(1)).await.unwrap().sent, 20);
    let totals = world.stop().await;
    assert_eq!((totals.dropped["broadcast_refused"], totals.dropped["too_large"]), (1, 2));
    assert_eq!(totals.frames_out, 40);
}

/// An answer to a call nobody made is dropped and counted, and its connection lives on.
///
/// Holds: BI-064.
#[tokio::test]
async fn an_answer_to_no_call_is_counted() {
    let world = World::start(settings());
    let provider = world.provider("game-1", true).await;
    let mut ann = world.login("ann").await;
    for call in [0, 1, 999, u64::MAX] {
        provider.link.reply(call, &()).unwrap();
    }
    still_served(&mut ann, 1).await;
    assert_eq!(world.stop().await.dropped["stray_reply"], 4);
}
