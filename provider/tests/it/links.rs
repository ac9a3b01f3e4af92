//! Reaching sessions, and what happens when their gateway changes.

use std::sync::Arc;

use base::{Epoch, LinkSid};
use linkstead::{Audience, Config, Error, LinkRef, code};
use wire::link::{self, message};
use wire::node::Meta;

use crate::game::{Hall, Heard, Room, Word, game, word};
use crate::linkd::{Gateway, pair, start, until};

fn heard(text: &str) -> Heard {
    Heard { text: text.to_owned() }
}

fn code_of(error: Error) -> i32 {
    match error {
        Error::Framework { code, .. } => code.number,
        other => panic!("not the framework's: {other}"),
    }
}

/// Holds: Q20.
#[tokio::test]
async fn a_session_of_an_earlier_start_is_never_reached() {
    let (builder, _stage) = game();
    let (running, gateway, mut linkd) = pair(builder, Config::default()).await;
    let links = running.links();
    let live = LinkRef { linkd: gateway.listed(1).node, epoch: Epoch(3), sid: LinkSid(1) };
    links.push_to(&live, &heard("you")).unwrap();
    assert_eq!(linkd.sent().await.sids, [LinkSid(1)]);
    let old = LinkRef { epoch: Epoch(2), ..live.clone() };
    assert_eq!(code_of(links.push_to(&old, &heard("nobody")).unwrap_err()), code::UNKNOWN_SESSION.number);
    let elsewhere = LinkRef { linkd: linkstead::NodeId::new("linkd-9").unwrap(), ..live.clone() };
    assert_eq!(code_of(links.push_to(&elsewhere, &heard("nobody")).unwrap_err()), code::UNAVAILABLE.number);
    assert_eq!(links.push_all(&[old.clone(), live, elsewhere], &heard("all")), 1);
    assert_eq!(linkd.sent().await.message::<Heard>(), heard("all"));
    // A kick of a session that can't exist any more is done at once.
    links.kick(&old, 1, "gone").await.unwrap();
    assert_eq!(running.status()["counts"]["dropped"]["push_no_link"], 4);
}

