//! Sessions end: with a goodbye, by silence, or replaced by a later start.

use expect_test::expect;

use super::{check, check_with, settings};

/// Holds: Z-58, Z-61, C-08.
#[test]
fn the_silent_lose_everything_and_whoever_loads_next_hears_of_it() {
    check(
        "A login
         B login
         A many 1 2
         B share 3
         B modify 1
         wait 10000 B
         A renew
         who 1
         B share 2
         A login
         A share 3
         status",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A many 1 2
              A has 1 Modify 1, reload, all below 7/0
              A has 2 Modify 2, reload
            > B share 3
              B has 3 Share 3, reload, all below 7/0
            > B modify 1
              A is to reduce 1 1 to Invalid
            > wait 10000 B
              at 3000 ms:
              B denied: Timeout, again after 50ms
              at 10000 ms:
              A lost
              connection #1 of A closed
            > A renew
              A lost
            > who 1
              nobody
            > B share 2
              B has 2 Share 4, reload, A below 7/2
            > A login
              A welcome, fence 7/3
            > A share 3
              A has 3 Share 5, reload, all below 7/0, A below 7/2
            > status
              2 sessions, 2 keys, 0 waited for; 5 granted, 1 denied, 1 reduces, 0 late, 1 evicted
        "#]],
    );
}

