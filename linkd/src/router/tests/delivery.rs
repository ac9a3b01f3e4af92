//! Core: what each session is owed, what a Send and a Check say, and what a closed provider still does.

use expect_test::expect;

use super::{check, check_with};

/// A lost provider's open requests are answered in its place, each once and the oldest first; one that was answered, or
/// is another provider's, is not. Nobody is bound to it any more, dynamic modules included.
///
/// Holds: Z-08, Q5, Q24, Q60.
#[test]
fn what_a_lost_provider_owed_is_answered_once() {
    check(
        "up game-1 7 8/dynamic
         up shop-1 9
         login ann
         req ann 7:1
         req ann 7:2
         req ann 8:1
         req ann 9:1
         say ann 7:1
         bindto game-1 8 ann
         reply game-1 ann 7:2
         gone game-1
         req ann 8:1
         gone game-1
         gone shop-1",
        expect![[r#"
            > up game-1 7 8/dynamic
            > up shop-1 9
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > req ann 7:2
            dispatch game-1 ann 7:2
            > req ann 8:1
            dispatch game-1 ann 8:1
            > req ann 9:1
            opened shop-1 ann
            dispatch shop-1 ann 9:1
            > say ann 7:1
            dispatch game-1 ann 7:1
            > bindto game-1 8 ann
            bound, refused []
            > reply game-1 ann 7:2
            forward ann
            > gone game-1
            refuse ann call 9 PROVIDER_BROKEN
            refuse ann call 9 PROVIDER_BROKEN
            report ann Link 4 PROVIDER_BROKEN
            > req ann 8:1
            refuse ann call 9 NO_PROVIDER
            > gone game-1
            > gone shop-1
            refuse ann call 9 PROVIDER_BROKEN
            report ann Link 4 PROVIDER_BROKEN
        "#]],
    );
}

/// Holds: Z-31.
#[test]
fn a_session_has_so_many_open_requests_and_no_more() {
    check_with(
        |rules| rules.owed_max = 2,
        "up game-1 7
         login ann
         req ann 7:1
         req ann 7:1
         req ann 7:2
         say ann 7:1
         reply game-1 ann 7:1
         req ann 7:1
         login bob
         req bob 7:1",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > req ann 7:1
            dispatch game-1 ann 7:1
            > req ann 7:2
            refuse ann call 9 BUSY
            > say ann 7:1
            dispatch game-1 ann 7:1
            > reply game-1 ann 7:1
            forward ann
            > req ann 7:1
            dispatch game-1 ann 7:1
            > login bob
            authed bob
            > req bob 7:1
            opened game-1 bob
            dispatch game-1 bob 7:1
        "#]],
    );
}

#[test]
fn a_counted_send_says_whom_it_missed() {
    check(
        "up game-1 7
         login ann
         login bob
         client eve
         close bob
         sendcall game-1 ann bob eve ann
         send game-1 bob
         sendcall game-1 ann",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > login bob
            authed bob
            > client eve
            accept
            > close bob
            > sendcall game-1 ann bob eve ann
            forward ann
            dropped session_gone
            dropped session_gone
            sent, missed bob eve
            > send game-1 bob
            dropped session_gone
            > sendcall game-1 ann
            forward ann
            sent, missed 
        "#]],
    );
}

#[test]
fn a_check_names_the_sessions_that_are_gone() {
    check(
        "up game-1 7
         login ann
         login bob
         close bob
         check game-1 ann bob nobody
         kickby game-1 ann
         check game-1 ann",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > login bob
            authed bob
            > close bob
            > check game-1 ann bob nobody
            checked, gone bob sid 0.57005
            > kickby game-1 ann
            close ann Provider 4 again
            done
            > check game-1 ann
            checked, gone ann
        "#]],
    );
}

/// From its acknowledgement on nobody new comes, by whatever choice; who is there stays; who was refused is let in when it
/// opens again.
///
/// Holds: Z-33, Z-17, Q11, Q62.
#[test]
fn a_disabled_provider_gets_nobody_new_and_keeps_its_own() {
    check(
        "up game-1 7 8/load 9/feed_full 10/request 11/hash_source
         login ann
         req ann 7:1
         disable game-1
         req ann 7:1
         req ann 8:1
         say ann 9:1
         login bob
         req bob 7:1
         req bob 8:1
         req bob 9:1
         req bob 10:1
         req bob 11:1
         enable game-1
         req bob 7:1",
        expect![[r#"
            > up game-1 7 8/load 9/feed_full 10/request 11/hash_source
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > disable game-1
            done
            > req ann 7:1
            dispatch game-1 ann 7:1
            > req ann 8:1
            dispatch game-1 ann 8:1
            > say ann 9:1
            dispatch game-1 ann 9:1
            > login bob
            authed bob
            > req bob 7:1
            refuse bob call 9 NO_PROVIDER
            > req bob 8:1
            refuse bob call 9 NO_PROVIDER
            > req bob 9:1
            refuse bob call 9 NO_PROVIDER
            > req bob 10:1
            refuse bob call 9 NO_PROVIDER
            > req bob 11:1
            refuse bob call 9 NO_PROVIDER
            > enable game-1
            done
            > req bob 7:1
            opened game-1 bob
            dispatch game-1 bob 7:1
        "#]],
    );
}

/// Holds: Z-33.
#[test]
fn a_provider_that_announces_itself_closed_stays_so_until_it_opens() {
    check(
        "provider game-1
         announces-closed game-1 1
         bind game-1 7
         load game-1 online 3
         login ann
         req ann 7:1
         enable game-1
         req ann 7:1",
        expect![[r#"
            > provider game-1
            > announces-closed game-1 1
            done
            > bind game-1 7
            done
            > load game-1 online 3
            > login ann
            authed ann
            > req ann 7:1
            refuse ann call 9 NO_PROVIDER
            > enable game-1
            done
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
        "#]],
    );
}

/// A request that is refused for overload is answered and the next ones of the stream are, too: nothing of it is lost or
/// moved to another provider.
///
/// Holds: Z-27, Z-28, Z-31, Q2, Q6.
#[test]
fn busy_answers_leave_the_stream_whole() {
    check(
        "up game-1 7
         login ann
         req ann 7:1
         up game-2 7
         load game-1 overload 2
         req ann 7:1
         req ann 7:2
         req ann 7:1
         say ann 7:2
         load game-1 overload 1
         req ann 7:1
         load game-1 overload 0
         req ann 7:1
         reply game-1 ann 7:1",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > up game-2 7
            > load game-1 overload 2
            > req ann 7:1
            refuse ann call 9 BUSY
            > req ann 7:2
            dispatch game-1 ann 7:2
            > req ann 7:1
            refuse ann call 9 BUSY
            > say ann 7:2
            dispatch game-1 ann 7:2
            > load game-1 overload 1
            > req ann 7:1
            dispatch game-1 ann 7:1
            > load game-1 overload 0
            > req ann 7:1
            dispatch game-1 ann 7:1
            > reply game-1 ann 7:1
            forward ann
        "#]],
    );
}
