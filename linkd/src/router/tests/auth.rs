//! Who a session is, and who says so.

use expect_test::expect;

use super::*;

/// A second Auth on a connection that is logged in is refused and changes nothing: not its account, not its binds.
///
/// Holds: Q38.
#[test]
fn the_account_of_a_session_never_changes() {
    check(
        "up game-1 7
         login a
         req a 7:1
         auth a other
         req a 7:1",
        expect![[r#"
            > up game-1 7
            > login a
            authed a
            > req a 7:1
            opened game-1 a
            dispatch game-1 a 7:1
            > auth a other
            refuse a call 1 ALREADY_AUTHED
            > req a 7:1
            dispatch game-1 a 7:1
        "#]],
    );
    let mut world = World::default();
    for line in ["up game-1 7", "login a", "auth a other"] {
        world.run(line);
    }
    let opened = world.run("req a 7:1");
    assert!(matches!(&opened[0], Action::Opened { opened, .. } if opened.account == "a"), "{opened:?}");
}

/// Nobody is logged in before the proof was judged, whatever arrives meanwhile.
///
/// Holds: BI-016, Q37.
#[test]
fn a_session_that_is_being_judged_is_not_logged_in() {
    check(
        "judging shell
         up game-1 7
         client a
         auth a ann
         req a 7:1
         ping a
         auth a bob
         judged a ann
         req a 7:1
         judged a bob
         req a 7:1",
        expect![[r#"
            > judging shell
            > up game-1 7
            > client a
            accept
            > auth a ann
            judge a as ann
            > req a 7:1
            refuse a call 9 NOT_AUTHED
            report a Link 1 NOT_AUTHED
            > ping a
            keep-alive a 3
            > auth a bob
            refuse a call 1 AUTH_RUNNING
            > judged a ann
            authed a
            > req a 7:1
            opened game-1 ann
            dispatch game-1 a 7:1
            > judged a bob
            > req a 7:1
            dispatch game-1 a 7:1
        "#]],
    );
}

/// What passes leaves the connection open, anything else ends it.
///
/// Holds: BI-023.
#[test]
fn a_refused_proof_closes_unless_time_may_mend_it() {
    check(
        "judging shell
         client a
         auth a ann
         rejected a -19
         auth a ann
         rejected a 140
         client b
         auth b bob
         rejected b 145
         client c
         auth c carl
         rejected c -10",
        expect![[r#"
            > judging shell
            > client a
            accept
            > auth a ann
            judge a as ann
            > rejected a -19
            failed BUSY
            refuse a call 1 BUSY
            > auth a ann
            judge a as ann
            > rejected a 140
            failed TICKET_INVALID
            refuse a call 1 TICKET_INVALID
            close a Link 140 TICKET_INVALID
            > client b
            accept
            > auth b bob
            judge b as bob
            > rejected b 145
            failed TOO_MANY_ATTEMPTS
            refuse b call 1 TOO_MANY_ATTEMPTS
            close b Link 145 TOO_MANY_ATTEMPTS
            > client c
            accept
            > auth c carl
            judge c as carl
            > rejected c -10
            failed TIMEOUT
            refuse c call 1 TIMEOUT
            close c Link -10 TIMEOUT
        "#]],
    );
}

/// The judgement of a session that ended is nobody's, also when its slot is in use again.
#[test]
fn a_judgement_for_a_session_that_ended_is_ignored() {
    check(
        "judging shell
         client a
         auth a ann
         close a
         client b
         judged a ann
         req b 7:1
         client c
         auth c carl
         wait 10000
         judged c carl",
        expect![[r#"
            > judging shell
            > client a
            accept
            > auth a ann
            judge a as ann
            > close a
            > client b
            accept
            > judged a ann
            > req b 7:1
            refuse b call 9 NOT_AUTHED
            report b Link 1 NOT_AUTHED
            > client c
            accept
            > auth c carl
            judge c as carl
            > wait 10000
            close b Link 105 HANDSHAKE_TIMEOUT
            close c Link 105 HANDSHAKE_TIMEOUT
            > judged c carl
        "#]],
    );
}

/// Only who has announced that it judges is asked, the same one each time, and only while it is fit.
#[test]
fn a_provider_judges_only_if_it_said_so() {
    check(
        "judging provider
         up game-1 7
         client a
         auth a ann
         judges game-2 2
         auth a ann
         rejected a 4
         load game-2 overload 2
         client b
         auth b ann
         load game-2 overload 0
         judges game-3 3
         auth b ann
         rejected b -19
         auth b ann
         gone game-3
         gone game-2
         client c
         auth c ann",
        expect![[r#"
            > judging provider
            > up game-1 7
            > client a
            accept
            > auth a ann
            failed NO_PROVIDER
            refuse a call 1 NO_PROVIDER
            > judges game-2 2
            done
            > auth a ann
            judge a as ann by game-2
            > rejected a 4
            failed PROVIDER_BROKEN
            refuse a call 1 PROVIDER_BROKEN
            close a Link 4 PROVIDER_BROKEN
            > load game-2 overload 2
            > client b
            accept
            > auth b ann
            failed BUSY
            refuse b call 1 BUSY
            > load game-2 overload 0
            > judges game-3 3
            done
            > auth b ann
            judge b as ann by game-3
            > rejected b -19
            failed BUSY
            refuse b call 1 BUSY
            > auth b ann
            judge b as ann by game-3
            > gone game-3
            > gone game-2
            > client c
            accept
            > auth c ann
            failed NO_PROVIDER
            refuse c call 1 NO_PROVIDER
        "#]],
    );
}

/// Names that could forge a log line or the look of another name.
///
/// Holds: BI-027.
#[test]
fn unclean_accounts_are_refused() {
    for account in ["a\0b", "a\nb", "\u{202e}nna", "a\u{2066}b", &"x".repeat(129), &"e\u{301}".repeat(10_000)]
    {
        let mut world = World::default();
        world.run("client a");
        let said = world.auth("a", account, "");
        let code = &wire::code::NAME_INVALID;
        assert!(matches!(&said[0], Action::AuthFailed { code: named, .. } if *named == code), "{said:?}");
        assert!(!format!("{said:?}").contains(account));
    }
}
