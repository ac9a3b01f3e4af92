//! Loads go to whoever observes, and the set of the observed follows the subscription.

use super::*;

/// Holds: Q25.
#[test]
fn who_comes_later_is_observed_as_well_and_only_the_newest_load_counts() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s1 register m/7
         s1 load 10
         s2 open
         s2 hello linkd-1 hostB
         s2 follow m/ loads
         s3 open
         s3 hello game-2 hostC
         s3 load 20
         +1s
         s3 register m/7 other
         +1s
         s1 load 11
         s1 load 12
         s3 load 21
         +1s
         s3 register other
         s3 load 22
         s1 bye
         +1s",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 register m/7
              s1 registered at 2
            s1 load 10
            s2 open
            s2 hello linkd-1 hostB
              s2 welcome epoch 102
            s2 follow m/ loads
              s2 m/ at 3: game-1:m/7/101
              s2 loads: game-1/101 10
            s3 open
            s3 hello game-2 hostC
              s3 welcome epoch 103
            s3 load 20
            +1s
              s2 loads: game-1/101 10
            s3 register m/7 other
              s2 m/ 3->5: game-2:m/7/103
              s3 registered at 5
            +1s
              s2 loads: game-2/103 20
            s1 load 11
            s1 load 12
            s3 load 21
            +1s
              s2 loads: game-1/101 12 game-2/103 21
            s3 register other
              s2 m/ 5->6: -game-2:m/7
              s3 registered at 6
            s3 load 22
            s1 bye
              s1 closed
              s2 m/ 6->7: -game-1:m/7
            +1s
        "#]],
    );
}

#[test]
fn who_observes_no_more_hears_nothing_and_an_old_session_reports_nothing() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s1 register m/7
         s2 open
         s2 hello linkd-1 hostB
         s2 follow m/ loads
         s2 follow m/7
         s1 load 1
         +1s
         s2 follow m/
         s1 load 2
         +1s
         s2 follow m/7 loads
         s2 unfollow m/7
         s3 open
         s3 hello game-1 hostA 101
         s1 load 3
         s2 follow m/ loads
         s3 load 4
         s2 close
         +1s",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 register m/7
              s1 registered at 2
            s2 open
            s2 hello linkd-1 hostB
              s2 welcome epoch 102
            s2 follow m/ loads
              s2 m/ at 3: game-1:m/7/101
            s2 follow m/7
              s2 m/7 at 3: game-1:m/7/101
            s1 load 1
            +1s
              s2 loads: game-1/101 1
            s2 follow m/
              s2 m/ at 3: game-1:m/7/101
            s1 load 2
            +1s
            s2 follow m/7 loads
              s2 m/7 at 3: game-1:m/7/101
              s2 loads: game-1/101 2
            s2 unfollow m/7
            s3 open
            s3 hello game-1 hostA 101
              s1 STALE_EPOCH: another session of node game-1 has taken this one's place
              s1 closed
              s3 welcome epoch 101
            s1 load 3
            s2 follow m/ loads
              s2 m/ at 3: game-1:m/7/101
              s2 loads: game-1/101 2
            s3 load 4
            s2 close
            +1s
        "#]],
    );
}
