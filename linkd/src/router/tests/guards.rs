//! Core: rates, guards, broadcasts and load reports, as scripts.

use expect_test::expect;
use wire::Level;

use super::{World, check, check_with, rules};
use crate::router::{Action, Asked, Event, Pushed, Rate, Router, SLOTS_PER_TURN};

/// Beyond the burst requests are answered Busy and one-way messages counted, beyond twice of it the session ends; time
/// heals what was not too much.
///
/// Holds: BI-034.
#[test]
fn who_asks_too_often_hears_busy_and_then_is_closed() {
    check_with(
        |rules| rules.frames = Rate::new(10, 3),
        "up game-1 7
         login ann
         req ann 7:1
         req ann 7:1
         req ann 7:1
         say ann 7:1
         wait 1000
         req ann 7:1
         req ann 7:1
         req ann 7:1
         req ann 7:1
         req ann 7:1
         req ann 7:1
         req ann 7:1",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > req ann 7:1
            dispatch game-1 ann 7:1
            > req ann 7:1
            refuse ann call 9 BUSY
            > say ann 7:1
            dropped rate_limited
            report ann Link -19 BUSY for 7:1
            > wait 1000
            > req ann 7:1
            dispatch game-1 ann 7:1
            > req ann 7:1
            dispatch game-1 ann 7:1
            > req ann 7:1
            dispatch game-1 ann 7:1
            > req ann 7:1
            refuse ann call 9 BUSY
            > req ann 7:1
            refuse ann call 9 BUSY
            > req ann 7:1
            refuse ann call 9 BUSY
            > req ann 7:1
            close ann Link 117 FLOOD
            broken game-1 ann 117
        "#]],
    );
}

