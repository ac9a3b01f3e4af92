//! What a welcome means.

use expect_test::expect;

use super::check;

#[test]
fn the_same_session_goes_on_over_another_connection() {
    check(
        "connected
         welcome 7/1
         at 500
         closed
         at 600
         connected
         at 650
         welcome 7/1 sent 600
         at 700
         closed
         closed",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > at 500
            > closed
              500 redial after 0ns: Closed
            > at 600
            > connected
              600 login
            > at 650
            > welcome 7/1 sent 600
              650 resume
              650 extended until 4600
            > at 700
            > closed
              700 redial after 0ns: Closed
            > closed
        "#]],
    );
}

#[test]
fn a_later_life_of_the_arbiter_is_told_what_is_held() {
    check(
        "connected
         welcome 7/1
         at 500
         closed
         at 2000
         connected
         welcome 8/1
         at 3000
         renewed 3000
         at 3100
         reasserted
         reasserted
         at 3200",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > at 500
            > closed
              500 redial after 0ns: Closed
            > at 2000
            > connected
              2000 login
            > welcome 8/1
              2000 reopened 8/1
            > at 3000
              3000 renew
            > renewed 3000
            > at 3100
            > reasserted
              3100 extended until 7000
            > reasserted
            > at 3200
        "#]],
    );
}

#[test]
fn what_has_no_answer_when_the_connection_breaks_is_reasserted_again() {
    check(
        "connected
         welcome 7/1
         closed
         connected
         welcome 8/1
         closed
         connected
         welcome 8/1
         reasserted
         closed
         connected
         welcome 9/5
         closed
         connected
         welcome 10/1
         reasserted",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > closed
              0 redial after 0ns: Closed
            > connected
              0 login
            > welcome 8/1
              0 reopened 8/1
            > closed
              0 redial after 0ns: Closed
            > connected
              0 login
            > welcome 8/1
              0 reopened 8/1
            > reasserted
              0 extended until 4000
            > closed
              0 redial after 0ns: Closed
            > connected
              0 login
            > welcome 9/5
              0 reopened 9/5
            > closed
              0 redial after 0ns: Closed
            > connected
              0 login
            > welcome 10/1
              0 reopened 10/1
            > reasserted
              0 extended until 4000
        "#]],
    );
}

/// Who is told nothing for so long has dropped everything, whatever the arbiter's later life would take.
#[test]
fn after_the_lease_nothing_is_reasserted() {
    check(
        "connected
         welcome 7/1
         closed
         at 7000
         connected
         welcome 8/1",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > closed
              0 redial after 0ns: Closed
            > at 7000
              4000 release
              7000 lose
            > connected
              7000 login
            > welcome 8/1
              7000 opened 8/1 until 11000
        "#]],
    );
}

#[test]
fn another_session_of_the_same_life_means_that_ours_is_over() {
    check(
        "connected
         welcome 7/1
         closed
         connected
         welcome 7/2",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > closed
              0 redial after 0ns: Closed
            > connected
              0 login
            > welcome 7/2
              0 lose
              0 opened 7/2 until 4000
        "#]],
    );
}

/// The answer that said so first was lost.
#[test]
fn a_session_that_was_never_heard_of_is_opened() {
    check(
        "connected
         closed
         connected
         welcome 7/1",
        expect![[r#"
            > connected
              0 login
            > closed
              0 redial after 0ns: Closed
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
        "#]],
    );
}

#[test]
fn a_session_whose_records_are_dropped_is_left_to_its_eviction() {
    check(
        "connected
         welcome 7/1
         closed
         at 7000
         connected
         welcome 7/1
         at 19500
         connected
         welcome 7/2
         abandon 7/1
         abandon 7/2
         connected
         welcome 7/2",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > closed
              0 redial after 0ns: Closed
            > at 7000
              4000 release
              7000 lose
            > connected
              7000 login
            > welcome 7/1
              7000 redial after 12.5s: Kept
            > at 19500
            > connected
              19500 login
            > welcome 7/2
              19500 opened 7/2 until 23500
            > abandon 7/1
            > abandon 7/2
              19500 lose
              19500 redial after 0ns: Abandoned
            > connected
              19500 login
            > welcome 7/2
              19500 redial after 12.5s: Kept
        "#]],
    );
}
