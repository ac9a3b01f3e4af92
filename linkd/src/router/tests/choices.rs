//! Core: which provider, and what no choice may do.

use std::collections::BTreeMap;

use expect_test::expect;

use super::{World, check};
use crate::router::Action;

/// Where a fresh login's first request of module 7 goes.
fn place(world: &mut World, account: &str) -> Option<String> {
    world.run(&format!("login {account}"));
    let actions = world.run(&format!("req {account} 7:1"));
    let to = actions.iter().find_map(|a| match a {
        Action::Dispatch { to, .. } => Some(to.conn),
        _ => None,
    })?;
    world.conns.iter().find(|(_, conn)| **conn == to).map(|(node, _)| node.clone())
}

fn spread(world: &mut World, logins: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for i in 0..logins {
        let account = format!("player-{i}");
        if let Some(node) = place(world, &account) {
            *counts.entry(node).or_default() += 1;
        }
        world.run(&format!("close {account}"));
    }
    counts
}

fn world(modules: &str) -> World {
    let mut world = World::default();
    for node in ["game-1", "game-2", "game-3"] {
        world.run(&format!("up {node} {modules}"));
    }
    world
}

/// Holds: Z-12, Z-18.
#[test]
fn an_account_has_the_same_home_on_every_linkd() {
    let (mut a, mut b) = (world("7"), World::default());
    for node in ["game-3", "game-1", "game-2"] {
        b.run(&format!("up {node} 7"));
    }
    for i in 0..200 {
        let account = format!("player-{i}");
        assert_eq!(place(&mut a, &account), place(&mut b, &account));
    }
}

/// Holds: Z-17, Q8, Q11.
#[test]
fn an_ineligible_owner_fails_over_and_gets_its_accounts_back() {
    let mut world = world("7");
    let account = "ann";
    let home = place(&mut world, account).unwrap();
    for (off, on) in [("overload", "2"), ("maxnew", "1")].map(|(field, value)| {
        let off = format!("load {home} {field} {value} new {}", if field == "maxnew" { "5" } else { "0" });
        (off, format!("load {home} online 0"))
    }) {
        world.run("close ann");
        world.run(&off);
        let next = place(&mut world, account).unwrap();
        assert_ne!(next, home, "{off}");
        world.run("close ann");
        world.run(&on);
        assert_eq!(place(&mut world, account).unwrap(), home);
    }
    world.run("close ann");
    world.run(&format!("disable {home}"));
    assert_ne!(place(&mut world, account).unwrap(), home);
    world.run("close ann");
    world.run(&format!("gone {home}"));
    assert_ne!(place(&mut world, account).unwrap(), home);
}

/// Whatever main version the providers have, and however they are chosen.
///
/// Holds: Q40.
#[test]
fn a_client_that_states_no_version_is_served() {
    for choice in ["hash_account", "hash_source", "feed_full", "load", "request"] {
        let mut world = World::default();
        let bind = format!("bind game-1 7/{choice}");
        let load = "load game-1";
        for command in ["provider game-1", "announce game-1 1 3.0.0.0", &bind, load, "client ann"] {
            world.run(command);
        }
        world.auth("ann", "ann", "");
        let actions = world.run("req ann 7:1");
        assert!(actions.iter().any(|action| matches!(action, Action::Dispatch { .. })), "{choice}");
    }
}

/// Holds: Z-13, Q56.
#[test]
fn a_source_is_an_address_without_its_port() {
    let mut world = world("7/hash_source");
    let mut place_from = |addr: &str| {
        world.run(&format!("client x {addr}"));
        world.auth("x", "x", "");
        let actions = world.run("req x 7:1");
        world.run("close x");
        actions.iter().find_map(|a| match a {
            Action::Dispatch { to, .. } => Some(*to),
            _ => None,
        })
    };
    for i in 0..50 {
        let v4 = place_from(&format!("10.0.0.{i}:1000"));
        assert_eq!(v4, place_from(&format!("10.0.0.{i}:2000")));
        assert_eq!(v4, place_from(&format!("[::ffff:10.0.0.{i}]:3000")));
    }
}

