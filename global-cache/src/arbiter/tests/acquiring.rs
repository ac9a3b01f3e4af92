//! Records are asked for, granted, reduced and handed over.

use expect_test::expect;

use super::{check, check_with, settings};

/// Holds: Z-49, I6.
#[test]
fn readers_read_together_and_the_last_one_may_change() {
    check(
        "A login
         B login
         A share 1
         B share 1
         B share 1 have 2
         who 1
         A release 1 1
         B modify 1 have 2
         B share 1
         who 1",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A share 1
              A has 1 Share 1, reload, all below 7/0
            > B share 1
              B has 1 Share 2, reload, all below 7/0
            > B share 1 have 2
              B has 1 Share 2
            > who 1
              A Share 1 B Share 2
            > A release 1 1
            > B modify 1 have 2
              B has 1 Modify 3
            > B share 1
              B has 1 Modify 4, reload
            > who 1
              B Modify 4
        "#]],
    );
}

/// Holds: Z-48, Z-50, Z-51, I7, I8.
#[test]
fn a_writer_hands_over_after_it_has_reduced() {
    check(
        "A login
         B login
         A modify 1
         B modify 1
         who 1
         A reduced 1 1 invalid 5
         who 1
         A share 1
         B reduced 1 2 share 6
         who 1",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A modify 1
              A has 1 Modify 1, reload, all below 7/0
            > B modify 1
              A is to reduce 1 1 to Invalid
            > who 1
              A Modify 1
            > A reduced 1 1 invalid 5
              B has 1 Modify 2, reload at least 5, all below 7/0
            > who 1
              B Modify 2
            > A share 1
              B is to reduce 1 2 to Share
            > B reduced 1 2 share 6
              A has 1 Share 3, reload at least 6
            > who 1
              A Share 3 B Share 2
        "#]],
    );
}

/// Whoever changes a record next waits for all who read it, also for one that asks for the same.
///
/// Holds: Z-55.
#[test]
fn two_readers_that_both_want_to_change_end_in_order() {
    check(
        "A login
         B login
         A share 1
         B share 1
         A modify 1 have 1
         B modify 1 have 2
         B reduced 1 2 invalid
         A reduced 1 3 invalid 9
         who 1
         status",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A share 1
              A has 1 Share 1, reload, all below 7/0
            > B share 1
              B has 1 Share 2, reload, all below 7/0
            > A modify 1 have 1
              B is to reduce 1 2 to Invalid
            > B modify 1 have 2
            > B reduced 1 2 invalid
              A has 1 Modify 3
              A is to reduce 1 3 to Invalid
            > A reduced 1 3 invalid 9
              B has 1 Modify 4, reload at least 9
            > who 1
              B Modify 4
            > status
              2 sessions, 1 keys, 0 waited for; 4 granted, 0 denied, 2 reduces, 0 late, 0 evicted
        "#]],
    );
}

/// Holds: I5, Z-54, Z-53, BI-087, BI-088.
#[test]
fn what_is_late_or_doubled_changes_nothing() {
    check(
        "A login
         B login
         A share 1
         A release 1 1
         A release 1 1
         A modify 1
         A release 1 1
         A reduced 1 1 share
         who 1
         B release 1 2
         B share 1 as 5
         B share 1 as 5
         B modify 1 as 5
         A reduced 1 2 share 3
         A reduced 1 2 share 3
         A modify 1 have 2
         B reduced 1 3 invalid
         A modify 1 have 4
         who 1
         status",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A share 1
              A has 1 Share 1, reload, all below 7/0
            > A release 1 1
            > A release 1 1
            > A modify 1
              A has 1 Modify 2, reload
            > A release 1 1
            > A reduced 1 1 share
            > who 1
              A Modify 2
            > B release 1 2
            > B share 1 as 5
              A is to reduce 1 2 to Share
            > B share 1 as 5
            > B modify 1 as 5
              B denied: Conflict, again after 0ns
            > A reduced 1 2 share 3
              B has 1 Share 3, reload at least 3, all below 7/0
            > A reduced 1 2 share 3
            > A modify 1 have 2
              B is to reduce 1 3 to Invalid
            > B reduced 1 3 invalid
              A has 1 Modify 4 at least 3
            > A modify 1 have 4
              A has 1 Modify 4 at least 3
            > who 1
              A Modify 4
            > status
              2 sessions, 1 keys, 0 waited for; 5 granted, 1 denied, 2 reduces, 5 late, 0 evicted
        "#]],
    );
}

