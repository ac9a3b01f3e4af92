//! Who is admitted under a node id, and under which epoch.

use expect_test::expect;

use super::*;

/// Holds: H-10, Z-24, BI-112.
#[test]
fn a_second_start_is_refused_while_the_first_answers() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s2 open
         s2 hello game-1 hostB
         s3 open
         s3 hello game-1 hostC
         s1 pong 1
         s2 beat 1
         +5s",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s2 open
            s2 hello game-1 hostB
              s1 ping 1
            s3 open
            s3 hello game-1 hostC
              s3 DUPLICATE_NODE: node game-1 is alive on hostA; a second start on hostC is refused
              s3 closed
            s1 pong 1
              s2 DUPLICATE_NODE: node game-1 is alive on hostA; a second start on hostB is refused
              s2 closed
            s2 beat 1
            +5s
        "#]],
    );
}

/// Holds: H-09, Z-24.
#[test]
fn a_second_start_is_admitted_when_the_first_is_silent() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s1 register m/7
         s9 open
         s9 hello watcher hostW
         s9 follow /
         s2 open
         s2 hello game-1 hostB
         +999ms
         +1ms
         s1 pong 1
         s1 close
         s2 register m/8",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 register m/7
              s1 registered at 2
            s9 open
            s9 hello watcher hostW
              s9 welcome epoch 102
            s9 follow /
              s9 / at 3 more: game-1:_node@hostA:7700/101
              s9 / at 3: watcher:_node@hostW:7700/102 game-1:m/7/101
            s2 open
            s2 hello game-1 hostB
              s1 ping 1
            +999ms
            +1ms
              s1 STALE_EPOCH: another session of node game-1 has taken this one's place
              s1 closed
              s2 welcome epoch 103
              s9 / 3->4: game-1:_node@hostB:7700/103 -game-1:m/7
            s1 pong 1
            s1 close
            s2 register m/8
              s9 / 4->5: game-1:m/8/103
              s2 registered at 5
        "#]],
    );
}

/// Holds: H-09.
#[test]
fn a_second_start_is_admitted_at_once_when_the_first_is_closed() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s2 open
         s2 hello game-1 hostB
         s1 close
         s2 close
         s3 open
         s3 hello game-1 hostB",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s2 open
            s2 hello game-1 hostB
              s1 ping 1
            s1 close
              s2 welcome epoch 102
            s2 close
            s3 open
            s3 hello game-1 hostB
              s3 welcome epoch 103
        "#]],
    );
}

