//! The arbiter of records as a process: found by who needs it, killed under providers that hold records, and asked by
//! operators.

use std::time::{Duration, Instant};

use base::{Epoch, NodeId};
use net::hello::{HelloError, Ours, Role};
use serde_json::Value;
use wire::cache::message::Welcome;
use wire::cache::mode;

use super::world::{ARBITER, DIRECTORY, World, ready};
use crate::holder::{Holder, Word};
use crate::process::{PATIENCE, Process, addr_after, output};

const RENEW: Duration = Duration::from_millis(200);
const EVICTION: Duration = Duration::from_secs(3);
/// A lease that is over soon.
const LEASE: [&str; 5] = [
    "global_cache.renew=200ms",
    "global_cache.self_release=600ms",
    "global_cache.flush=300ms",
    "global_cache.ping=50ms",
    "global_cache.eviction=3s",
];
const KEY: &[u8] = b"\0\0\0\x07role/1";
const OTHER: &[u8] = b"\0\0\0\x07role/2";

fn json(args: &[&str]) -> Value {
    let (code, out, err) = output(args);
    assert_eq!(code, 0, "{args:?}: {out}{err}");
    serde_json::from_str(&out).unwrap()
}

/// Where the directory says that the arbiter is.
fn found(world: &World) -> String {
    let nodes = json(&["topology", "--json", "--ops", world.ops(DIRECTORY)]);
    let arbiter = nodes.as_array().unwrap().iter().find(|node| node["role"] == "arbiter").unwrap();
    assert_eq!(arbiter["services"][0]["name"], "arbiter");
    arbiter["services"][0]["address"].as_str().unwrap().to_owned()
}

/// A provider of the cluster, by its certificate.
async fn holder(world: &World, addr: &str, node: &str) -> Result<Holder, HelloError> {
    let role = if node.starts_with("linkd") { Role::Linkd } else { Role::Provider };
    let id = NodeId::new(node).unwrap();
    let proven = world.proven(role, &id);
    let ours = Ours { cluster: "isles".into(), node: id, role, epoch: Epoch(1), worker: 0 };
    Holder::dial(addr, &proven, &ours).await
}

async fn logged_in(world: &World, node: &str) -> (Holder, Welcome) {
    logged_in_at(world, &found(world), node).await
}

async fn logged_in_at(world: &World, addr: &str, node: &str) -> (Holder, Welcome) {
    let holder = holder(world, addr, node).await.unwrap();
    let welcome = holder.login().await.unwrap();
    (holder, welcome)
}

/// What it is told, while it keeps its lease.
async fn word(holder: &mut Holder) -> Word {
    loop {
        tokio::select! {
            biased;
            word = holder.word() => return word,
            // Sleep: renewals have their own pace.
            () = tokio::time::sleep(RENEW) => holder.renew().await.map(drop).unwrap(),
        }
    }
}

fn start(world: &World) -> [Process; 2] {
    [DIRECTORY, ARBITER].map(|node| {
        let mut process = world.start(node);
        process.wait_for(&ready(node));
        process
    })
}

fn short() -> World {
    let mut world = World::new();
    LEASE.iter().for_each(|setting| world.set(ARBITER, setting));
    world
}

/// Killed and started again, it grants nothing for as long as somebody may use what it granted before; who has held a
/// record all the time holds it on.
///
/// Holds: Z-50, H-09.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_arbiter_is_killed_and_grants_nothing_before_its_grace_is_over() {
    let world = short();
    let [_directory, mut arbiter] = start(&world);
    let (mut a, before) = logged_in(&world, "game-1").await;
    // The first start has its grace, too.
    let granted = loop {
        a.ask(1, mode::MODIFY, KEY);
        match a.word().await {
            Word::Grant(grant) => break grant,
            Word::Deny(code) => assert_eq!(code, "WARMING"),
            other => panic!("{other:?}"),
        }
        a.renew().await.unwrap();
    };
    assert_eq!(granted.mode, mode::MODIFY);

    arbiter.signal("KILL");
    let died = Instant::now();
    assert!(!arbiter.end().success());
    let mut arbiter = world.start(ARBITER);
    let line = arbiter.wait_for(&ready(ARBITER));
    assert!(line.contains("grants in 3 s"), "{line}");
    // Not asked of the directory: that takes its time, and the grace runs.
    let addr = addr_after(&line, "providers on ");
    let (mut a, after) = logged_in_at(&world, &addr, "game-1").await;
    assert!(after.fresh && after.epoch > before.epoch && after.opens_after_ms > 0, "{after:?}");
    a.reassert(KEY);
    let Word::Held(held) = a.word().await else { panic!("not held") };
    assert!(held.seq > 0);

    let (mut b, _) = logged_in_at(&world, &addr, "game-2").await;
    let mut denied = 0;
    loop {
        b.ask(1, mode::MODIFY, OTHER);
        match b.word().await {
            Word::Grant(_) => break,
            Word::Deny(code) => assert_eq!(code, "WARMING"),
            other => panic!("{other:?}"),
        }
        denied += 1;
        assert!(died.elapsed() < PATIENCE, "it never opens");
        a.renew().await.unwrap();
        b.renew().await.unwrap();
    }
    assert!(denied > 0 && died.elapsed() >= EVICTION, "granted {:?} after the kill", died.elapsed());
    // What was reasserted is granted to nobody else before its holder lets go.
    b.ask(2, mode::MODIFY, KEY);
    let Word::Reduce(reduce) = a.word().await else { panic!("nobody asked") };
    assert_eq!(reduce.seq, held.seq);
    a.reduced(KEY, reduce.seq, mode::INVALID);
    assert!(matches!(b.word().await, Word::Grant(grant) if grant.request == 2));
}

