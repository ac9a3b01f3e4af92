//! Names that change faster than anybody needs to hear of.

use expect_test::expect;

use super::*;

/// What changes is told at once while it is calm. When it is not, changes gather until the next tick, which tells what
/// stands then; somebody who begins to follow meanwhile is told nothing twice that differs.
///
/// Holds: BI-093.
#[test]
fn changes_that_come_too_fast_are_told_together() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s2 open
         s2 hello linkd-1 hostB
         s2 follow m/
         s1 register m/1
         s1 register m/2
         s1 register m/3
         s1 register m/4
         s1 register m/5
         s1 register m/6
         s1 register m/6 m/7
         s3 open
         s3 hello linkd-2 hostC
         s3 follow m/
         s1 register m/8
         +100ms
         +1s
         s1 register",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s2 open
            s2 hello linkd-1 hostB
              s2 welcome epoch 102
            s2 follow m/
              s2 m/ at 2:
            s1 register m/1
              s2 m/ 2->3: game-1:m/1/101
              s1 registered at 3
            s1 register m/2
              s2 m/ 3->4: game-1:m/2/101 -game-1:m/1
              s1 registered at 4
            s1 register m/3
              s2 m/ 4->5: game-1:m/3/101 -game-1:m/2
              s1 registered at 5
            s1 register m/4
              s2 m/ 5->6: game-1:m/4/101 -game-1:m/3
              s1 registered at 6
            s1 register m/5
              s2 m/ 6->7: game-1:m/5/101 -game-1:m/4
              s1 registered at 7
            s1 register m/6
              s1 registered at 8
            s1 register m/6 m/7
              s1 registered at 9
            s3 open
            s3 hello linkd-2 hostC
              s3 welcome epoch 103
            s3 follow m/
              s3 m/ at 10: game-1:m/6/101 game-1:m/7/101
            s1 register m/8
              s1 registered at 11
            +100ms
              s2 m/ 7->12: game-1:m/8/101 -game-1:m/5 -game-1:m/6 -game-1:m/7
              s3 m/ 10->12: game-1:m/8/101 -game-1:m/5 -game-1:m/6 -game-1:m/7
            +1s
            s1 register
              s2 m/ 12->13: -game-1:m/8
              s3 m/ 12->13: -game-1:m/8
              s1 registered at 13
        "#]],
    );
}

/// A name that changes a thousand times a second is told of about ten times a second, what was told last is what stands,
/// and nobody waits longer than to the next tick.
///
/// Holds: BI-093.
#[test]
fn a_flapping_name_is_told_of_about_ten_times_a_second() {
    let mut core = Directory::new(settings(Span::ZERO), Mono::ZERO);
    let mut now = Mono::ZERO;
    run(
        &mut core,
        &mut now,
        "s1 open\ns1 hello game-1 hostA\ns2 open\ns2 hello linkd-1 hostB\ns2 follow m/7",
    );
    let (mut told, mut listed, mut differs) = (Vec::new(), false, 0);
    for ms in 1..=10_000u64 {
        now = Mono::ZERO + Span::millis(ms);
        let mut actions = Vec::new();
        let offers = ms.is_multiple_of(2);
        let services = offers.then(|| service("m/7")).into_iter().collect();
        let message = To::Register(msg::Register { seq: ms, services });
        core.step(now, Event::Said { session: Generation(1), message }, &mut actions);
        if ms.is_multiple_of(100) {
            core.step(now, Event::Tick, &mut actions);
            core.step(now, event(&["s2", "beat"]), &mut actions);
        }
        core.check();
        for (_, message) in actions.iter().flat_map(Action::said).filter(|said| said.0 == Generation(2)) {
            let From::Delta(delta) = message else { continue };
            listed = !delta.added.is_empty();
            told.push(ms);
        }
        differs = if listed == offers { 0 } else { differs + 1 };
        assert!(differs <= 100, "at {ms} ms what stands has not been told for {differs} ms");
    }
    assert!((100..=105).contains(&told.len()), "{} deltas in 10 s", told.len());
    let most =
        told.iter().map(|from| told.iter().filter(|ms| (*from..from + 1_000).contains(ms)).count()).max();
    assert!(most <= Some(15), "{most:?} deltas within a second");
}

/// However many keys change between two ticks, only so many are kept; a message carries no more than a page.
///
/// Holds: BI-093.
#[test]
fn what_waits_is_bounded() {
    let mut catalog = catalog::Catalog::new(200);
    let mut actions = Vec::new();
    catalog.follow(Generation(1), "/", false, &mut actions);
    let node = NodeId::new("game-1").unwrap();
    let mut told = std::collections::BTreeSet::new();
    let mut longest = 0;
    let most = pace::OWED_MAX as u64 + 1_000;
    let mut absorb = |actions: &mut Vec<Action>| {
        for (_, message) in actions.iter().flat_map(Action::said) {
            let From::Delta(delta) = message else { continue };
            longest = longest.max(delta.added.len() + delta.removed.len());
            told.extend(delta.removed.iter().map(|key| key.name.clone()));
        }
        actions.clear();
    };
    for n in 0..most {
        let name = format!("{n}");
        let set = [(name.clone(), service(&name))].into();
        catalog.replace(Mono::ZERO, &node, Epoch(1), set, &mut actions);
        absorb(&mut actions);
    }
    catalog.replace(Mono::ZERO, &node, Epoch(1), Set::new(), &mut actions);
    catalog.check();
    absorb(&mut actions);
    catalog.tick(Mono::ZERO, &mut actions);
    catalog.check();
    absorb(&mut actions);
    assert!(longest <= 100, "a delta of {longest} keys");
    assert_eq!(told.len() as u64, most);
}
