//! Core: static and dynamic binds, keys, and what the end of either side means.

use expect_test::expect;

use super::check;

/// Holds: Z-05, Z-06.
#[test]
fn the_first_request_binds_all_static_modules_of_one_provider() {
    check(
        "up game-1 7 8
         login ann
         req ann 7:1
         req ann 8:1
         say ann 7:1",
        expect![[r#"
            > up game-1 7 8
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > req ann 8:1
            dispatch game-1 ann 8:1
            > say ann 7:1
            dispatch game-1 ann 7:1
        "#]],
    );
}

/// Bound to game-1 for 7; the first request for 9, which only game-2 has, must not move 7 there.
///
/// Holds: Q58.
#[test]
fn existing_binds_win_when_another_provider_is_chosen_for_another_module() {
    check(
        "up game-1 7
         login ann
         req ann 7:1
         up game-2 7 9
         req ann 9:1
         req ann 7:1",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > up game-2 7 9
            > req ann 9:1
            opened game-2 ann
            dispatch game-2 ann 9:1
            > req ann 7:1
            dispatch game-1 ann 7:1
        "#]],
    );
}

/// Holds: Z-09, BI-057, BI-058.
#[test]
fn a_dynamic_bind_holds_until_its_owner_unbinds() {
    check(
        "up game-1 7/dynamic
         up game-2 7/dynamic
         login ann
         bindto game-2 7 ann
         req ann 7:1
         unbind game-1 7 ann
         req ann 7:1
         unbind game-2 7 ann
         bindto game-1 7 nobody
         bindto game-1 7 ann
         req ann 7:1",
        expect![[r#"
            > up game-1 7/dynamic
            > up game-2 7/dynamic
            > login ann
            authed ann
            > bindto game-2 7 ann
            opened game-2 ann
            bound, refused []
            > req ann 7:1
            dispatch game-2 ann 7:1
            > unbind game-1 7 ann
            bound, refused [164]
            > req ann 7:1
            dispatch game-2 ann 7:1
            > unbind game-2 7 ann
            bound, refused []
            > bindto game-1 7 nobody
            bound, refused [168]
            > bindto game-1 7 ann
            opened game-1 ann
            bound, refused []
            > req ann 7:1
            dispatch game-1 ann 7:1
        "#]],
    );
}

/// The same key goes to the same provider for everybody, whatever they are bound to: a guild by its number.
///
/// Holds: Z-47.
#[test]
fn a_keyed_protocol_has_one_home_per_key() {
    check(
        "up game-1 7/keyed/dynamic
         up game-2 7/keyed/dynamic
         login ann
         login bob
         req ann 7:1 attic
         req bob 7:1 attic
         req ann 7:1 cellar
         req bob 7:1 cellar
         bindto game-1 7 bob
         req bob 7:1 cellar
         req bob 7:1 attic",
        expect![[r#"
            > up game-1 7/keyed/dynamic
            > up game-2 7/keyed/dynamic
            > login ann
            authed ann
            > login bob
            authed bob
            > req ann 7:1 attic
            opened game-2 ann
            dispatch game-2 ann 7:1
            > req bob 7:1 attic
            opened game-2 bob
            dispatch game-2 bob 7:1
            > req ann 7:1 cellar
            dispatch game-2 ann 7:1
            > req bob 7:1 cellar
            dispatch game-2 bob 7:1
            > bindto game-1 7 bob
            opened game-1 bob
            bound, refused []
            > req bob 7:1 cellar
            dispatch game-2 bob 7:1
            > req bob 7:1 attic
            dispatch game-2 bob 7:1
        "#]],
    );
}

/// Holds: Z-08.
#[test]
fn when_the_bound_provider_ends_the_session_is_told_once_and_chooses_anew() {
    check(
        "up game-1 7 8
         login ann
         req ann 7:1
         up game-2 7 8
         gone game-1
         req ann 7:1
         close ann",
        expect![[r#"
            > up game-1 7 8
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > up game-2 7 8
            > gone game-1
            refuse ann call 9 PROVIDER_BROKEN
            report ann Link 4 PROVIDER_BROKEN
            > req ann 7:1
            opened game-2 ann
            dispatch game-2 ann 7:1
            > close ann
            broken game-2 ann 0
        "#]],
    );
}

#[test]
fn an_unserved_module_keeps_its_binds_and_gets_no_new_ones() {
    check(
        "up game-1 7
         login ann
         req ann 7:1
         unserve game-1 7
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
            > unserve game-1 7
            done
            > req ann 7:1
            dispatch game-1 ann 7:1
            > login bob
            authed bob
            > req bob 7:1
            refuse bob call 9 NO_PROVIDER
        "#]],
    );
}

#[test]
fn roles_reach_the_other_providers_that_know_the_session() {
    check(
        "up game-1 7
         up game-2 8
         login ann
         req ann 7:1
         req ann 8:1
         role game-1 ann 42
         role game-1 ann none
         close ann
         role game-1 ann 42",
        expect![[r#"
            > up game-1 7
            > up game-2 8
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > req ann 8:1
            opened game-2 ann
            dispatch game-2 ann 8:1
            > role game-1 ann 42
            role game-2 ann 42
            > role game-1 ann none
            role game-2 ann none
            > close ann
            broken game-1 ann 0
            broken game-2 ann 0
            > role game-1 ann 42
            dropped session_gone
        "#]],
    );
}

#[test]
fn sends_reach_live_sessions_and_the_rest_is_counted() {
    check(
        "up game-1 7
         login ann
         client bob
         send game-1 ann bob nobody ann
         auth bob bob 2.0.0.0
         broadcast game-1 0
         fan
         broadcast game-1 2.0.0.0
         fan
         gone game-1
         send game-1 ann",
        expect![[r#"
            > up game-1 7
            > login ann
            authed ann
            > client bob
            accept
            > send game-1 ann bob nobody ann
            forward ann
            dropped session_gone
            dropped session_gone
            > auth bob bob 2.0.0.0
            authed bob
            > broadcast game-1 0
            keep 1
            > fan
            forward ann kept 1
            forward bob kept 1
            forget 1
            broadcast, sent 2 shed 0
            > broadcast game-1 2.0.0.0
            keep 2
            > fan
            forward ann kept 2
            forward bob kept 2
            forget 2
            broadcast, sent 2 shed 0
            > gone game-1
            > send game-1 ann
            dropped connection_gone
        "#]],
    );
}

/// Found by simulation: a request of an unbound dynamic module was at the provider when it ended.
///
/// Holds: Z-08.
#[test]
fn whoever_only_had_a_request_at_a_lost_provider_is_told_too() {
    check(
        "up game-1 7/dynamic
         login ann
         req ann 7:1
         gone game-1",
        expect![[r#"
            > up game-1 7/dynamic
            > login ann
            authed ann
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > gone game-1
            refuse ann call 9 PROVIDER_BROKEN
            report ann Link 4 PROVIDER_BROKEN
        "#]],
    );
}
