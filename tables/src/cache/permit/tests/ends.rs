//! What is asked for does not come, the session ends, the arbiter restarts.

use expect_test::expect;

use super::check;

#[test]
fn a_refusal_and_a_failed_read_end_the_waiting() {
    check(
        "share 1
         denied 1
         share 2
         granted 2 share 10 reload
         failed 10
         share 3
         loaded 10",
        expect![[r#"
            > share 1
              ask for Share as 1, has 0
            > denied 1
              fail
            > share 2
              ask for Share as 2, has 0
            > granted 2 share 10 reload
              load for 10, at least 0
            > failed 10
              fail
            > share 3
              load for 10, at least 0
            > loaded 10
              wake
              = Share
        "#]],
    );
}

/// Two want different things at once: who wants more asks again when what was asked for has come.
#[test]
fn who_wants_more_than_was_asked_for_is_woken_and_asks_again() {
    check(
        "share 1
         modify 2
         granted 1 share 10 reload
         loaded 10
         unpinned
         unpinned
         modify 3
         granted 3 modify 11",
        expect![[r#"
            > share 1
              ask for Share as 1, has 0
            > modify 2
            > granted 1 share 10 reload
              load for 10, at least 0
            > loaded 10
              wake
              = Share
            > unpinned
            > unpinned
            > modify 3
              ask for Modify as 3, has 10
            > granted 3 modify 11
              wake
              = Modify
        "#]],
    );
}

#[test]
fn with_the_session_everything_is_lost_but_the_question() {
    check(
        "share 1
         granted 1 share 10 reload
         loaded 10
         unpinned
         modify 2
         lost
         ask again
         granted 2 modify 3 reload
         loaded 3",
        expect![[r#"
            > share 1
              ask for Share as 1, has 0
            > granted 1 share 10 reload
              load for 10, at least 0
            > loaded 10
              wake
              = Share
            > unpinned
            > modify 2
              ask for Modify as 2, has 10
            > lost
              drop
              = Invalid
            > ask again
              ask for Modify as 2, has 0
            > granted 2 modify 3 reload
              load for 3, at least 0
            > loaded 3
              wake
              = Modify
        "#]],
    );
}

/// What was read under a grant that was lost, and comes late, is not what the next grant says.
///
/// Holds: I5, I6, Z-54.
#[test]
fn what_was_read_under_an_earlier_grant_is_not_used() {
    check(
        "share 1
         granted 1 share 10 reload
         lost
         share 2
         granted 2 share 12 reload
         loaded 10
         reduce 10 invalid
         loaded 12",
        expect![[r#"
            > share 1
              ask for Share as 1, has 0
            > granted 1 share 10 reload
              load for 10, at least 0
            > lost
              wake
            > share 2
              ask for Share as 2, has 0
            > granted 2 share 12 reload
              load for 12, at least 0
            > loaded 10
            > reduce 10 invalid
            > loaded 12
              wake
              = Share
        "#]],
    );
}

/// After a restart of the arbiter numbers begin anew: whoever remembers one of before would wait for ever.
///
/// Holds: I4, I5.
#[test]
fn the_numbers_of_an_earlier_arbiter_are_forgotten() {
    check(
        "share 1
         granted 1 share 500 reload
         loaded 500
         unpinned
         reduce 500 invalid
         renumbered none
         share 2
         granted 2 share 3 reload
         loaded 3",
        expect![[r#"
            > share 1
              ask for Share as 1, has 0
            > granted 1 share 500 reload
              load for 500, at least 0
            > loaded 500
              wake
              = Share
            > unpinned
            > reduce 500 invalid
              drop
              reduced 500 to Invalid
              = Invalid
            > renumbered none
            > share 2
              ask for Share as 2, has 0
            > granted 2 share 3 reload
              load for 3, at least 0
            > loaded 3
              wake
              = Share
        "#]],
    );
}

/// What is being given up when the arbiter restarts is given up under its new number.
#[test]
fn a_flush_under_way_outlives_the_arbiter() {
    check(
        "modify 1
         granted 1 modify 500 reload
         loaded 500
         unpinned
         dirty
         reduce 500 invalid
         renumbered 2
         clean
         look",
        expect![[r#"
            > modify 1
              ask for Modify as 1, has 0
            > granted 1 modify 500 reload
              load for 500, at least 0
            > loaded 500
              wake
              = Modify
            > unpinned
            > dirty
            > reduce 500 invalid
              flush
              = Invalid
            > renumbered 2
            > clean
            > look
              drop
              reduced 2 to Invalid
        "#]],
    );
}
