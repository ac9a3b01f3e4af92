//! Claims: one key, one winner.

use std::collections::BTreeMap;

use expect_test::expect;
use proptest::prelude::*;

use super::*;

/// Holds: BI-022.
#[test]
fn the_first_claim_wins_and_an_equal_one_again_is_no_second() {
    check(
        "s1 open
         s1 hello linkd-1 hostA
         s2 open
         s2 hello linkd-2 hostB
         s1 claim t/7 one 5000
         s2 claim t/7 two 5000
         s1 claim t/7 one 1000
         +4999ms
         s2 claim t/7 two 5000
         +1ms
         s2 claim t/7 two 5000
         s1 claim t/7 one 5000",
        expect![[r#"
            s1 open
            s1 hello linkd-1 hostA
              s1 welcome epoch 101
            s2 open
            s2 hello linkd-2 hostB
              s2 welcome epoch 102
            s1 claim t/7 one 5000
              s1 holds it
            s2 claim t/7 two 5000
              s2 holds it not: TAKEN: the key is held for another value
            s1 claim t/7 one 1000
              s1 holds it
            +4999ms
            s2 claim t/7 two 5000
              s2 holds it not: TAKEN: the key is held for another value
            +1ms
            s2 claim t/7 two 5000
              s2 holds it
            s1 claim t/7 one 5000
              s1 holds it not: TAKEN: the key is held for another value
        "#]],
    );
}

#[test]
fn a_claim_ends_with_its_node_only_when_it_was_meant_to() {
    check(
        "s1 open
         s1 hello linkd-1 hostA
         s2 open
         s2 hello linkd-2 hostB
         s1 claim ticket one 60000
         s1 claim owner one 60000 own
         s1 close
         s2 claim owner two 60000 own
         s3 open
         s3 hello linkd-1 hostA 101
         s3 claim owner one 60000 own
         s3 bye
         s2 claim owner two 60000 own
         s2 claim ticket two 60000
         s4 open
         s4 hello linkd-2 hostB2 0
         +1s
         s4 claim owner three 1000 own",
        expect![[r#"
            s1 open
            s1 hello linkd-1 hostA
              s1 welcome epoch 101
            s2 open
            s2 hello linkd-2 hostB
              s2 welcome epoch 102
            s1 claim ticket one 60000
              s1 holds it
            s1 claim owner one 60000 own
              s1 holds it
            s1 close
            s2 claim owner two 60000 own
              s2 holds it not: TAKEN: the key is held for another value
            s3 open
            s3 hello linkd-1 hostA 101
              s3 welcome epoch 101
            s3 claim owner one 60000 own
              s3 holds it
            s3 bye
              s3 closed
            s2 claim owner two 60000 own
              s2 holds it
            s2 claim ticket two 60000
              s2 holds it not: TAKEN: the key is held for another value
            s4 open
            s4 hello linkd-2 hostB2 0
              s2 ping 1
            +1s
              s2 STALE_EPOCH: another session of node linkd-2 has taken this one's place
              s2 closed
              s4 welcome epoch 103
            s4 claim owner three 1000 own
              s4 holds it
        "#]],
    );
}

/// A directory that forgot everything grants nothing new before those who hold something could say so.
///
/// Holds: BI-022.
#[test]
fn while_warming_only_what_was_held_before_is_accepted() {
    let mut core = Directory::new(settings(Span::secs(15)), Mono::ZERO);
    let script = "s1 open
         s1 hello linkd-1 hostA 50
         s2 open
         s2 hello linkd-2 hostB 51
         s2 claim t/7 two 60000
         s1 claim t/7 one 60000 again
         s1 claim t/7 one 60000
         s2 claim t/7 two 60000
         s2 claim t/7 two 60000 again
         +14s
         s1 beat 1
         s2 beat 1
         +1s
         s2 claim t/8 two 60000";
    expect![[r#"
        s1 open
        s1 hello linkd-1 hostA 50
          s1 welcome epoch 50 warming
        s2 open
        s2 hello linkd-2 hostB 51
          s2 welcome epoch 51 warming
        s2 claim t/7 two 60000
          s2 holds it not: BUSY: the directory has just started; somebody may hold the key
        s1 claim t/7 one 60000 again
        s1 claim t/7 one 60000
          s1 holds it
        s2 claim t/7 two 60000
          s2 holds it not: TAKEN: the key is held for another value
        s2 claim t/7 two 60000 again
          s2 holds it not: TAKEN: the key is held for another value
        +14s
        s1 beat 1
          s1 beat 1
        s2 beat 1
          s2 beat 1
        +1s
          s1 warm at 2
          s2 warm at 2
        s2 claim t/8 two 60000
          s2 holds it
    "#]]
    .assert_eq(&run(&mut core, &mut Mono::ZERO.clone(), script));
}

/// At the bound nothing is forgotten to make room: a used ticket stays used.
#[test]
fn bounds_refuse_and_change_nothing() {
    let key = "k".repeat(33);
    let value = "v".repeat(257);
    check(
        &format!(
            "s1 open
             s1 hello linkd-1 hostA
             s1 claim {key} one 1000
             s1 claim a {value} 1000
             s1 claim a one 0
             s1 claim a one 600001
             s1 claim a one 1000
             s1 claim b one 2000
             s1 claim c one 2000
             s1 claim d one 2000
             s1 claim e one 2000
             s1 claim a one 1500
             +1500ms
             s1 claim e one 2000"
        ),
        expect![[r#"
            s1 open
            s1 hello linkd-1 hostA
              s1 welcome epoch 101
            s1 claim kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk one 1000
              s1 holds it not: LIMIT: a claim's key: 33, at most 32
            s1 claim a vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv 1000
              s1 holds it not: LIMIT: a claim's value: 257, at most 256
            s1 claim a one 0
              s1 holds it not: BAD_MESSAGE: a claim needs a time of more than 0 ms
            s1 claim a one 600001
              s1 holds it not: LIMIT: a claim's time: 600.001s, at most 600s
            s1 claim a one 1000
              s1 holds it
            s1 claim b one 2000
              s1 holds it
            s1 claim c one 2000
              s1 holds it
            s1 claim d one 2000
              s1 holds it
            s1 claim e one 2000
              s1 holds it not: BUSY: this directory holds 4 claims
            s1 claim a one 1500
              s1 holds it
            +1500ms
            s1 claim e one 2000
              s1 holds it
        "#]],
    );
}

#[derive(Debug, Clone)]
enum Step {
    Claim { session: u64, key: u8, value: u8, ms: u64, own: bool },
    Wait(u64),
    Bye(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1..4u64, 0..5u8, 0..3u8, 1..4_000u64, any::<bool>())
            .prop_map(|(session, key, value, ms, own)| Step::Claim { session, key, value, ms, own }),
        2 => (1..2_500u64).prop_map(Step::Wait),
        1 => (1..4u64).prop_map(Step::Bye),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// Whatever nodes claim, and whoever of them leaves: while somebody was told that he holds a key, nobody is told
    /// that he holds it for another value.
    ///
    /// Holds: BI-022.
    #[test]
    fn one_key_one_winner(steps in steps()) {
        let mut core = Directory::new(settings(Span::ZERO), Mono::ZERO);
        let mut now = Mono::ZERO;
        // Sessions by the strategy's three nodes, and what each key is held for: value, end, and whose end ends it.
        let mut sessions = BTreeMap::new();
        let mut next = 0;
        let mut held: BTreeMap<u8, (u8, Mono, Option<u64>)> = BTreeMap::new();
        for step in steps {
            let mut actions = Vec::new();
            match step {
                Step::Wait(ms) => {
                    pass(&mut core, &mut now, Span::millis(ms), &mut actions);
                    for session in sessions.values() {
                        let message = To::Heartbeat(msg::Heartbeat { seq: 1 });
                        core.step(now, Event::Said { session: *session, message }, &mut actions);
                    }
                }
                Step::Bye(node) => {
                    if let Some(session) = sessions.remove(&node) {
                        core.step(now, Event::Said { session, message: To::Bye(msg::Bye {}) }, &mut actions);
                        held.retain(|_, (_, _, owner)| *owner != Some(node));
                    }
                }
                Step::Claim { session: node, key, value, ms, own } => {
                    let session = *sessions.entry(node).or_insert_with(|| {
                        next += 1;
                        let session = Generation(next);
                        core.step(now, Event::Opened { session, loopback: true }, &mut Vec::new());
                        let hello = hello(&format!("n{node}"), "h", 0, 0);
                        core.step(now, Event::Said { session, message: hello }, &mut Vec::new());
                        session
                    });
                    let claim = msg::Claim {
                        seq: 9,
                        key: key.to_string(),
                        value: vec![value].into(),
                        ttl_ms: u32::try_from(ms).unwrap(),
                        outlives_node: !own,
                        replay: false,
                    };
                    core.step(now, Event::Said { session, message: To::Claim(claim) }, &mut actions);
                    let won = actions.iter().any(|action| {
                        matches!(action, Action::Send { message: From::Claimed(c), .. } if c.code == 0)
                    });
                    held.retain(|_, (_, until, _)| *until > now);
                    let before = held.get(&key).copied();
                    let may = before.map_or(held.len() < 4, |(other, ..)| other == value);
                    prop_assert_eq!(won, may, "key {} value {}, before {:?}", key, value, before);
                    if won {
                        let until = now + Span::millis(ms);
                        let (until, owner) = match before {
                            Some((_, old, owner)) => (until.max(old), owner.and(own.then_some(node))),
                            None => (until, own.then_some(node)),
                        };
                        held.insert(key, (value, until, owner));
                    }
                }
            }
            core.check();
        }
    }
}