/// Weights 90, 10 and 0 over 10,000 picks: within 5 %, and never the full one. Each pick is released at once by the
/// next report, so that the weights stay.
///
/// Holds: Z-15.
#[test]
fn load_follows_the_weights() {
    let mut world = world("7/load");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for i in 0..10_000 {
        world.now += base::Span::millis(100);
        world.load("game-1", &["online", "10"]);
        world.load("game-2", &["online", "90"]);
        world.load("game-3", &["online", "100"]);
        let account = format!("p{i}");
        *counts.entry(place(&mut world, &account).unwrap()).or_default() += 1;
        world.run(&format!("close {account}"));
    }
    assert!((8_500..=9_500).contains(&counts["game-1"]), "{counts:?}");
    assert!((500..=1_500).contains(&counts["game-2"]), "{counts:?}");
    assert_eq!(counts.get("game-3"), None);
}

/// Between two reports a burst is spread by what was already given.
#[test]
fn load_counts_what_it_gave_since_the_last_report() {
    let mut world = world("7/load");
    let counts = spread(&mut world, 400);
    assert_eq!(counts.values().sum::<usize>(), 300, "each takes its 100: {counts:?}");
    assert!(counts.values().all(|&n| n == 100), "{counts:?}");
}

/// Holds: Z-14.
#[test]
fn feed_full_fills_one_after_the_other_in_server_order() {
    let mut world = world("7/feed_full");
    let homes: Vec<_> = (0..201).filter_map(|i| place(&mut world, &format!("p{i}"))).collect();
    assert!(homes[..100].iter().all(|n| n == "game-1"));
    assert!(homes[100..200].iter().all(|n| n == "game-2"));
    assert_eq!(homes[200], "game-3");
}

/// Holds: Z-16.
#[test]
fn request_spreads_evenly() {
    let mut world = world("7/request");
    let counts = spread(&mut world, 9_000);
    assert!(counts.values().all(|&n| (2_700..=3_300).contains(&n)), "{counts:?}");
}

/// Holds: Z-03, Z-34, BI-013, BI-015, BI-042.
#[test]
fn why_nobody_was_chosen_is_said() {
    check(
        "login ann
         req ann 7:1
         registered 99
         req ann 7:1
         registered 7
         req ann 7:1
         say ann 7:1
         say ann 7:1
         wait 1000
         say ann 7:1
         provider game-1
         announce game-1 1 1.0.0.0
         bind game-1 7 8/hash_role
         client bob
         auth bob bob 2.0.0.0
         req bob 7:1
         req ann 8:1
         load game-1 overload 2
         req ann 7:1
         disable game-1
         req ann 7:1",
        expect![[r#"
            > login ann
            authed ann
            > req ann 7:1
            refuse ann call 9 NO_PROVIDER
            > registered 99
            > req ann 7:1
            refuse ann call 9 UNKNOWN_MODULE
            > registered 7
            > req ann 7:1
            refuse ann call 9 NO_PROVIDER
            > say ann 7:1
            dropped no_provider
            report ann Link 2 NO_PROVIDER for 7:1
            > say ann 7:1
            dropped no_provider
            > wait 1000
            > say ann 7:1
            dropped no_provider
            report ann Link 2 NO_PROVIDER for 7:1
            > provider game-1
            > announce game-1 1 1.0.0.0
            done
            > bind game-1 7 8/hash_role
            done
            > client bob
            accept
            > auth bob bob 2.0.0.0
            authed bob
            > req bob 7:1
            refuse bob call 9 VERSION_NOT_SERVED
            > req ann 8:1
            refuse ann call 9 NO_ROLE
            > load game-1 overload 2
            > req ann 7:1
            refuse ann call 9 BUSY
            > disable game-1
            done
            > req ann 7:1
            refuse ann call 9 NO_PROVIDER
        "#]],
    );
}

/// Holds: Z-27, Z-28, Q2.
#[test]
fn an_overloaded_provider_gets_only_critical_plus_of_bound_sessions() {
    check(
        "up game-1 7
         login ann
         req ann 7:1
         load game-1 overload 1
         req ann 7:1
         load game-1 overload 2
         req ann 7:1
         say ann 7:1
         say ann 7:1
         req ann 7:2
         login bob
         req bob 7:2",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > load game-1 overload 1
            > req ann 7:1
            dispatch game-1 ann 7:1
            > load game-1 overload 2
            > req ann 7:1
            refuse ann call 9 BUSY
            > say ann 7:1
            dropped overloaded
            report ann Link 3 PROVIDER_BUSY for 7:1
            > say ann 7:1
            dropped overloaded
            > req ann 7:2
            dispatch game-1 ann 7:2
            > login bob
            authed bob
            > req bob 7:2
            refuse bob call 9 BUSY
        "#]],
    );
}
