//! Addresses that can't be dialled.

use super::*;

/// game-1 moves to an address that is reached at the third try only.
const MOVES: &str = "s1 open
         s1 hello game-1 hostA
         s2 open
         s2 hello linkd-1 hostB
         s2 follow m/
         s1 register m/7@10.0.0.1:1 m/8
         s0 dialled game-1 m/7 10.0.0.1:1
         s1 register m/7@10.0.0.1:1 m/8
         s1 register m/7@10.0.0.2:1 m/8
         s0 dialled game-1 m/7 10.0.0.1:1 refused
         s0 dialled game-1 m/7 10.0.0.2:1 refused
         +4s
         +1s
         s0 dialled game-1 m/7 10.0.0.2:1 refused
         +5s
         s1 beat 1
         s2 beat 1
         s0 dialled game-1 m/7 10.0.0.2:1
         +9s
         s2 follow m/
         s1 bye
         s0 dialled game-1 m/7 10.0.0.2:1 refused";

/// Holds: H-17.
#[test]
fn an_address_is_dialled_once_and_again_only_when_it_fails() {
    check(
        MOVES,
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s2 open
            s2 hello linkd-1 hostB
              s2 welcome epoch 102
            s2 follow m/
              s2 m/ at 2:
            s1 register m/7@10.0.0.1:1 m/8
              s2 m/ 2->3: game-1:m/7@10.0.0.1:1/101 game-1:m/8/101
              dials 10.0.0.1:1 of game-1 for m/7
              s1 registered at 3
            s0 dialled game-1 m/7 10.0.0.1:1
            s1 register m/7@10.0.0.1:1 m/8
              s1 registered at 3
            s1 register m/7@10.0.0.2:1 m/8
              s2 m/ 3->4: game-1:m/7@10.0.0.2:1/101
              dials 10.0.0.2:1 of game-1 for m/7
              s1 registered at 4
            s0 dialled game-1 m/7 10.0.0.1:1 refused
            s0 dialled game-1 m/7 10.0.0.2:1 refused
              s2 m/ 4->5: game-1:m/7@10.0.0.2:1/101 unreachable
              s1 10.0.0.2:1 is not reached: refused
            +4s
            +1s
              dials 10.0.0.2:1 of game-1 for m/7
            s0 dialled game-1 m/7 10.0.0.2:1 refused
            +5s
              dials 10.0.0.2:1 of game-1 for m/7
            s1 beat 1
              s1 beat 1
            s2 beat 1
              s2 beat 1
            s0 dialled game-1 m/7 10.0.0.2:1
              s2 m/ 5->6: game-1:m/7@10.0.0.2:1/101
              s1 10.0.0.2:1 is reached
            +9s
            s2 follow m/
              s2 m/ at 6: game-1:m/7@10.0.0.2:1/101 game-1:m/8/101
            s1 bye
              s1 closed
              s2 m/ 6->7: -game-1:m/7 -game-1:m/8
            s0 dialled game-1 m/7 10.0.0.2:1 refused
        "#]],
    );
}

/// Holds: H-17.
#[test]
fn a_loopback_address_of_another_machine_is_not_believed() {
    check(
        "s1 open away
         s1 hello game-1 hostA
         s1 register a@127.0.0.1:1 b@[::1]:1 c@localhost:1
         s2 open
         s2 hello game-2 hostB
         s2 register a@127.0.0.1:2
         s2 follow a",
        expect![[r#"
            s1 open away
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 register a@127.0.0.1:1 b@[::1]:1 c@localhost:1
              s1 127.0.0.1:1 is not reached: it is a loopback address, and the node is on another machine
              s1 [::1]:1 is not reached: it is a loopback address, and the node is on another machine
              s1 localhost:1 is not reached: it is a loopback address, and the node is on another machine
              s1 registered at 5
            s2 open
            s2 hello game-2 hostB
              s2 welcome epoch 102
            s2 register a@127.0.0.1:2
              dials 127.0.0.1:2 of game-2 for a
              s2 registered at 7
            s2 follow a
              s2 a at 7: game-1:a@127.0.0.1:1/101 unreachable game-2:a@127.0.0.1:2/102
        "#]],
    );
}