/// Holds: Q7, Q22, Q43.
#[test]
fn a_late_close_of_the_old_session_leaves_the_new_one() {
    check(
        "s9 open
         s9 hello watcher hostW
         s9 follow m/7
         s1 open
         s1 hello game-1 hostA
         s1 register m/7
         s2 open
         s2 hello game-1 hostA 102
         s1 register m/8
         s1 bye
         s1 close
         +10s
         s2 beat 1
         s9 beat 1
         +14s
         s9 beat 2
         s2 close
         +15s",
        expect![[r#"
            s9 open
            s9 hello watcher hostW
              s9 welcome epoch 101
            s9 follow m/7
              s9 m/7 at 1:
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 102
            s1 register m/7
              s9 m/7 1->3: game-1:m/7/102
              s1 registered at 3
            s2 open
            s2 hello game-1 hostA 102
              s1 STALE_EPOCH: another session of node game-1 has taken this one's place
              s1 closed
              s2 welcome epoch 102
            s1 register m/8
            s1 bye
            s1 close
            +10s
            s2 beat 1
              s2 beat 1
            s9 beat 1
              s9 beat 1
            +14s
            s9 beat 2
              s9 beat 2
            s2 close
            +15s
              s9 m/7 3->4: -game-1:m/7
              s9 TIMEOUT: nothing was heard from node watcher for 15s
              s9 closed
        "#]],
    );
}

/// Holds: H-16, Z-24.
#[test]
fn the_newer_epoch_wins_after_a_restart_that_forgot() {
    check(
        "s1 open
         s1 hello game-1 hostA 500
         s2 open
         s2 hello game-1 hostB 700
         s3 open
         s3 hello game-1 hostA 500
         s2 pong 1
         s4 open
         s4 hello fresh hostD",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA 500
              s1 welcome epoch 500
            s2 open
            s2 hello game-1 hostB 700
              s1 STALE_EPOCH: another session of node game-1 has taken this one's place
              s1 closed
              s2 welcome epoch 700
            s3 open
            s3 hello game-1 hostA 500
              s2 ping 1
            s2 pong 1
              s3 DUPLICATE_NODE: node game-1 is alive on hostB; a second start on hostA is refused
              s3 closed
            s4 open
            s4 hello fresh hostD
              s4 welcome epoch 1049177
        "#]],
    );
}

/// A directory without a store, whose clock was set back: what it gave before it heard of larger epochs is taken back.
///
/// Holds: H-09.
#[test]
fn an_epoch_given_below_one_that_was_seen_is_taken_back() {
    let mut core = Directory::new(settings(Span::secs(15)), Mono::ZERO);
    let mut now = Mono::ZERO;
    let script = "s1 open
         s1 hello game-1 hostA
         s2 open
         s2 hello linkd-1 hostB 90
         s3 open
         s3 hello linkd-2 hostC 800 900
         s1 close
         s4 open
         s4 hello game-1 hostA 101
         +10s
         s4 beat 1
         +5s
         s5 open
         s5 hello linkd-3 hostD 2000 3000
         s4 beat 2";
    expect![[r#"
        s1 open
        s1 hello game-1 hostA
          s1 welcome epoch 101 warming
        s2 open
        s2 hello linkd-1 hostB 90
          s2 welcome epoch 90 warming
        s3 open
        s3 hello linkd-2 hostC 800 900
          s1 STALE_EPOCH: this directory has restarted and gave node game-1 an epoch too small; join again
          s1 closed
          s3 welcome epoch 800 warming
        s1 close
        s4 open
        s4 hello game-1 hostA 101
          s4 welcome epoch 1049577 warming
        +10s
        s4 beat 1
          s4 beat 1
        +5s
          s2 TIMEOUT: nothing was heard from node linkd-1 for 15s
          s2 closed
          s3 TIMEOUT: nothing was heard from node linkd-2 for 15s
          s3 closed
          s4 warm at 7
        s5 open
        s5 hello linkd-3 hostD 2000 3000
          s5 welcome epoch 2000
        s4 beat 2
          s4 beat 2
    "#]]
    .assert_eq(&run(&mut core, &mut now, script));
}

/// A directory that slept through the time in which others come back gives it to them when it is awake: nothing that
/// it said before it has heard them is final.
///
/// Holds: H-09.
#[test]
fn a_directory_that_slept_goes_on_warming() {
    let mut core = Directory::new(settings(Span::secs(15)), Mono::ZERO);
    let script = "pause 16s
         s1 open
         s1 hello game-1 hostA
         s2 open
         s2 hello linkd-1 hostB 800 900";
    expect![[r#"
        pause 16s
        s1 open
        s1 hello game-1 hostA
          s1 welcome epoch 101 warming
        s2 open
        s2 hello linkd-1 hostB 800 900
          s1 STALE_EPOCH: this directory has restarted and gave node game-1 an epoch too small; join again
          s1 closed
          s2 welcome epoch 800 warming
    "#]]
    .assert_eq(&run(&mut core, &mut Mono::ZERO.clone(), script));
}

/// Two lives that hear of the same epoch and no other do not give the same next.
///
/// Holds: H-09.
#[test]
fn two_lives_count_on_from_different_epochs() {
    let next = |epoch_start| {
        let mut core = Directory::new(Settings { epoch_start, ..settings(Span::secs(15)) }, Mono::ZERO);
        let script = "s1 open\ns1 hello linkd-1 hostA 8000000 9000000\ns2 open\ns2 hello game-1 hostB";
        run(&mut core, &mut Mono::ZERO.clone(), script)
    };
    assert_ne!(next(100), next(200));
}
