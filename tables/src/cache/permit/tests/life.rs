//! A record is asked for, used and given up.

use expect_test::expect;

use super::check;

/// Asked for, granted, loaded, used, raised to Modify, and let go.
#[test]
fn a_record_lives_from_its_first_question_until_it_is_let_go() {
    check(
        "share 1
         granted 1 share 10 reload least 4
         loaded 10
         unpinned
         modify 2
         granted 2 modify 11
         unpinned
         dirty
         let go
         clean
         let go",
        expect![[r#"
            > share 1
              ask for Share as 1, has 0
            > granted 1 share 10 reload least 4
              load for 10, at least 4
            > loaded 10
              wake
              = Share
            > unpinned
            > modify 2
              ask for Modify as 2, has 10
            > granted 2 modify 11
              wake
              = Modify
            > unpinned
            > dirty
            > let go
            > clean
            > let go
              drop
              reduced 11 to Invalid
              forget
              = Invalid
        "#]],
    );
}

/// Holds: Z-50, Z-51.
#[test]
fn a_reduce_waits_for_the_turn_and_for_the_flush() {
    check(
        "modify 1
         granted 1 modify 10 reload
         loaded 10
         dirty
         reduce 10 share
         unpinned
         modify 2
         clean
         look
         unpinned",
        expect![[r#"
            > modify 1
              ask for Modify as 1, has 0
            > granted 1 modify 10 reload
              load for 10, at least 0
            > loaded 10
              wake
              = Modify
            > dirty
            > reduce 10 share
              look at 100 ms
            > unpinned
              flush
              = Share
            > modify 2
            > clean
            > look
              reduced 10 to Share
              wake
            > unpinned
        "#]],
    );
}

/// Who has waited and does not go on loses his turn after a while, and nobody waits for ever.
#[test]
fn a_turn_that_does_not_end_is_over_in_time() {
    check(
        "modify 1
         granted 1 modify 10 reload
         loaded 10
         reduce 10 invalid
         wait 99
         look
         wait 1
         look
         unpinned",
        expect![[r#"
            > modify 1
              ask for Modify as 1, has 0
            > granted 1 modify 10 reload
              load for 10, at least 0
            > loaded 10
              wake
              = Modify
            > reduce 10 invalid
              look at 100 ms
            > wait 99
            > look
              look at 100 ms
            > wait 1
            > look
              drop
              reduced 10 to Invalid
              = Invalid
            > unpinned
        "#]],
    );
}

#[test]
fn a_reduce_while_it_is_loaded_comes_after_the_turn_of_who_waits() {
    check(
        "share 1
         granted 1 share 10 reload
         reduce 10 invalid
         loaded 10
         unpinned",
        expect![[r#"
            > share 1
              ask for Share as 1, has 0
            > granted 1 share 10 reload
              load for 10, at least 0
            > reduce 10 invalid
              look at 1000 ms
            > loaded 10
              wake
              look at 100 ms
              = Share
            > unpinned
              drop
              reduced 10 to Invalid
              = Invalid
        "#]],
    );
    check(
        "share 1
         granted 1 share 10 reload
         gave up
         reduce 10 invalid
         loaded 10",
        expect![[r#"
            > share 1
              ask for Share as 1, has 0
            > granted 1 share 10 reload
              load for 10, at least 0
            > gave up
            > reduce 10 invalid
              reduced 10 to Invalid
            > loaded 10
        "#]],
    );
}

/// Holds: Z-54.
#[test]
fn what_is_about_an_earlier_grant_changes_nothing() {
    check(
        "share 1
         granted 1 share 10 reload
         loaded 10
         unpinned
         reduce 9 invalid
         granted 1 modify 12
         denied 1
         loaded 9
         reduce 10 invalid
         reduce 10 invalid",
        expect![[r#"
            > share 1
              ask for Share as 1, has 0
            > granted 1 share 10 reload
              load for 10, at least 0
            > loaded 10
              wake
              = Share
            > unpinned
            > reduce 9 invalid
            > granted 1 modify 12
            > denied 1
            > loaded 9
            > reduce 10 invalid
              drop
              reduced 10 to Invalid
              = Invalid
            > reduce 10 invalid
              reduced 10 to Invalid
        "#]],
    );
}

/// A reduce of a grant that was lost with a connection, so that nothing was ever done under it.
#[test]
fn a_reduce_of_a_grant_that_never_came_is_answered() {
    check(
        "modify 1
         reduce 10 invalid
         ask again
         granted 1 modify 11 reload
         loaded 11",
        expect![[r#"
            > modify 1
              ask for Modify as 1, has 0
            > reduce 10 invalid
              reduced 10 to Invalid
            > ask again
              ask for Modify as 1, has 0
            > granted 1 modify 11 reload
              load for 11, at least 0
            > loaded 11
              wake
              = Modify
        "#]],
    );
}

/// Holds: I6.
#[test]
fn a_grant_that_says_so_is_read_again() {
    check(
        "share 1
         granted 1 share 10 reload
         loaded 10
         unpinned
         modify 2
         granted 2 modify 12 reload",
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
            > granted 2 modify 12 reload
              drop
              load for 12, at least 0
              = Invalid
        "#]],
    );
}
