//! Leases, and what is out of bounds or order.

use expect_test::expect;

use super::*;

/// Holds: H-11, H-12.
#[test]
fn a_lease_runs_out_after_three_heartbeats_and_not_before() {
    check(
        "s9 open
         s9 hello watcher hostW
         s9 follow m/7
         s1 open
         s1 hello game-1 hostA
         s1 register m/7
         +14s
         s9 beat 1
         s1 beat 1
         +14999ms
         s9 beat 2
         +1ms
         s1 beat 2",
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
            +14s
            s9 beat 1
              s9 beat 1
            s1 beat 1
              s1 beat 1
            +14999ms
            s9 beat 2
              s9 beat 2
            +1ms
              s1 TIMEOUT: nothing was heard from node game-1 for 15s
              s1 closed
              s9 m/7 3->4: -game-1:m/7
            s1 beat 2
        "#]],
    );
}

/// A directory that was paused finds everyone silent and takes nobody for dead.
///
/// Holds: H-11, H-12.
#[test]
fn a_paused_directory_blames_nobody() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s1 register m/7
         pause 60s
         s1 beat 1
         s2 open
         s2 hello game-1 hostB
         pause 60s
         s1 pong 1
         +14s
         +1s",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 register m/7
              s1 registered at 2
            pause 60s
            s1 beat 1
              s1 beat 1
            s2 open
            s2 hello game-1 hostB
              s1 ping 1
            pause 60s
            s1 pong 1
              s2 DUPLICATE_NODE: node game-1 is alive on hostA; a second start on hostB is refused
              s2 closed
            +14s
            +1s
              s1 TIMEOUT: nothing was heard from node game-1 for 15s
              s1 closed
        "#]],
    );
}

#[test]
fn what_is_out_of_bounds_or_order_is_refused_with_a_code() {
    check(
        "s1 open
         s1 register a
         s2 open
         s2 hello b@d hostA
         s3 open
         s3 hello game-1 hostA
         s3 register a b c d
         s3 register _node
         s3 register a/
         s3 register a a
         s3 register a-name-that-is-longer-than-thirty-two
         s3 follow a
         s3 follow b
         s3 follow c
         s3 follow d
         s3 unfollow a
         s3 follow d
         s3 hello game-1 hostA
         s4 open
         +10s",
        expect![[r#"
            s1 open
            s1 register a
              s1 PROTOCOL_ORDER: hello comes first, once
              s1 closed
            s2 open
            s2 hello b@d hostA
              s2 BAD_HELLO: the node id contains '@'; allowed are letters, digits, '.', '_' and '-'
              s2 closed
            s3 open
            s3 hello game-1 hostA
              s3 welcome epoch 101
            s3 register a b c d
              s3 not registered: LIMIT: the set's services: 4, at most 3
            s3 register _node
              s3 not registered: BAD_MESSAGE: "_node" can't be the name of a node's service
            s3 register a/
              s3 not registered: BAD_MESSAGE: "a/" can't be the name of a node's service
            s3 register a a
              s3 not registered: BAD_MESSAGE: "a" is named twice in one set
            s3 register a-name-that-is-longer-than-thirty-two
              s3 not registered: LIMIT: a service's name: 37, at most 32
            s3 follow a
              s3 a at 1:
            s3 follow b
              s3 b at 1:
            s3 follow c
              s3 c at 1:
            s3 follow d
              s3 d: LIMIT: a session follows at most 3 names
            s3 unfollow a
            s3 follow d
              s3 d at 1:
            s3 hello game-1 hostA
              s3 PROTOCOL_ORDER: hello comes first, once
              s3 closed
            s4 open
            +10s
              s4 TIMEOUT: no hello within 10s
              s4 closed
        "#]],
    );
}

/// A name is parts between '/', none of which leads anywhere else, and nothing in it lies about how it looks.
///
/// Holds: BI-090.
#[test]
fn hostile_names_are_refused() {
    let mut limits = settings(Span::ZERO).limits;
    limits.name_bytes = 128;
    let long = "x".repeat(129);
    for name in ["", "../../x", "a/../b", "a/.", "/a", "a//b", "//", "a\0", "a\nb", "a\u{202e}b", &long] {
        let code = |refused: Refusal| refused.code.name;
        let expected = if name == long { "LIMIT" } else { "BAD_MESSAGE" };
        assert_eq!(limits::set(vec![service(name)], &limits).map_err(code), Err(expected), "{name:?}");
        assert_eq!(limits::pattern(name, &limits).map_err(code), Err(expected), "{name:?}");
    }
    for name in ["a", "module/7", "大厅/module/7", "a..b/..c", "shop v2#3"] {
        assert!(limits::set(vec![service(name)], &limits).is_ok(), "{name:?}");
        assert!(
            limits::pattern(name, &limits).is_ok() && limits::pattern(&format!("{name}/"), &limits).is_ok()
        );
    }
    assert!(limits::pattern("/", &limits).is_ok());
}

#[test]
fn sessions_are_bounded() {
    let mut core = Directory::new(settings(Span::ZERO), Mono::ZERO);
    let open: String = (1..=9).map(|n| format!("s{n} open\n")).collect();
    let out = run(&mut core, &mut Mono::ZERO.clone(), &open);
    assert!(out.ends_with("s9 open\n  s9 LIMIT: this directory holds 8 sessions\n  s9 closed\n"), "{out}");
}
