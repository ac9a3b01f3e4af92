//! Who is not let in, whom we don't believe, and leaving.

use expect_test::expect;

use super::check;

#[test]
fn refusals_say_whether_to_come_again() {
    check(
        "connected
         refused OTHER_STORAGE
         connected
         refused LIMIT
         connected
         welcome 7/1
         refused NOT_LOGGED_IN
         refused NOT_LOGGED_IN
         connected
         welcome 7/2
         refused SHUTTING_DOWN
         connected
         refused STALE_EPOCH
         connected
         at 9000",
        expect![[r#"
            > connected
              0 login
            > refused OTHER_STORAGE
              0 redial after 2s: Refused(185)
            > connected
              0 login
            > refused LIMIT
              0 redial after 2s: Refused(163)
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > refused NOT_LOGGED_IN
              0 lose
              0 redial after 0ns: Refused(180)
            > refused NOT_LOGGED_IN
            > connected
              0 login
            > welcome 7/2
              0 opened 7/2 until 4000
            > refused SHUTTING_DOWN
              0 redial after 0ns: Refused(114)
            > connected
              0 login
            > refused STALE_EPOCH
              0 lose
              0 outlived
            > connected
            > at 9000
        "#]],
    );
}

#[test]
fn welcomes_that_can_not_be_kept_are_refused() {
    check(
        "connected
         welcome 7/1 terms 1000 4000 3000 8750
         connected
         welcome 7/1 terms 0 4000 3000 10000
         connected
         welcome 7/1 terms 2001 4000 3000 10000
         connected
         welcome 7/1 terms 2000 4000 3000 8751
         closed
         connected
         welcome 6/9
         at 100
         connected
         at 4200
         welcome 7/1 sent 100",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1 terms 1000 4000 3000 8750
              0 redial after 2s: Terms(Eviction)
            > connected
              0 login
            > welcome 7/1 terms 0 4000 3000 10000
              0 redial after 2s: Terms(Renew)
            > connected
              0 login
            > welcome 7/1 terms 2001 4000 3000 10000
              0 redial after 2s: Terms(Renew)
            > connected
              0 login
            > welcome 7/1 terms 2000 4000 3000 8751
              0 opened 7/1 until 4000
            > closed
              0 redial after 0ns: Closed
            > connected
              0 login
            > welcome 6/9
              0 redial after 2s: Outdated
            > at 100
            > connected
              100 login
            > at 4200
              4000 release
            > welcome 7/1 sent 100
              4200 redial after 2s: Late
        "#]],
    );
}

#[test]
fn who_leaves_drops_everything_before_it_says_so() {
    check(
        "connected
         welcome 7/1
         leave
         closed
         at 9000",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > leave
              0 lose
              0 bye
            > closed
            > at 9000
        "#]],
    );
    check(
        "connected
         welcome 7/1
         closed
         leave
         connected",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > closed
              0 redial after 0ns: Closed
            > leave
              0 lose
              0 end
            > connected
        "#]],
    );
}