/// Holds: Z-61, BI-082, BI-083, A32.
#[test]
fn a_later_start_of_a_node_takes_its_place_and_an_earlier_one_does_not() {
    check(
        "A login 5
         A modify 1
         A login 4
         A login 6
         A modify 1
         B login
         B modify 1
         A login 6
         A reduced 1 2 invalid
         who 1",
        expect![[r#"
            > A login 5
              A welcome, fence 7/1
            > A modify 1
              A has 1 Modify 1, reload, all below 7/0
            > A login 4
              A refused: Stale { newest: Epoch(5) }
            > A login 6
              A lost
              connection #1 of A closed
              A welcome, fence 7/2
            > A modify 1
              A has 1 Modify 2, reload, all below 7/0, A below 7/2
            > B login
              B welcome, fence 7/3
            > B modify 1
              A is to reduce 1 2 to Invalid
            > A login 6
              connection #3 of A closed
              A welcome again, fence 7/2
              A is to reduce 1 2 to Invalid
            > A reduced 1 2 invalid
              B has 1 Modify 3, reload, all below 7/0, A below 7/2
            > who 1
              B Modify 3
        "#]],
    );
}

/// Holds: I12, A17.
#[test]
fn a_goodbye_frees_everything_and_names_nobody() {
    check(
        "A login
         B login
         A many 1 2 3
         B share 1
         B share 4
         A bye
         A share 1
         B modify 2
         wait 200 B
         status
         B release 1 4
         B release 4 5
         B bye
         wait 200
         status",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A many 1 2 3
              A has 1 Modify 1, reload, all below 7/0
              A has 2 Modify 2, reload
              A has 3 Modify 3, reload
            > B share 1
              A is to reduce 1 1 to Share
            > B share 4
              B has 4 Share 4, reload, all below 7/0
            > A bye
              connection #1 of A closed
              B has 1 Share 5, reload
            > A share 1
              A lost
            > B modify 2
              B has 2 Modify 6, reload
            > wait 200 B
            > status
              1 sessions, 3 keys, 0 waited for; 6 granted, 0 denied, 1 reduces, 0 late, 0 evicted
            > B release 1 4
            > B release 4 5
            > B bye
              connection #2 of B closed
            > wait 200
            > status
              0 sessions, 0 keys, 0 waited for; 6 granted, 0 denied, 1 reduces, 2 late, 0 evicted
        "#]],
    );
}

/// Who waits may end, and so may whom it waits for.
///
/// Holds: I10, A26, A72.
#[test]
fn an_end_at_each_moment_leaves_nobody_waiting() {
    check(
        "A login
         B login
         C login
         A modify 1
         B modify 1
         C share 1
         B bye
         A reduced 1 1 share 4
         who 1
         B login
         B modify 1
         C bye
         A bye
         who 1
         status",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > C login
              C welcome, fence 7/3
            > A modify 1
              A has 1 Modify 1, reload, all below 7/0
            > B modify 1
              A is to reduce 1 1 to Invalid
            > C share 1
            > B bye
              connection #2 of B closed
              A is to reduce 1 1 to Share
            > A reduced 1 1 share 4
              C has 1 Share 2, reload at least 4, all below 7/0
            > who 1
              A Share 1 C Share 2
            > B login
              B welcome, fence 7/4
            > B modify 1
              A is to reduce 1 1 to Invalid
              C is to reduce 1 2 to Invalid
            > C bye
              connection #3 of C closed
            > A bye
              connection #1 of A closed
              B has 1 Modify 3, reload at least 4, all below 7/0
            > who 1
              B Modify 3
            > status
              1 sessions, 1 keys, 0 waited for; 3 granted, 0 denied, 4 reduces, 0 late, 0 evicted
        "#]],
    );
}

#[test]
fn a_slot_is_used_again_after_a_sweep() {
    check_with(
        super::Settings { sessions_max: 2, ..settings() },
        "A login
         B login
         A share 1
         C login
         A bye
         C login
         wait 200 B
         C login
         who 1
         status",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A share 1
              A has 1 Share 1, reload, all below 7/0
            > C login
              C refused: Sessions
            > A bye
              connection #1 of A closed
            > C login
              C refused: Sessions
            > wait 200 B
            > C login
              C welcome, fence 7/5
            > who 1
              nobody
            > status
              2 sessions, 0 keys, 0 waited for; 1 granted, 0 denied, 0 reduces, 0 late, 0 evicted
        "#]],
    );
}

/// Two folders on two machines are not one store.
#[test]
fn a_second_storage_of_the_same_name_is_refused() {
    check(
        "A login 1 77
         B login 1 77
         C login 1 78
         A bye
         B bye
         C login 1 78",
        expect![[r#"
            > A login 1 77
              A welcome, fence 7/1
            > B login 1 77
              B welcome, fence 7/2
            > C login 1 78
              C refused: Storage { backend: "main" }
            > A bye
              connection #1 of A closed
            > B bye
              connection #2 of B closed
            > C login 1 78
              C welcome, fence 7/3
        "#]],
    );
}

/// Who was evicted while it could change a record may have removed it, and versions of a new one begin again: the next
/// holder is not told to wait for a version that never comes.
///
/// Holds: I8.
#[test]
fn what_the_evicted_had_written_before_is_no_bound() {
    check(
        "A login
         B login
         A modify 1
         B share 1
         A reduced 1 1 share 5
         B release 1 2
         A modify 1 have 1
         A login 2
         B share 1",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A modify 1
              A has 1 Modify 1, reload, all below 7/0
            > B share 1
              A is to reduce 1 1 to Share
            > A reduced 1 1 share 5
              B has 1 Share 2, reload at least 5, all below 7/0
            > B release 1 2
            > A modify 1 have 1
              A has 1 Modify 3 at least 5
            > A login 2
              A lost
              connection #1 of A closed
              A welcome, fence 7/3
            > B share 1
              B has 1 Share 4, reload, A below 7/2
        "#]],
    );
}

/// Who asks again for what it has let go of, by a word that was lost, gets a grant of another number: the same word said
/// again takes nothing from it.
///
/// Holds: I2, I5, Z-53, Z-54.
#[test]
fn what_is_granted_again_has_another_number() {
    check(
        "A login
         B login
         A share 1
         B modify 1
         A login
         B login 2
         A share 1 as 2
         A reduced 1 1 invalid
         B modify 1
         who 1",
        expect![[r#"
            > A login
              A welcome, fence 7/1
            > B login
              B welcome, fence 7/2
            > A share 1
              A has 1 Share 1, reload, all below 7/0
            > B modify 1
              A is to reduce 1 1 to Invalid
            > A login
              connection #1 of A closed
              A welcome again, fence 7/1
              A is to reduce 1 1 to Invalid
            > B login 2
              B lost
              connection #2 of B closed
              B welcome, fence 7/3
            > A share 1 as 2
              A has 1 Share 2, reload, all below 7/0, B below 7/3
            > A reduced 1 1 invalid
            > B modify 1
              A is to reduce 1 2 to Invalid
            > who 1
              A Share 2
        "#]],
    );
}