#[tokio::test]
async fn a_push_to_many_names_them_in_one_frame() {
    let (builder, _stage) = game();
    let (_running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    for sid in 1..=5_000u64 {
        linkd.open(sid, &format!("player-{sid:04}"), None);
    }
    linkd.request(1, Room::SAY, 1, &word("hello"));
    let (first, rest) = (linkd.sent().await, linkd.sent().await);
    assert_eq!((first.sids.len(), rest.sids.len()), (4_096, 904));
    assert_eq!((first.message::<Heard>(), rest.message::<Heard>()), (heard("hello"), heard("hello")));
    assert_eq!(linkd.sent().await.result(1), 0);
}

#[tokio::test]
async fn online_follows_sessions_and_roles() {
    let (builder, _stage) = game();
    let (running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    let online = |status: &serde_json::Value, n: u64| status["online"] == n;
    linkd.open(1, "alice", Some(5));
    linkd.user_state(1, Some(6));
    linkd.open(2, "alice", None);
    linkd.broken(1, 0);
    linkd.request(2, Hall::EFFECTS, 1, &Word { text: "alice".into(), number: 6 });
    linkd.sent().await;
    linkd.next().await;
    // The newer session of the account is found, though the older one has ended.
    assert_eq!(linkd.sent().await.sids, [LinkSid(2)]);
    linkd.broken(2, 0);
    until(&running, "empty", |status| online(status, 0)).await;
}

#[tokio::test]
async fn a_kick_stops_the_session_and_waits_for_its_gateway() {
    let (builder, stage) = game();
    let (running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.request(1, Hall::LEAVE, 1, &Word { text: "bye".into(), number: 5 });
    linkd.request(1, Hall::ECHO, 2, &word("never"));
    // Gone already: that is what was asked for.
    linkd.refuse(link::KICK, &code::UNKNOWN_SESSION).await;
    assert_eq!(linkd.sent().await.result(1), 0);
    until(&running, "dropped", |status| status["counts"]["dropped"]["kicked"] == 1).await;
    linkd.broken(1, code::KICKED.number);
    until(&running, "gone", |_| stage.lines() == ["gone alice Some(118)"]).await;
}

#[tokio::test]
async fn a_kick_says_what_the_game_said() {
    let (builder, _stage) = game();
    let (_running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.request(1, Hall::LEAVE, 1, &Word { text: "bye".into(), number: 5 });
    let kick: message::Kick = linkd.call(link::KICK).await;
    assert_eq!(kick, message::Kick { link_sid: 1, code: 5, text: "bye".into(), report_only: false });
    assert_eq!(linkd.sent().await.result(1), 0);
}

#[tokio::test]
async fn a_dynamic_module_is_bound_for_its_sessions() {
    let (builder, _stage) = game();
    let (_running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.request(1, Hall::ENTER, 1, &word(""));
    let bind: message::Bind = linkd.call(link::BIND).await;
    assert_eq!((bind.link_sids.as_slice(), bind.modules[0].id, bind.modules[0].dynamic), (&[1][..], 8, true));
    assert_eq!(linkd.sent().await.result(1), 0);
    linkd.request(1, Hall::ENTER, 2, &word(""));
    let frame = linkd.next().await;
    let refused = message::BindResult { refused: vec![1], codes: vec![code::UNKNOWN_SESSION.number] };
    linkd.link.reply(frame.meta.call, &refused).unwrap();
    assert_eq!(linkd.sent().await.result(2), code::UNKNOWN_SESSION.result());
}

/// The directory forgets a linkd whose connection is healthy: nobody is cut off. Once it breaks it is not dialled again.
///
/// Holds: Q30.
#[tokio::test]
async fn a_linkd_that_is_listed_no_longer_keeps_its_healthy_connection() {
    let gateway = Gateway::new("linkd-1", 3).await;
    let (builder, stage) = game();
    let (running, list) = start(builder, Config::default(), vec![gateway.listed(1)]).await;
    let mut linkd = gateway.accept().await;
    linkd.introduce().await;
    linkd.open(1, "alice", None);
    list.send_replace(Arc::default());
    for request in 0..3 {
        linkd.request(1, Hall::ECHO, request, &word("x"));
        assert_eq!(linkd.sent().await.result(request), 0);
    }
    linkd.link.outbox.close();
    until(&running, "ended", |status| status["links"].as_array().is_some_and(Vec::is_empty)).await;
    let expected = format!("gone alice Some({})", code::UNAVAILABLE.number);
    until(&running, "gone", |_| stage.lines().last() == Some(&expected)).await;
    // Listed anew it is dialled anew.
    list.send_replace(Arc::new(vec![gateway.listed(1)]));
    gateway.accept().await.introduce().await;
}

#[tokio::test]
async fn a_gateway_that_sends_nonsense_is_told_and_dialled_again() {
    let (builder, _stage) = game();
    let (_running, gateway, linkd) = pair(builder, Config::default()).await;
    linkd.link.push(&Meta::notice(link::DISPATCH), &[1, 2, 3], &[]).unwrap();
    linkd.link.outbox.wake();
    let closed = linkd.ended().await;
    let said =
        matches!(&closed, net::link::Closed::Goodbye(refusal) if refusal.code == code::BAD_MESSAGE.number);
    assert!(said, "{closed}");
    gateway.accept().await.introduce().await;
}

/// A kick whose gateway goes away is repeated when it is back, and nobody waits in vain.
#[tokio::test]
async fn a_kick_is_repeated_until_it_is_confirmed() {
    let (builder, _stage) = game();
    let (running, gateway, mut linkd) = pair(builder, Config::default()).await;
    let link = LinkRef { linkd: gateway.listed(1).node, epoch: Epoch(3), sid: LinkSid(1) };
    let links = running.links();
    let kicking = tokio::spawn(async move { links.kick(&link, 5, "bye").await });
    assert_eq!(linkd.next().await.meta.kind, link::KICK);
    linkd.link.outbox.close();
    let mut linkd = gateway.accept().await;
    // It comes as soon as the provider has announced itself, maybe amid the rest of its introduction.
    let kick = loop {
        let frame = linkd.next().await;
        linkd.link.reply(frame.meta.call, &()).unwrap();
        if frame.meta.kind == link::KICK {
            break <message::Kick as prost::Message>::decode(frame.body).unwrap();
        }
    };
    assert_eq!((kick.link_sid, kick.code), (1, 5));
    kicking.await.unwrap().unwrap();
}

/// Another node answers where the linkd was listed: no session of it is believed.
#[tokio::test]
async fn a_connection_to_another_start_than_the_listed_one_is_not_used() {
    let gateway = Gateway::new("linkd-1", 3).await;
    let (builder, _stage) = game();
    let listed = linkstead::Linkd { epoch: Epoch(2), ..gateway.listed(1) };
    let (running, list) = start(builder, Config::default(), vec![listed]).await;
    gateway.accept().await.ended().await;
    assert!(!running.is_ready());
    list.send_replace(Arc::new(vec![gateway.listed(1)]));
    loop {
        // Dials to the old listing may still be on their way.
        let mut linkd = gateway.accept().await;
        let frame = tokio::select! {
            frame = linkd.frame_or_end() => frame,
            () = running.ready() => break,
        };
        if let Some(frame) = frame {
            linkd.link.reply(frame.meta.call, &()).unwrap();
            linkd.call::<message::Bind>(link::BIND).await;
            linkd.call::<message::Subscribe>(link::SUBSCRIBE).await;
            running.ready().await;
            break;
        }
    }
}

/// A session that was kicked while its linkd was away begins nothing when that is back, however soon it asks.
///
/// Holds: Q63.
#[tokio::test]
async fn a_session_that_is_being_kicked_begins_nothing_over_the_next_connection() {
    let (builder, _stage) = game();
    let (running, gateway, mut linkd) = pair(builder, Config::default()).await;
    let link = LinkRef { linkd: gateway.listed(1).node, epoch: Epoch(3), sid: LinkSid(1) };
    let links = running.links();
    let mut kicking = tokio::spawn(async move { links.kick(&link, 5, "bye").await });
    assert_eq!(linkd.next().await.meta.kind, link::KICK);
    linkd.link.outbox.close();
    let mut linkd = gateway.accept().await;
    // Kicks are left unanswered while the rest of the introduction goes on.
    let mut kicks = Vec::new();
    while !running.is_ready() {
        let frame = linkd.next().await;
        match frame.meta.kind {
            link::KICK => kicks.push(frame.meta.call),
            _ => linkd.link.reply(frame.meta.call, &()).unwrap(),
        }
        if frame.meta.kind == link::SUBSCRIBE {
            running.ready().await;
        }
    }
    linkd.open(1, "alice", None);
    linkd.open(2, "bob", None);
    linkd.request(1, Hall::ECHO, 1, &word("never"));
    linkd.request(2, Hall::ECHO, 2, &word("yes"));
    let answered = loop {
        let frame = linkd.next().await;
        match frame.meta.kind {
            link::KICK => kicks.push(frame.meta.call),
            link::SEND => break crate::linkd::sent(&frame),
            _ => {}
        }
    };
    assert_eq!((answered.sids.as_slice(), answered.result(2)), (&[LinkSid(2)][..], 0));
    until(&running, "dropped", |status| status["counts"]["dropped"]["kicked"] == 1).await;
    // One that was left for too long is repeated, so each is answered until the kick is done.
    loop {
        for call in kicks.drain(..) {
            linkd.link.reply(call, &()).unwrap();
        }
        linkd.link.outbox.wake();
        tokio::select! {
            biased;
            done = &mut kicking => break done.unwrap().unwrap(),
            frame = linkd.next() => kicks.extend((frame.meta.kind == link::KICK).then_some(frame.meta.call)),
        }
    }
}

/// The start before has lost its name and may not have heard of it.
///
/// Holds: Q20, Q63.
#[tokio::test]
async fn two_starts_of_a_linkd_are_reached_each_by_itself() {
    let (builder, _stage) = game();
    let (before, after) = (Gateway::new("linkd-1", 3).await, Gateway::new("linkd-1", 4).await);
    let (running, listed) = start(builder, Config::default(), vec![before.listed(1)]).await;
    let mut linkd = before.accept().await;
    linkd.introduce().await;
    listed.send_replace(Arc::new(vec![after.listed(1)]));
    let mut successor = after.accept().await;
    assert!(!running.is_ready(), "the connection to the start before counts no longer");
    successor.introduce().await;
    running.ready().await;

    linkd.open(1, "alice", None);
    successor.open(1, "bob", None);
    let links = running.links();
    let alice = LinkRef { linkd: before.listed(1).node, epoch: Epoch(3), sid: LinkSid(1) };
    links.push_to(&alice, &heard("alice")).unwrap();
    links.push_to(&LinkRef { epoch: Epoch(4), ..alice.clone() }, &heard("bob")).unwrap();
    assert_eq!(linkd.sent().await.message::<Heard>(), heard("alice"));
    assert_eq!(successor.sent().await.message::<Heard>(), heard("bob"));

    let kicking = tokio::spawn(async move { links.kick(&alice, 5, "bye").await });
    assert_eq!(linkd.call::<message::Kick>(link::KICK).await.link_sid, 1);
    kicking.await.unwrap().unwrap();
    linkd.request(1, Hall::ECHO, 1, &word("never"));
    successor.request(1, Hall::ECHO, 2, &word("yes"));
    assert_eq!(successor.sent().await.result(2), 0);
    until(&running, "dropped", |status| status["counts"]["dropped"]["kicked"] == 1).await;
}

#[tokio::test]
async fn a_counted_push_and_a_check_say_who_is_not_there() {
    let (builder, _stage) = game();
    let (running, gateway, mut linkd) = pair(builder, Config::default()).await;
    let node = gateway.listed(1).node;
    let at = |epoch, sid| LinkRef { linkd: node.clone(), epoch: Epoch(epoch), sid: LinkSid(sid) };
    let away = LinkRef { linkd: linkstead::NodeId::new("linkd-9").unwrap(), ..at(3, 1) };
    let all = [at(3, 1), at(3, 2), at(2, 3), away.clone()];
    let (links, asked) = (running.links(), all.clone());
    let pushing = tokio::spawn(async move { links.push_counted(&asked, &heard("x")).await });
    let frame = linkd.next().await;
    assert_eq!((frame.meta.kind, frame.head.len()), (link::SEND, 16));
    linkd.link.reply(frame.meta.call, &message::SendResult { missed: vec![2] }).unwrap();
    linkd.link.outbox.wake();
    let mut missed = pushing.await.unwrap();
    missed.sort();
    assert_eq!(missed, [at(2, 3), at(3, 2), away.clone()]);
    let links = running.links();
    let checking = tokio::spawn(async move { links.check(&all).await });
    let frame = linkd.next().await;
    let check: message::Check = prost::Message::decode(frame.body).unwrap();
    assert_eq!((frame.meta.kind, check.link_sids), (link::CHECK, vec![1, 2]));
    linkd.link.reply(frame.meta.call, &message::CheckResult { gone: vec![1] }).unwrap();
    linkd.link.outbox.wake();
    let checked = checking.await.unwrap();
    assert_eq!((checked.gone, checked.unknown), (vec![at(2, 3), at(3, 1)], vec![away]));
}

/// It begins closed where that is configured, and each change is known once a linkd has acknowledged it; one that does
/// not is named.
///
/// Holds: Z-33, Q62.
#[tokio::test]
async fn a_change_of_mind_about_new_players_is_acknowledged() {
    let (builder, _stage) = game();
    let config = Config { initially_disabled: true, ..Config::default() };
    let gateway = Gateway::new("linkd-1", 3).await;
    let (running, _list) = start(builder, config, vec![gateway.listed(1)]).await;
    let mut linkd = gateway.accept().await;
    let (announce, ..) = linkd.introduce().await;
    assert!(announce.disabled && running.status()["disabled"] == true);
    let set = |disabled| {
        let links = running.links();
        tokio::spawn(async move { links.set_disabled(disabled, std::time::Duration::from_millis(500)).await })
    };
    let opening = set(false);
    let disable: message::Disable = linkd.call(link::DISABLE).await;
    let told = opening.await.unwrap();
    assert!(!disable.disabled && told.workers == 1 && told.failed.is_empty(), "{told:?}");
    let closing = set(true);
    assert_eq!(linkd.next().await.meta.kind, link::DISABLE);
    let told = closing.await.unwrap();
    assert_eq!((told.workers, told.failed.len()), (0, 1));
    assert_eq!(told.failed[0].0, gateway.listed(1).node);
    assert_eq!(running.status()["disabled"], true);
}

/// Every worker of every linkd is asked at once, and what each says is added up: how many it reached, how many it gave up,
/// and who refused.
///
/// Holds: Q31.
#[tokio::test]
async fn a_counted_broadcast_says_whom_it_reached_and_who_refused() {
    let (builder, _stage) = game();
    let gateways = [Gateway::new("linkd-1", 3).await, Gateway::new("linkd-2", 4).await];
    let listed = gateways.iter().map(|gateway| gateway.listed(1)).collect();
    let (running, _list) = start(builder, Config::default(), listed).await;
    let (mut one, mut two) = (gateways[0].accept().await, gateways[1].accept().await);
    one.introduce().await;
    two.introduce().await;
    running.ready().await;
    let links = running.links();
    let reached = async { links.broadcast_counted(Audience::Everybody, &heard("all")).await };
    let answers = async {
        let asked = one.next().await;
        assert_eq!((asked.meta.kind, link::broadcast_version(&asked.head)), (link::BROADCAST, Ok(0)));
        // The second is asked although the first has not answered.
        let other = two.next().await;
        assert_eq!((other.meta.kind, &other.body), (link::BROADCAST, &asked.body));
        two.link.refuse(other.meta.call, &code::BUSY, "too many at once").unwrap();
        one.link.reply(asked.meta.call, &message::BroadcastResult { sent: 7, shed: 2 }).unwrap();
    };
    let (reached, ()) = tokio::join!(reached, answers);
    assert_eq!((reached.sent, reached.shed), (7, 2));
    let failed: Vec<_> =
        reached.failed.into_iter().map(|(node, error)| (node.to_string(), code_of(error))).collect();
    assert_eq!(failed, [("linkd-2".to_owned(), code::BUSY.number)]);
}
