//! What a node leaves behind goes on somewhere else.

use super::*;

/// The first declines, then nobody is left to ask, the first dies while it is asked, the second takes it.
const IN_TURN: &str = "s1 open
         s1 hello game-1 hostA
         s1 names timers
         s2 open
         s2 hello game-2 hostB
         s2 names timers mail
         s3 open
         s3 hello game-3 hostC
         s3 names timers
         s1 bye
         +10s
         s2 beat 1
         s3 beat 1
         +10s
         s2 beat 2
         s3 beat 2
         +9s
         s2 beat 3
         s3 beat 3
         +1s
         s2 leaves 1
         s3 leaves 9
         s2 takes 2
         +10s
         s2 beat 4
         s3 beat 4
         +5s
         s3 beat 5
         s2 close
         s2 takes 3
         +10s
         s3 beat 6
         s3 takes 4
         s3 takes 4
         +10s";

/// A node that is gone for good: others are asked one after another until one takes over.
#[test]
fn others_are_asked_in_turn_until_one_takes_over() {
    check(
        IN_TURN,
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 names timers
            s2 open
            s2 hello game-2 hostB
              s2 welcome epoch 102
            s2 names timers mail
            s3 open
            s3 hello game-3 hostC
              s3 welcome epoch 103
            s3 names timers
            s1 bye
              s1 closed
            +10s
            s2 beat 1
              s2 beat 1
            s3 beat 1
              s3 beat 1
            +10s
            s2 beat 2
              s2 beat 2
            s3 beat 2
              s3 beat 2
            +9s
            s2 beat 3
              s2 beat 3
            s3 beat 3
              s3 beat 3
            +1s
              s2 asked 1: timers of game-1/101
            s2 leaves 1
              s3 asked 2: timers of game-1/101
            s3 leaves 9
            s2 takes 2
            +10s
            s2 beat 4
              s2 beat 4
            s3 beat 4
              s3 beat 4
            +5s
              s2 asked 3: timers of game-1/101
            s3 beat 5
              s3 beat 5
            s2 close
            s2 takes 3
            +10s
              s3 asked 4: timers of game-1/101
            s3 beat 6
              s3 beat 6
            s3 takes 4
            s3 takes 4
            +10s
        "#]],
    );
}

/// game-1 comes back within the 30 s, and says at its end that it leaves nothing.
const BACK_IN_TIME: &str = "s1 open
         s1 hello game-1 hostA
         s1 names timers
         s2 open
         s2 hello game-2 hostB
         s2 names timers
         s3 open
         s3 hello linkd-1 hostC
         s1 bye
         s3 bye
         +10s
         s2 beat 1
         +10s
         s2 beat 2
         +9s
         s2 beat 3
         s4 open
         s4 hello game-1 hostA
         s4 names timers
         +10s
         s2 beat 4
         s4 names
         s4 bye
         +10s
         s2 beat 5
         +10s
         s2 beat 6
         +10s
         s2 beat 7
         +10s";

/// Holds: Q23, Q26.
#[test]
fn who_comes_back_in_time_keeps_its_own_and_who_names_nothing_leaves_nothing() {
    check(
        BACK_IN_TIME,
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 names timers
            s2 open
            s2 hello game-2 hostB
              s2 welcome epoch 102
            s2 names timers
            s3 open
            s3 hello linkd-1 hostC
              s3 welcome epoch 103
            s1 bye
              s1 closed
            s3 bye
              s3 closed
            +10s
            s2 beat 1
              s2 beat 1
            +10s
            s2 beat 2
              s2 beat 2
            +9s
            s2 beat 3
              s2 beat 3
            s4 open
            s4 hello game-1 hostA
              s4 welcome epoch 104
            s4 names timers
            +10s
            s2 beat 4
              s2 beat 4
            s4 names
            s4 bye
              s4 closed
            +10s
            s2 beat 5
              s2 beat 5
            +10s
            s2 beat 6
              s2 beat 6
            +10s
            s2 beat 7
              s2 beat 7
            +10s
        "#]],
    );
}

#[test]
fn names_are_bounded() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s1 names a b c",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 names a b c
              s1 LIMIT: a node names up to 2 offline ids of 1 to 32 bytes
              s1 closed
        "#]],
    );
}

/// The start that was given up is back and has not yet said again what it runs: nobody else is asked for that. When it is
/// given up once more, it has the whole time anew.
#[test]
fn a_start_that_is_back_has_left_nothing() {
    let mut core = Directory::new(settings(Span::ZERO), Mono::ZERO);
    let mut now = Mono::ZERO;
    let until_gone = "s1 open
         s1 hello game-1 hostA
         s1 names timers
         s2 open
         s2 hello game-2 hostB
         s2 names timers
         s1 close
         +14s
         s2 beat 1
         +10s
         s2 beat 2
         +10s
         s2 beat 3
         s3 open
         s3 hello game-1 hostA 101
         +10s
         s2 beat 4
         +5s
         s2 beat 5
         +10s
         s2 beat 6
         +10s
         s2 beat 7
         +9s
         s2 beat 8";
    let quiet = run(&mut core, &mut now, until_gone);
    assert!(!quiet.contains("asked"), "{quiet}");
    let asked = run(&mut core, &mut now, "+1s");
    assert!(asked.contains("s2 asked 1: timers of game-1/101"), "{asked}");
}
