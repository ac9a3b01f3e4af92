//! What a client may rely on: one answer to each request, in order, whatever handlers do.

use linkstead::{Config, code};
use tokio::io::AsyncReadExt;
use wire::link;
use wire::node::{self, Decoded};
use wire::payload::Head;

use crate::game::{Hall, Heard, Room, Word, game, word};
use crate::linkd::{self, pair, sent, type_of, until};

#[tokio::test]
async fn a_request_is_answered_and_a_notify_is_not() {
    let (builder, stage) = game();
    let (running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.notify(1, Hall::HINT, &word("psst"));
    linkd.request(1, Hall::ECHO, 41, &word("hi"));
    let reply = linkd.sent().await;
    assert_eq!((reply.sids[0].0, reply.type_id, reply.result(41)), (1, Hall::ECHO.type_id, 0));
    assert_eq!(reply.message::<Word>(), word("hi"));
    assert_eq!(stage.lines(), ["hint psst", "echo alice hi"]);
    let status = running.status();
    assert_eq!((&status["counts"]["inline"], &status["counts"]["pooled"]), (&2.into(), &0.into()));
    assert_eq!(status["counts"]["handler_errors"], 1);
}

/// Requests behind one that waits wait too; of another session they don't; the end of the session comes last.
///
/// Holds: Q13, Z-11.
#[tokio::test]
async fn one_session_runs_in_order_and_its_end_comes_last() {
    let (builder, stage) = game();
    let (running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.open(2, "bob", None);
    linkd.request(1, Hall::HOLD, 1, &word("first"));
    linkd.request(1, Hall::ECHO, 2, &word("second"));
    linkd.broken(1, 110);
    linkd.request(2, Hall::ECHO, 3, &word("other"));
    linkd.request(1, Hall::ECHO, 4, &word("late"));
    assert_eq!(linkd.sent().await.result(3), 0);
    until(&running, "late", |status| status["counts"]["dropped"]["late"] == 1).await;
    stage.gate.0.add_permits(1);
    assert_eq!((linkd.sent().await.result(1), linkd.sent().await.result(2)), (0, 0));
    until(&running, "gone", |_| stage.lines().len() == 5).await;
    let expected =
        ["begin first", "echo bob other", "end first", "echo alice second", "gone alice Some(110)"];
    assert_eq!(stage.lines(), expected);
}

#[tokio::test]
async fn a_parallel_handler_overlaps() {
    let (builder, stage) = game();
    let (_running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.request(1, Hall::HOLD, 1, &word("long"));
    linkd.request(1, Hall::OVERLAP, 2, &word("short"));
    assert_eq!(linkd.sent().await.result(2), 0);
    stage.gate.0.add_permits(1);
    assert_eq!(linkd.sent().await.result(1), 0);
}

/// Holds: X-05.
#[tokio::test]
async fn errors_and_panics_become_results_and_the_session_lives_on() {
    let (builder, _stage) = game();
    let (running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.request(1, Hall::FAIL, 1, &Word { text: "no gold".into(), number: 3 });
    assert_eq!(linkd.sent().await.result(1), (7 << 32) | 3);
    linkd.request(1, Hall::PANIC, 2, &word("the test panics on purpose"));
    let panicked = linkd.sent().await;
    assert_eq!((panicked.result(2), panicked.body.as_slice()), (code::EXCEPTION.result(), &[0][..]));
    linkd.dispatch(1, Hall::ECHO.type_id, Head::request(3), &[0xff]);
    assert_eq!(linkd.sent().await.result(3), code::DECODE_ERROR.result());
    linkd.dispatch(1, linkstead::private::type_id(7, 1), Head::request(4), &[]);
    assert_eq!(linkd.sent().await.result(4), code::UNKNOWN_PROTOCOL.result());
    linkd.request(1, Hall::LARGE, 5, &Word { number: 2 << 20, ..Word::default() });
    assert_eq!(linkd.sent().await.result(5), code::REPLY_TOO_LARGE.result());
    linkd.request(1, Hall::ECHO, 6, &word("still here"));
    assert_eq!(linkd.sent().await.result(6), 0);
    assert_eq!(running.status()["counts"]["panics"], 1);
}

#[tokio::test]
async fn what_nobody_can_be_told_about_is_counted() {
    let (builder, _stage) = game();
    let (running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.request(9, Hall::ECHO, 1, &word("never opened"));
    linkd.open(1, "alice", None);
    linkd.dispatch(1, linkstead::private::type_id(7, 1), Head::PROTOCOL, &[]);
    linkd.dispatch(1, Hall::HINT.type_id, Head::PROTOCOL, &[0xff]);
    linkd.dispatch(1, Hall::ECHO.type_id, Head::response(1, 0), &[]);
    linkd.open(1, "alice", None);
    linkd.request(1, Hall::ECHO, 2, &word("after all that"));
    assert_eq!(linkd.sent().await.result(2), 0);
    let dropped = running.status()["counts"]["dropped"].clone();
    for cause in ["not_open", "unknown_notify", "bad_notify", "response", "ignored"] {
        assert_eq!(dropped[cause], 1, "{cause}: {dropped}");
    }
}

#[tokio::test]
async fn a_session_past_its_bound_is_told_to_wait() {
    let (builder, stage) = game();
    let config = Config { in_flight_max: 2, ..Config::default() };
    let (_running, _gateway, mut linkd) = pair(builder, config).await;
    linkd.open(1, "alice", None);
    for request in 1..=3 {
        linkd.request(1, Hall::HOLD, request, &word("x"));
    }
    assert_eq!(linkd.sent().await.result(3), code::BUSY.result());
    stage.gate.0.add_permits(2);
    assert_eq!((linkd.sent().await.result(1), linkd.sent().await.result(2)), (0, 0));
}

/// What is said in a handler leaves in that order, the reply last, on one connection.
#[tokio::test]
async fn effects_leave_in_order_and_the_reply_is_last() {
    let (builder, _stage) = game();
    let (running, _gateway, mut linkd) = pair(builder, Config::default()).await;
    linkd.open(1, "alice", None);
    linkd.open(2, "bob", None);
    linkd.request(1, Hall::EFFECTS, 1, &Word { text: "bob".into(), number: 77 });
    let one = linkd.sent().await;
    assert_eq!(
        (one.sids[0].0, one.type_id, one.message::<Heard>().text.as_str()),
        (1, type_of::<Heard>(), "one")
    );
    let state = linkd.next().await;
    let state = link::UserState::decode(&state.head).unwrap();
    assert_eq!((state.link_sid.0, state.role.map(|role| role.0)), (1, Some(77)));
    let two = linkd.sent().await;
    assert_eq!((two.sids[0].0, two.message::<Heard>().text.as_str()), (2, "two"));
    let three = linkd.next().await;
    assert_eq!((three.meta.kind, link::broadcast_version(&three.head)), (link::BROADCAST, Ok(0)));
    assert_eq!(three.meta.level, linkstead::Level::Sheddable);
    let four = linkd.next().await;
    let ours = Config::default().app_version.parse::<linkstead::AppVersion>().unwrap();
    assert_eq!((four.meta.kind, link::broadcast_version(&four.head)), (link::BROADCAST, Ok(ours.0)));
    assert_eq!(linkd.sent().await.result(1), 0);
    assert_eq!(running.status()["counts"]["pushes"], 2);
}

/// A batch that has used up its time hands the rest to the pool, and nothing is lost or out of order.
#[tokio::test]
async fn a_long_batch_is_answered_whole_and_in_order() {
    let (builder, _stage) = game();
    let (_running, _gateway, mut linkd) =
        pair(builder, Config { in_flight_max: 5_000, ..Config::default() }).await;
    linkd.open(1, "alice", None);
    for request in 0..5_000 {
        linkd.request(1, Hall::ECHO, request, &word("x"));
    }
    for request in 0..5_000 {
        assert_eq!(sent(&linkd.next().await).result(request), 0);
    }
}

/// A linkd that stops reading costs no reply: what can't be sent waits, within the bound, and nothing more is read.
#[tokio::test]
async fn a_linkd_that_reads_slowly_loses_nothing_and_fills_nothing() {
    const REPLIES: i64 = 60;
    let (builder, _stage) = game();
    let (running, _gateway, linkd) = pair(builder, Config::default()).await;
    (0..REPLIES).for_each(|sid| linkd.open(sid as u64, &format!("player-{sid}"), None));
    until(&running, "open", |status| status["online"] == REPLIES).await;
    let (link, mut read) = linkd.stop_reading().await;
    for sid in 0..REPLIES {
        linkd::request(&link, sid as u64, Hall::LARGE, sid, &Word { number: 1 << 20, ..Word::default() });
    }
    until(&running, "paused", |status| status["counts"]["read_pauses"] == 1).await;
    let queued = running.status()["links"][0]["queued_bytes"].as_u64().unwrap();
    assert!(queued <= net::link::OUTBOX_BYTES_MAX as u64, "{queued}");
    let (mut buffer, mut results) = (Vec::new(), Vec::new());
    while results.len() < REPLIES as usize {
        match node::decode(&buffer, node::FRAME_BYTES_MAX).unwrap() {
            Decoded::Frame(frame) => {
                let size = frame.size;
                if frame.meta.kind == link::SEND {
                    let sent = sent(&frame.into());
                    results.push((sent.sids[0].0 as i64, sent.result(sent.sids[0].0 as i64)));
                }
                buffer.drain(..size);
            }
            Decoded::Incomplete { .. } => assert_ne!(read.read_buf(&mut buffer).await.unwrap(), 0),
        }
    }
    results.sort_unstable();
    assert!(results.iter().zip(0..).all(|(&(sid, result), expected)| sid == expected && result == 0));
}

/// Under load what is sheddable goes first, and what is most critical runs on.
#[tokio::test]
async fn an_overloaded_provider_sheds_by_level() {
    let (builder, stage) = game();
    let overload = linkstead::Overload { in_flight_max: 4, ..Default::default() };
    let (running, _gateway, mut linkd) = pair(builder, Config { overload, ..Config::default() }).await;
    linkd.open(1, "alice", None);
    linkd.open(2, "bob", None);
    linkd.request(1, Hall::HOLD, 1, &word("x"));
    linkd.request(1, Hall::HOLD, 2, &word("x"));
    until(&running, "threshold", |status| status["overload"] == 1).await;
    linkd.request(2, Room::SAY, 3, &word("shed"));
    assert_eq!(linkd.sent().await.result(3), code::BUSY.result());
    linkd.request(2, Hall::ECHO, 4, &word("normal"));
    assert_eq!(linkd.sent().await.result(4), 0);
    linkd.request(1, Hall::HOLD, 5, &word("x"));
    linkd.request(1, Hall::HOLD, 6, &word("x"));
    until(&running, "overload", |status| status["overload"] == 2).await;
    linkd.request(2, Hall::ECHO, 7, &word("shed too"));
    assert_eq!(linkd.sent().await.result(7), code::BUSY.result());
    stage.gate.0.add_permits(4);
    for request in [1, 2, 5, 6] {
        assert_eq!(linkd.sent().await.result(request), 0);
    }
    until(&running, "calm", |status| status["overload"] == 0).await;
}
