//! Core: versions, regions, groups of providers, and what a gateway does not take.

use expect_test::expect;

use super::{World, check, check_with};
use crate::router::Narrow;

/// The first number decides. 0 on either side is "not stated" and matches everybody.
///
/// Holds: Z-34.
#[test]
fn a_login_goes_to_its_main_version_and_version_0_goes_anywhere() {
    check(
        "provider old-1
         announce old-1 1 1.9.0.0
         bind old-1 7
         provider new-1
         announce new-1 2 2.0.0.0
         bind new-1 7
         client ann
         auth ann ann 1.0.0.0
         req ann 7:1
         client bob
         auth bob bob 2.5.0.0
         req bob 7:1
         client eve
         auth eve eve 3.0.0.0
         req eve 7:1
         login any
         req any 7:1
         provider all-1
         announce all-1 3
         bind all-1 7
         req eve 7:1",
        expect![[r#"
            > provider old-1
            > announce old-1 1 1.9.0.0
            done
            > bind old-1 7
            done
            > provider new-1
            > announce new-1 2 2.0.0.0
            done
            > bind new-1 7
            done
            > client ann
            accept
            > auth ann ann 1.0.0.0
            authed ann
            > req ann 7:1
            opened old-1 ann
            dispatch old-1 ann 7:1
            > client bob
            accept
            > auth bob bob 2.5.0.0
            authed bob
            > req bob 7:1
            opened new-1 bob
            dispatch new-1 bob 7:1
            > client eve
            accept
            > auth eve eve 3.0.0.0
            authed eve
            > req eve 7:1
            refuse eve call 9 VERSION_NOT_SERVED
            > login any
            authed any
            > req any 7:1
            opened new-1 any
            dispatch new-1 any 7:1
            > provider all-1
            > announce all-1 3
            done
            > bind all-1 7
            done
            > req eve 7:1
            opened all-1 eve
            dispatch all-1 eve 7:1
        "#]],
    );
}

/// Holds: Z-17.
#[test]
fn providers_of_the_same_region_are_preferred_as_long_as_one_is_eligible() {
    check_with(
        |rules| rules.region = "eu".into(),
        "provider us-1
         announce us-1 1 0 region us
         bind us-1 7/load
         provider eu-1
         announce eu-1 2 0 region eu
         bind eu-1 7/load
         load us-1 online 0
         load eu-1 online 99
         login ann
         req ann 7:1
         disable eu-1
         login bob
         req bob 7:1",
        expect![[r#"
            > provider us-1
            > announce us-1 1 0 region us
            done
            > bind us-1 7/load
            done
            > provider eu-1
            > announce eu-1 2 0 region eu
            done
            > bind eu-1 7/load
            done
            > load us-1 online 0
            > load eu-1 online 99
            > login ann
            authed ann
            > req ann 7:1
            opened eu-1 ann
            dispatch eu-1 ann 7:1
            > disable eu-1
            done
            > login bob
            authed bob
            > req bob 7:1
            opened us-1 bob
            dispatch us-1 bob 7:1
        "#]],
    );
}

/// Groups register under prefixes of their own; each is routed by its modules, whatever came first.
///
/// Holds: Z-03, Z-04, Q59.
#[test]
fn two_groups_stand_beside_each_other() {
    let mut world = World::default();
    for (node, server, prefix, module) in [("game-1", 1, "game/", 7), ("chat-1", 2, "chat/", 8)] {
        world.run(&format!("provider {node}"));
        world.run(&format!("announce {node} {server} group {prefix}"));
        world.run(&format!("bind {node} {module}"));
    }
    world.run("login ann");
    for module in [7, 8, 7] {
        let actions = world.run(&format!("req ann {module}:1"));
        let sent = actions.iter().any(|action| matches!(action, crate::router::Action::Dispatch { .. }));
        assert!(sent, "module {module}: {actions:?}");
    }
    let groups: Vec<_> = world.router.summary().groups.into_iter().collect();
    assert_eq!(groups, ["chat/", "game/"]);
}

#[test]
fn a_gateway_takes_a_module_only_from_those_it_names() {
    let only = |rules: &mut crate::router::Rules| {
        rules.narrow = Narrow(["m7", "m9"].map(|name| (name.to_owned(), vec!["game-*".to_owned()])).into());
    };
    check_with(
        only,
        "up shop-1 7 8
         login ann
         req ann 8:1
         req ann 7:1
         up game-1 7 8
         req ann 7:1
         req ann 8:1
         up hall-1 9/dynamic
         bindto hall-1 9 ann",
        expect![[r#"
            > up shop-1 7 8
            > login ann
            authed ann
            > req ann 8:1
            opened shop-1 ann
            dispatch shop-1 ann 8:1
            > req ann 7:1
            refuse ann call 9 NO_PROVIDER
            > up game-1 7 8
            > req ann 7:1
            opened game-1 ann
            dispatch game-1 ann 7:1
            > req ann 8:1
            dispatch shop-1 ann 8:1
            > up hall-1 9/dynamic
            > bindto hall-1 9 ann
            refused NOT_OWNER: this linkd takes module 9 from other providers; see linkd.modules
        "#]],
    );
}

/// What `lookup` shows.
#[test]
fn a_session_is_found_by_account_and_number() {
    let mut world = World::default();
    for line in ["up game-1 7", "login ann", "login bob", "req ann 7:1", "role game-1 ann 4"] {
        world.run(line);
    }
    let who = crate::router::Who::Account(base::Account::new("ann").unwrap());
    let found = world.router.lookup(&who);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].sid, found[0].owed), (world.sid("ann"), 1));
    assert_eq!(found[0].role, Some(base::Role(4)));
    assert_eq!(found[0].binds, [(base::ModuleId(7), base::NodeId::new("game-1").unwrap())]);
    let by_sid = world.router.lookup(&crate::router::Who::Sid(world.sid("bob")));
    assert_eq!(by_sid[0].account.as_str(), "bob");
    assert!(world.router.lookup(&crate::router::Who::Sid(base::LinkSid(5))).is_empty());
}