/// A provider that is not heard of loses what it holds, and only then.
///
/// Holds: Z-50.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_silent_is_evicted_and_not_before() {
    let mut world = short();
    world.set(ARBITER, "global_cache.grace=0s");
    let _nodes = start(&world);
    let addr = found(&world);
    let (mut a, _) = logged_in_at(&world, &addr, "game-1").await;
    let (mut b, _) = logged_in_at(&world, &addr, "game-2").await;
    let heard = Instant::now();
    a.renew().await.unwrap();
    a.modify(1, KEY).await;
    let mut request = 0;
    loop {
        request += 1;
        b.ask(request, mode::MODIFY, KEY);
        match word(&mut b).await {
            Word::Grant(_) => break,
            Word::Deny(code) => assert_eq!(code, "TIMEOUT"),
            other => panic!("{other:?}"),
        }
    }
    assert!(heard.elapsed() >= EVICTION, "evicted after {:?}", heard.elapsed());
    b.renew().await.unwrap();
    assert!(a.renew().await.is_err(), "it has no session any more");
    let status = world.status(ARBITER);
    assert!(status["counts"]["evicted"].as_u64().unwrap() >= 1, "{status}");
}

/// Only who is a provider by its certificate gets in, as whom it shows itself to be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_providers_enter_the_port_of_the_arbiter() {
    let world = World::new();
    let _nodes = start(&world);
    let addr = found(&world);
    let refused = |result: Result<Holder, HelloError>| match result.map(|_| ()).unwrap_err() {
        HelloError::RefusedByPeer(refusal) => wire::Code::find(refusal.code).unwrap().name,
        other => panic!("{other}"),
    };
    assert_eq!(refused(holder(&world, &addr, "linkd-1").await), "ROLE_VIOLATION");
    let (two, one) = (NodeId::new("game-2").unwrap(), NodeId::new("game-1").unwrap());
    let ours = Ours { cluster: "isles".into(), node: one, role: Role::Provider, epoch: Epoch(1), worker: 0 };
    let in_anothers_name = Holder::dial(&addr, &world.proven(Role::Provider, &two), &ours).await;
    assert_eq!(refused(in_anothers_name), "IDENTITY_MISMATCH");
    assert!(Holder::dial(&addr, &net::Security::Insecure, &ours).await.is_err(), "in clear");
    holder(&world, &addr, "game-1").await.unwrap().login().await.unwrap();
}

/// A second start of its id is refused while it lives; stopped in order it says goodbye, and its name is free at once.
///
/// Holds: H-10, BI-112, Z-66.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_arbiter_has_one_living_process_and_says_goodbye() {
    let world = World::new();
    let [mut directory, mut arbiter] = start(&world);
    let mut second = Process::spawn_with_log(world.beside(ARBITER));
    assert_eq!(second.end().code(), Some(1), "{:#?}", second.seen);
    assert!(second.said().iter().any(|line| line.contains("already running")), "{:#?}", second.seen);
    let (a, _) = logged_in(&world, "game-1").await;
    arbiter.signal("TERM");
    let ended = tokio::time::timeout(PATIENCE, a.ended).await.unwrap().unwrap();
    assert!(ended.contains("the arbiter stops"), "{ended}");
    assert_eq!(arbiter.end().code(), Some(0), "{:#?}", arbiter.seen);
    let mut again = world.start(ARBITER);
    let line = again.wait_for(&ready(ARBITER));
    directory.signal("TERM");
    assert!(directory.end().success());
    // Without a directory it goes on, and stops as it does with one.
    let addr = addr_after(&line, "providers on ");
    logged_in_at(&world, &addr, "game-1").await;
    again.signal("TERM");
    assert_eq!(again.end().code(), Some(0), "{:#?}", again.seen);
}

