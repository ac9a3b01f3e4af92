//! An arbiter that has just started.

use base::Span;
use expect_test::expect;

use super::{Settings, check_with, settings};

/// Holds: I4.
#[test]
fn after_a_start_nothing_is_granted_before_the_grace_is_over() {
    check_with(
        Settings { grace: Span::secs(10), ..settings() },
        "A login
         B login
         A reassert 1 modify
         A reassert 1 modify
         B reassert 1 share
         B reassert 2 share
         A reassert 2 share
         A modify 3
         wait 4000 A B
         A modify 3
         wait 6000 A B
         A modify 3
         B reassert 3 share
         B share 1
         A reduced 1 1 share 9
         who 2",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A reassert 1 modify
              A holds 1 as 1
            > A reassert 1 modify
              A holds 1 as 1
            > B reassert 1 share
              B holds 1 no more
            > B reassert 2 share
              B holds 2 as 2
            > A reassert 2 share
              A holds 2 as 3
            > A modify 3
              A denied: Warming, again after 10s
            > wait 4000 A B
            > A modify 3
              A denied: Warming, again after 6s
            > wait 6000 A B
            > A modify 3
              A has 3 Modify 4, reload, all below 7/0
            > B reassert 3 share
              B holds 3 no more
            > B share 1
              A is to reduce 1 1 to Share
            > A reduced 1 1 share 9
              B has 1 Share 5, reload at least 9, all below 7/0
            > who 2
              A Share 3 B Share 2
        "#]],
    );
}

/// The start before has lost what it said, and a start holds no more than it may.
///
/// Holds: BI-086, Z-61.
#[test]
fn what_is_reasserted_is_bounded_and_no_dead_start_stands_in_its_way() {
    check_with(
        Settings { grace: Span::secs(10), held_max: 2, ..settings() },
        "A login 1
         A reassert 1 modify
         A login 2
         A reassert 1 modify
         A reassert 2 share
         A reassert 3 share
         A reassert 1 modify
         status",
        expect![[r#"
            > A login 1
              A welcome, fence 7/1
            > A reassert 1 modify
              A holds 1 as 1
            > A login 2
              A lost
              connection #1 of A closed
              A welcome, fence 7/2
            > A reassert 1 modify
              A holds 1 as 2
            > A reassert 2 share
              A holds 2 as 3
            > A reassert 3 share
              A holds 3 no more
            > A reassert 1 modify
              A holds 1 as 2
            > status
              1 sessions, 2 keys, 0 waited for; 0 granted, 0 denied, 0 reduces, 0 late, 1 evicted
        "#]],
    );
}