/// Keep-alives and handshakes are worth no refusal, and neither is anything before login.
///
/// Holds: BI-048.
#[test]
fn a_flood_of_keep_alives_or_of_strangers_is_closed_at_the_burst() {
    check_with(
        |rules| rules.frames = Rate::new(10, 2),
        "login ann
         ping ann
         ping ann
         client bob
         ping bob
         ping bob
         ping bob",
        expect![[r#"
            > login ann
            authed ann
            > ping ann
            keep-alive ann 3
            > ping ann
            close ann Link 117 FLOOD
            > client bob
            accept
            > ping bob
            keep-alive bob 3
            > ping bob
            keep-alive bob 3
            > ping bob
            close bob Link 117 FLOOD
        "#]],
    );
}

/// A session that comes while a broadcast is on its way doesn't get it; who gets something else first gets the broadcast
/// before that; a version that is not meant gets nothing.
///
/// Holds: Q31.
#[test]
fn a_broadcast_goes_out_in_turns_and_is_overtaken_by_nothing() {
    check(
        "up game-1 7
         client ann
         auth ann ann 1.0.0.0
         client bob
         auth bob bob 2.0.0.0
         client stranger
         broadcast game-1 1.9.0.0
         broadcast game-1 0
         client eve
         auth eve eve 1.0.0.0
         send game-1 bob
         send game-1 eve
         fan
         fan
         fan",
        expect![[r#"
            > up game-1 7
            > client ann
            accept
            > auth ann ann 1.0.0.0
            authed ann
            > client bob
            accept
            > auth bob bob 2.0.0.0
            authed bob
            > client stranger
            accept
            > broadcast game-1 1.9.0.0
            keep 1
            > broadcast game-1 0
            keep 2
            > client eve
            accept
            > auth eve eve 1.0.0.0
            authed eve
            > send game-1 bob
            forward bob kept 2
            forward bob
            > send game-1 eve
            forward eve
            > fan
            forward ann kept 1
            forget 1
            broadcast, sent 1 shed 0
            > fan
            forward ann kept 2
            forget 2
            broadcast, sent 2 shed 0
            > fan
        "#]],
    );
}

/// Holds: BI-060.
#[test]
fn broadcasts_that_are_too_large_or_too_many_are_refused_to_their_sender() {
    check_with(
        |rules| rules.broadcasts_max = 1,
        "up game-1 7
         login ann
         broadcast game-1 0 65537
         broadcast game-1 0 65536
         broadcast game-1 0
         fan
         broadcast game-1 0
         gone game-1
         fan",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > broadcast game-1 0 65537
            dropped broadcast_refused
            refused LIMIT: a broadcast of 65537 bytes, at most 65536
            > broadcast game-1 0 65536
            keep 1
            > broadcast game-1 0
            dropped broadcast_refused
            refused BUSY: 1 broadcasts are on their way; wait for one to end
            > fan
            forward ann kept 1
            forget 1
            broadcast, sent 1 shed 0
            > broadcast game-1 0
            keep 2
            > gone game-1
            > fan
            forward ann kept 2
            forget 2
        "#]],
    );
}

/// Reports that nobody could mean leave the last good one standing, and of a flood only ten in a second change anything,
/// the last one in any case.
///
/// Holds: BI-061, BI-062.
#[test]
fn bad_loads_are_ignored_and_a_flood_of_them_coalesces() {
    let mut world = World::default();
    world.run("up game-1 7");
    let dropped = |world: &mut World, pairs: &[&str]| {
        world.load("game-1", pairs).iter().any(|action| matches!(action, Action::Dropped(_)))
    };
    let online = |world: &World| world.router.summary().providers.values().next().unwrap().load.online;
    assert!(!dropped(&mut world, &["online", "5"]));
    assert!(dropped(&mut world, &["online", "6", "max", "0"]));
    assert!(dropped(&mut world, &["online", "6", "overload", "3"]));
    assert!(dropped(&mut world, &["online", "6", "seq", "1"]));
    assert_eq!(online(&world), 5);
    let mut effective = 0;
    for n in 10..10_010u32 {
        world.now += base::Span::micros(100);
        world.load("game-1", &["online", &n.to_string()]);
        effective += u32::from(online(&world) == n);
    }
    assert!((10..=20).contains(&effective), "{effective} of a second's flood changed something");
    world.run("wait 200");
    assert_eq!(online(&world), 10_009);
}

/// A worker's line carries what it may; the rest is given up by level, and what answers or keeps alive never is.
///
/// Holds: Q32.
#[test]
fn a_full_line_gives_up_pushes_by_level_and_answers_requests_busy() {
    let rules = crate::router::Rules { out_bytes_per_second: 100_000, ..rules() };
    let mut world = World { router: Router::new(rules), ..World::default() };
    world.run("up game-1 7");
    world.run("login ann");
    let answer = Asked { type_id: wire::auth::AUTH, session: 9 };
    let send = |world: &mut World, level, is_reply: bool, bytes| {
        let (conn, head) = (world.conns["game-1"], world.sid("ann").0.to_le_bytes());
        let pushed = Pushed { level, bytes, reply: is_reply.then_some(answer) };
        let sent = world.step(Event::Send { conn, call: 0, head: &head, pushed });
        matches!(sent[..], [Action::Forward { .. }])
    };
    for _ in 0..3_000 {
        world.now += base::Span::millis(1);
        assert!(send(&mut world, Level::Critical, false, 200));
    }
    let shed = Level::ALL.map(|level| !send(&mut world, level, false, 1));
    assert_eq!(shed, [false, false, true, true]);
    assert!(send(&mut world, Level::Sheddable, true, 1));
    assert!(matches!(world.run("req ann 7:1")[..], [Action::Refuse { .. }]));
    assert!(matches!(world.run("req ann 7:2")[..], [.., Action::Dispatch { .. }]));
    assert!(matches!(world.run("ping ann")[..], [Action::KeepAlive { .. }]));
    world.now += base::Span::secs(10);
    assert!(send(&mut world, Level::Sheddable, false, 1));
}

/// Every session of this moment gets it exactly once, whatever happens between the turns, and each turn is bounded.
///
/// Holds: Q31, D60.
#[test]
fn a_broadcast_reaches_everybody_once_in_bounded_turns() {
    let mut world = World::default();
    world.run("up game-1 7");
    for n in 0..1_700 {
        world.run(&format!("login c{n}"));
    }
    world.run("broadcast game-1 0");
    let mut reached = std::collections::BTreeMap::<_, u32>::new();
    let mut turns = 0;
    let mut closed = 0;
    while world.router.fans_out() {
        let mut actions = world.run("fan");
        assert!(actions.len() <= SLOTS_PER_TURN + 2);
        turns += 1;
        world.run(&format!("close c{}", 1_600 + turns));
        closed += 1;
        world.run(&format!("login late{turns}"));
        actions.extend(world.run(&format!("send game-1 c{}", 1_500 + turns)));
        for action in actions {
            if let Action::ForwardKept { sid, .. } = action {
                *reached.entry(sid).or_default() += 1;
            }
        }
    }
    assert_eq!(turns, 4);
    assert!(reached.values().all(|&times| times == 1));
    assert!((1_700 - closed..=1_700).contains(&reached.len()), "{}", reached.len());
}
