//! Core: handshake, login, what is refused before it, deadlines, kicks.

use base::{Account, AppVersion, Span};
use expect_test::expect;

use super::{World, check, rules};
use crate::router::{Action, Event, Router, Rules};

/// A second handshake message is a violation that closes with LinkBroken; it never resets the session.
///
/// Holds: Q4.
#[test]
fn a_second_handshake_closes_and_every_provider_hears_of_it() {
    check(
        "up game-1 7
         login ann
         done ann
         req ann 7:1
         done ann",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > done ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > done ann
            close ann Link 103 HANDSHAKE_VIOLATION
            broken game-1 ann 103
        "#]],
    );
}

/// Holds: BI-016.
#[test]
fn business_before_login_is_answered_twice_and_then_closes() {
    check(
        "up game-1 7
         client ann
         req ann 7:1
         say ann 7:1
         req ann 7:1
         req ann 7:1",
        expect![[r#"
            > up game-1 7
            > client ann
            accept
            > req ann 7:1
            refuse ann call 9 NOT_AUTHED
            report ann Link 1 NOT_AUTHED
            > say ann 7:1
            dropped not_authed
            report ann Link 1 NOT_AUTHED
            > req ann 7:1
            close ann Link 1 NOT_AUTHED
            > req ann 7:1
            dropped session_gone
        "#]],
    );
}

#[test]
fn a_client_that_speaks_first_is_served_and_may_handshake_once_later() {
    check(
        "up game-1 7
         client bot
         ping bot
         auth bot bob 1.2.0.0
         done bot
         handshake bot plain",
        expect![[r#"
            > up game-1 7
            > client bot
            accept
            > ping bot
            keep-alive bot 3
            > auth bot bob 1.2.0.0
            authed bot
            > done bot
            > handshake bot plain
            close bot Link 103 HANDSHAKE_VIOLATION
        "#]],
    );
}

#[test]
fn a_handshake_that_asks_for_nothing_is_answered_and_one_that_asks_for_a_cipher_is_refused() {
    check(
        "client ann
         handshake ann plain
         done ann
         client bob
         handshake bob aes",
        expect![[r#"
            > client ann
            accept
            > handshake ann plain
            handshake ann
            > done ann
            > client bob
            accept
            > handshake bob aes
            close bob Link 104 ENCRYPTION_UNSUPPORTED
        "#]],
    );
}

/// Holds: BI-018, BI-027, BI-041.
#[test]
fn what_no_client_may_send_closes_with_a_code() {
    check(
        "client a
         auth a ann 1.2.3.4.5
         client b
         auth b \u{7}
         login d
         req d 11008:1
         login e
         say e 0:77",
        expect![[r#"
            > client a
            accept
            > auth a ann 1.2.3.4.5
            failed VERSION_INVALID
            refuse a call 1 VERSION_INVALID
            close a Link 135 VERSION_INVALID
            > client b
            accept
            > auth b 
            failed NAME_INVALID
            refuse b call 1 NAME_INVALID
            close b Link 137 NAME_INVALID
            > login d
            authed d
            > req d 11008:1
            close d Link 109 ROLE_VIOLATION
            > login e
            authed e
            > say e 0:77
            close e Link 109 ROLE_VIOLATION
        "#]],
    );
}

/// Holds: BI-009.
#[test]
fn silence_before_login_closes_on_time_and_login_stops_the_clock() {
    check(
        "client a
         wait 5000
         client b
         done b
         login c
         wait 5000
         wait 5000
         wait 100000",
        expect![[r#"
            > client a
            accept
            > wait 5000
            > client b
            accept
            > done b
            > login c
            authed c
            > wait 5000
            close a Link 105 HANDSHAKE_TIMEOUT
            > wait 5000
            close b Link 106 AUTH_TIMEOUT
            > wait 100000
        "#]],
    );
}

/// Holds: Z-67, Z-10.
#[test]
fn a_kick_closes_once_and_the_provider_hears_once() {
    check(
        "up game-1 7
         login ann
         req ann 7:1
         kickby game-1 ann
         kickby game-1 ann
         req ann 7:1
         close ann
         login bob
         req bob 7:1
         kick bob",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > kickby game-1 ann
            close ann Provider 4 again
            broken game-1 ann 118
            done
            > kickby game-1 ann
            refused UNKNOWN_SESSION: session 0.1048576 is not connected here
            > req ann 7:1
            dropped session_gone
            > close ann
            > login bob
            authed bob
            > req bob 7:1
            opened game-1 bob
            dispatch game-1 bob 7:1
            > kick bob
            close bob Link 118 KICKED
            broken game-1 bob 118
        "#]],
    );
}

#[test]
fn a_stopping_linkd_closes_everybody_and_takes_nobody() {
    check(
        "up game-1 7
         login ann
         req ann 7:1
         stop
         client bob",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > stop
            close ann Link 114 SHUTTING_DOWN
            broken game-1 ann 114
            > client bob
            refuse SHUTTING_DOWN
        "#]],
    );
}

/// Time that passes costs those whose deadline has come, not everybody who is connected: of ten thousand silent sessions
/// none is looked at before its time, and one that was heard of is looked at once in that time.
///
/// Holds: Q75.
#[test]
fn a_tick_looks_at_nobody_whose_deadline_has_not_come() {
    let rules = Rules { idle_timeout: Span::secs(60), ..rules() };
    let mut world = World { router: Router::new(rules), ..World::default() };
    for n in 0..10_000 {
        let mut actions = Vec::new();
        let addr = "203.0.113.7:1".parse().unwrap();
        let opened = Event::ClientOpened { token: n, addr, since: world.now, handshaken: true };
        world.router.step(world.now, opened, &mut actions);
        let [Action::Accept { sid, .. }] = actions[..] else { panic!("{actions:?}") };
        world.router.sessions.set_account(sid, Account::new("ann").unwrap(), AppVersion::default());
        if n == 7 {
            world.clients.insert("ann".into(), sid);
        }
    }
    // Those who wait for a login are in an order of their own.
    world.run("wait 10000");
    world.run("ping ann");
    let tick = |world: &mut World, span: Span| {
        world.now += span;
        let (mut actions, before) = (Vec::new(), world.router.sessions.touched.get());
        world.router.step(world.now, Event::Tick, &mut actions);
        (world.router.sessions.touched.get() - before, actions.len())
    };
    for _ in 0..49 {
        assert_eq!(tick(&mut world, Span::secs(1)), (0, 0));
    }
    let (_, closed) = tick(&mut world, Span::secs(1));
    assert_eq!((closed, world.router.sessions()), (9_999, 1));
    world.router.check();
    for _ in 0..9 {
        assert_eq!(tick(&mut world, Span::secs(1)), (0, 0));
    }
    assert_eq!(tick(&mut world, Span::secs(1)).1, 1);
    assert_eq!(world.router.sessions(), 0);
    world.router.check();
}