/// Holds: I10, A22, A23.
#[test]
fn a_holder_that_does_not_answer_costs_the_requester_three_seconds_and_nobody_else() {
    check(
        "A login
         B login
         C login
         A modify 1
         B modify 2
         C share 1
         wait 1000 A B C
         B share 1
         C share 2
         B reduced 2 2 share 1
         wait 1000 A B C
         A refused 1 1 400
         wait 3000 A B C
         C share 1
         A reduced 1 1 invalid 8
         who 1",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > C login
              C welcome, fence 7/3
            > A modify 1
              A has 1 Modify 1, reload, all below 7/0
            > B modify 2
              B has 2 Modify 2, reload, all below 7/0
            > C share 1
              A is to reduce 1 1 to Share
            > wait 1000 A B C
            > B share 1
            > C share 2
              B is to reduce 2 2 to Share
            > B reduced 2 2 share 1
              C has 2 Share 3, reload at least 1, all below 7/0
            > wait 1000 A B C
            > A refused 1 1 400
            > wait 3000 A B C
              at 2400 ms:
              A is to reduce 1 1 to Share
              at 3000 ms:
              C denied: Timeout, again after 50ms
              at 4000 ms:
              B denied: Timeout, again after 50ms
            > C share 1
              A is to reduce 1 1 to Share
            > A reduced 1 1 invalid 8
              C has 1 Share 4, reload at least 8
            > who 1
              C Share 4
        "#]],
    );
}

/// Holds: BI-084, BI-086, BI-089.
#[test]
fn bounds_are_held_and_named() {
    check(
        "A login
         B login
         A many 1 2 3 4 5
         A invalid 1
         A modify 1
         B modify 1 as 1
         B modify 1 as 1
         B share 1 as 1
         B modify 1 as 2
         B modify 1 as 3
         B modify 1 as 4
         B modify 1 as 5
         A release 5 9
         A release 1 5
         status",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A many 1 2 3 4 5
              A has 1 Modify 1, reload, all below 7/0
              A has 2 Modify 2, reload
              A has 3 Modify 3, reload
              A has 4 Modify 4, reload
              A denied: Quota, again after 0ns
            > A invalid 1
              A denied: Mode, again after 0ns
            > A modify 1
              A has 1 Modify 5, reload
            > B modify 1 as 1
              A is to reduce 1 5 to Invalid
            > B modify 1 as 1
            > B share 1 as 1
              B denied: Conflict, again after 0ns
            > B modify 1 as 2
            > B modify 1 as 3
            > B modify 1 as 4
            > B modify 1 as 5
              B denied: Busy, again after 50ms
            > A release 5 9
            > A release 1 5
              B has 1 Modify 6, reload, all below 7/0
              B has 1 Modify 7, reload
              B has 1 Modify 8, reload
              B has 1 Modify 9, reload
            > status
              2 sessions, 4 keys, 0 waited for; 9 granted, 4 denied, 1 reduces, 1 late, 0 evicted
        "#]],
    );
}

#[test]
fn as_many_records_are_waited_for_as_may_be() {
    check_with(
        super::Settings { ops_max: 1, ..settings() },
        "A login
         B login
         A many 1 2
         B share 1
         B share 2",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A many 1 2
              A has 1 Modify 1, reload, all below 7/0
              A has 2 Modify 2, reload
            > B share 1
              A is to reduce 1 1 to Share
            > B share 2
              B denied: Busy, again after 50ms
        "#]],
    );
}

/// Also for who waited when it had room, and for whom what it holds is raised.
///
/// Holds: BI-086.
#[test]
fn the_quota_holds_when_a_waiter_is_served() {
    check_with(
        super::Settings { held_max: 1, ..settings() },
        "A login
         B login
         A modify 1
         B modify 1
         B modify 2
         A release 1 1
         who 1
         A modify 3
         B modify 3
         B release 2 2
         B share 1
         B modify 1
         status",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A modify 1
              A has 1 Modify 1, reload, all below 7/0
            > B modify 1
              A is to reduce 1 1 to Invalid
            > B modify 2
              B has 2 Modify 2, reload, all below 7/0
            > A release 1 1
              B denied: Quota, again after 0ns
            > who 1
              nobody
            > A modify 3
              A has 3 Modify 3, reload
            > B modify 3
              B denied: Quota, again after 0ns
            > B release 2 2
            > B share 1
              B has 1 Share 4, reload
            > B modify 1
              B has 1 Modify 5, reload
            > status
              2 sessions, 2 keys, 0 waited for; 5 granted, 2 denied, 1 reduces, 0 late, 0 evicted
        "#]],
    );
}