/// One that was frozen until another start of it was admitted ends with an error as soon as it hears of it.
///
/// Holds: H-10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_arbiter_that_was_replaced_while_it_was_frozen_ends_with_an_error() {
    let mut world = World::new();
    world.set(DIRECTORY, "service_manager.heartbeat=300ms");
    world.set(DIRECTORY, "service_manager.ttl=1s");
    let [_directory, mut frozen] = start(&world);
    frozen.signal("STOP");
    let mut other = loop {
        // Admitted once the lease of the frozen one is over, and refused before.
        let mut other = Process::spawn_with_log(world.beside(ARBITER));
        if other.is_ready(&ready(ARBITER)) {
            break other;
        }
    };
    other.signal("KILL");
    other.end();
    frozen.signal("CONT");
    assert_eq!(frozen.end().code(), Some(1), "{:#?}", frozen.seen);
    assert!(frozen.seen.iter().any(|line| line.contains("another start of this node")), "{:#?}", frozen.seen);
}

/// Operators see who contends for what, through any node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_see_which_records_are_contended() {
    let mut world = World::new();
    world.set(ARBITER, "global_cache.grace=0s");
    // Nobody renews while operators ask.
    world.set(ARBITER, "global_cache.eviction=120s");
    let _nodes = start(&world);
    let ops = world.ops(DIRECTORY);
    let (mut a, _) = logged_in(&world, "game-1").await;
    let (b, _) = logged_in(&world, "game-2").await;
    let held = a.modify(1, KEY).await;
    assert_eq!(json(&["locks", "top", "--json", "--ops", ops]), serde_json::json!([]));
    b.ask(1, mode::SHARE, KEY);
    let Word::Reduce(_) = a.word().await else { panic!("nobody asked") };
    let (code, out, err) = output(&["lookup", "record", "7", "role/1", "--ops", ops]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("7 role/1  modify at game-1, 1 waiting, says global-cache-1"), "{out}");
    assert!(out.contains("game-2               waits for share"), "{out}");
    let locks = json(&["locks", "top", "--json", "--ops", world.ops(ARBITER)]);
    assert_eq!(
        (&locks[0]["table"], &locks[0]["key"], &locks[0]["mode"]),
        (&7.into(), &"role/1".into(), &"modify".into())
    );
    let bytes = json(&["lookup", "record", "7", "0x726f6c652f31", "--json", "--ops", ops]);
    assert_eq!(bytes["holders"][0]["seq"], held.seq.to_string());
    let (code, out, _) = output(&["locks", "top", "--ops", ops]);
    assert!(code == 0 && out.contains("/s  7 role/1") && out.ends_with("1 records\n"), "{out}");
    let (code, out, _) = output(&["status", "--ops", ops]);
    assert!(code == 0 && out.contains("arbiter") && out.contains("sessions 2  records 1"), "{out}");
    // One of 1,024 bytes with its table is a key, one of 1,025 is none.
    for (bytes, expected) in [(1_020, 0), (1_021, 3)] {
        let key = "k".repeat(bytes);
        let (code, _, err) = output(&["lookup", "record", "7", &key, "--ops", ops]);
        assert!(code == expected && err.contains("1024 bytes") == (expected == 3), "{bytes}: {code} {err}");
    }
    for args in [["lookup", "record", "7", "0x0"], ["locks", "top", "--count", "101"]] {
        assert_eq!(output(&args).0, 2, "{args:?}");
    }
}

/// Where there is no arbiter, operators are told so.
#[tokio::test]
async fn without_an_arbiter_operators_are_told_so() {
    let world = World::new();
    let mut directory = world.start(DIRECTORY);
    directory.wait_for(&ready(DIRECTORY));
    for args in [&["locks", "top"][..], &["lookup", "record", "7", "role/1"]] {
        let (code, _, err) = output(&[args, &["--ops", world.ops(DIRECTORY)]].concat());
        assert!(code == 3 && err.contains("no arbiter"), "{code}: {err}");
    }
}
