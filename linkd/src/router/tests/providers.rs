//! Core: announce order, clashes, epochs and late closes.

use expect_test::expect;

use super::{World, check};
use crate::router::{Action, Answer};

/// Holds: Z-21, BI-053.
#[test]
fn nothing_is_served_before_its_turn() {
    check(
        "provider game-1
         bind game-1 7
         provider game-2
         announce game-2 2
         subscribe game-2 7
         provider game-3
         announce game-3 3
         announce game-3 3
         provider game-4
         send game-4 nobody",
        expect![[r#"
            > provider game-1
            > bind game-1 7
            close game-1 PROTOCOL_ORDER: announce once, then bind, then subscribe
            > provider game-2
            > announce game-2 2
            done
            > subscribe game-2 7
            close game-2 PROTOCOL_ORDER: announce once, then bind, then subscribe
            > provider game-3
            > announce game-3 3
            done
            > announce game-3 3
            close game-3 PROTOCOL_ORDER: announce once, then bind, then subscribe
            > provider game-4
            > send game-4 nobody
            dropped connection_gone
        "#]],
    );
}

/// Holds: Z-02, Z-04, BI-065.
#[test]
fn two_projects_with_one_module_are_told_apart_by_contract() {
    check(
        "up game-1 7
         provider shop-1
         announce shop-1 9
         bind shop-1 8 7/contract=99
         login ann
         req ann 8:1",
        expect![[r#"
            > up game-1 7
            > provider shop-1
            > announce shop-1 9
            done
            > bind shop-1 8 7/contract=99
            clash CONTRACT_CLASH
            refused CONTRACT_CLASH: module 7 is "m7" of game-1 and "m7" of shop-1: two projects implement it
            > login ann
            authed ann
            > req ann 8:1
            refuse ann call 9 NO_PROVIDER
        "#]],
    );
}

#[test]
fn a_differing_choice_needs_a_higher_version() {
    check(
        "provider game-1
         announce game-1 1 1.0.0.0
         bind game-1 7
         provider game-2
         announce game-2 2 1.0.0.0
         bind game-2 7/load
         provider game-3
         announce game-3 3 1.1.0.0
         bind game-3 7/load
         provider game-4
         announce game-4 4
         bind game-4 9/roundrobin
         bind game-4 11008",
        expect![[r#"
            > provider game-1
            > announce game-1 1 1.0.0.0
            done
            > bind game-1 7
            done
            > provider game-2
            > announce game-2 2 1.0.0.0
            done
            > bind game-2 7/load
            clash CHOICE_CLASH
            refused CHOICE_CLASH: game-1 routes module m7 by HashAccount, game-2 by Load; only a higher app version may change it
            > provider game-3
            > announce game-3 3 1.1.0.0
            done
            > bind game-3 7/load
            done
            > provider game-4
            > announce game-4 4
            done
            > bind game-4 9/roundrobin
            refused BAD_MESSAGE: module m9 has no choice named "roundrobin"
            > bind game-4 11008
            refused BAD_MESSAGE: module id 11008 is the framework's, as are 10000 and 11000 to 11999
        "#]],
    );
}

/// Holds: BI-054, Z-24.
#[test]
fn a_server_id_has_one_live_provider_and_a_node_one_epoch() {
    check(
        "provider game-1 epoch 5
         announce game-1 1
         provider game-2
         announce game-2 1
         provider game-1 epoch 4
         provider game-1 epoch 6
         announce game-1 1",
        expect![[r#"
            > provider game-1 epoch 5
            > announce game-1 1
            done
            > provider game-2
            > announce game-2 1
            refused DUPLICATE_SERVER_ID: server id 1 is game-1's, game-2 can't have it
            > provider game-1 epoch 4
            close game-1 STALE_EPOCH: game-1 was already here with epoch 5, you say 4
            > provider game-1 epoch 6
            close #1 SUPERSEDED: game-1 connected anew
            > announce game-1 1
            done
        "#]],
    );
}

/// The old connection's close comes after the new one has bound: the provider stays selectable.
///
/// Holds: Q7.
#[test]
fn a_late_close_of_the_old_connection_leaves_the_new_one() {
    check(
        "provider game-1 as old
         announce old 1
         bind old 7
         provider game-1 as new
         announce new 1
         bind new 7
         gone old
         login ann
         req ann 7:1",
        expect![[r#"
            > provider game-1 as old
            > announce old 1
            done
            > bind old 7
            done
            > provider game-1 as new
            close old SUPERSEDED: game-1 connected anew
            > announce new 1
            done
            > bind new 7
            done
            > gone old
            > login ann
            authed ann
            > req ann 7:1
            opened new ann
            dispatch new ann 7:1
        "#]],
    );
}

/// Holds: Z-25, BI-061.
#[test]
fn load_reports_that_are_old_or_absurd_are_ignored() {
    check(
        "up game-1 7
         load game-1 seq 50 online 3
         load game-1 seq 50 online 9
         load game-1 seq 49 online 9
         load game-1 seq 51 overload 3",
        expect![[r#"
            > up game-1 7
            > load game-1 seq 50 online 3
            > load game-1 seq 50 online 9
            dropped stale_load
            > load game-1 seq 49 online 9
            dropped stale_load
            > load game-1 seq 51 overload 3
            dropped stale_load
        "#]],
    );
}

/// A provider names all its modules in one call, which is answered in the same step: nobody else is asked about any of
/// them, and they are served from then on.
///
/// Holds: Q61.
#[test]
fn a_hundred_modules_are_taken_in_one_step() {
    let mut world = World::default();
    world.run("provider game-1");
    world.run("announce game-1 1");
    let modules: Vec<_> = (1..=100).map(|id: i32| id.to_string()).collect();
    let actions = world.run(&format!("bind game-1 {}", modules.join(" ")));
    assert!(matches!(actions[..], [Action::Answer { answer: Answer::Done, .. }]), "{actions:?}");
    world.run("load game-1 online 0 max 100");
    world.run("login ann");
    for module in modules {
        let actions = world.run(&format!("say ann {module}:1"));
        assert!(matches!(actions[..], [.., Action::Dispatch { .. }]), "{module}: {actions:?}");
    }
}

/// Two providers that want one module routed differently are told to the operator once, however often the refused one asks
/// again, and are shown until it is served or gone; another pair is another matter.
#[test]
fn a_clash_is_said_once_for_each_pair_and_shown_until_it_is_over() {
    let mut world = World::default();
    for line in
        ["up game-1 7", "provider game-2", "announce game-2 2", "provider game-3", "announce game-3 3"]
    {
        world.run(line);
    }
    let said = |world: &mut World, line: &str| {
        let actions = world.run(line);
        let answered = matches!(actions.last(), Some(Action::Answer { .. }));
        assert!(answered, "{line}: {actions:?}");
        actions.iter().filter(|action| matches!(action, Action::Clash { .. })).count()
    };
    let shown = |world: &World| world.router.summary().clashes.into_iter().collect::<Vec<_>>();
    assert_eq!(said(&mut world, "bind game-2 7/load"), 1);
    assert_eq!(said(&mut world, "bind game-2 7/load"), 0);
    assert_eq!(said(&mut world, "bind game-3 7/load"), 1);
    assert_eq!((said(&mut world, "bind game-2 7/load"), said(&mut world, "bind game-3 7/load")), (0, 0));
    let text = |other: &str| {
        format!(
            "game-1 routes module m7 by HashAccount, {other} by Load; only a higher app version may change it"
        )
    };
    assert_eq!(shown(&world), [text("game-2"), text("game-3")]);
    world.run("gone game-3");
    assert_eq!(shown(&world), [text("game-2")]);
    world.run("gone game-1");
    assert_eq!(said(&mut world, "bind game-2 7/load"), 0);
    assert!(shown(&world).is_empty());
    // What was over and comes again is said again.
    world.run("up game-1 7");
    assert_eq!(
        shown(&world),
        ["game-2 routes module m7 by Load, game-1 by HashAccount; only a higher app version may change it"]
    );
}
