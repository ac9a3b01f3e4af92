//! How long a session lasts.

use base::lease::Terms;
use base::{Epoch, Fence, Mono};
use expect_test::expect;

use super::{Event, Session, Welcome, check, ms, step};

#[test]
fn the_lease_counts_from_when_the_answered_renewal_was_sent() {
    check(
        "connected
         at 300
         welcome 7/1 sent 0
         at 1000
         at 1400
         renewed 1000
         at 5000
         at 8000
         at 30000",
        expect![[r#"
            > connected
              0 login
            > at 300
            > welcome 7/1 sent 0
              300 opened 7/1 until 4000
            > at 1000
              1000 renew
            > at 1400
            > renewed 1000
              1400 extended until 5000
            > at 5000
              2000 renew
              3000 renew
              4000 renew
              5000 release
              5000 redial after 0ns: Silent
            > at 8000
              8000 lose
            > at 30000
        "#]],
    );
}

#[test]
fn without_an_answer_it_releases_and_then_loses_once_each() {
    check(
        "connected
         welcome 7/1
         at 3900
         at 4000
         connected
         at 6999
         at 7000
         at 9000
         welcome 7/2
         at 10000",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > at 3900
              1000 renew
              2000 renew
              3000 renew
            > at 4000
              4000 release
              4000 redial after 0ns: Silent
            > connected
              4000 login
            > at 6999
            > at 7000
              7000 lose
            > at 9000
            > welcome 7/2
              9000 opened 7/2 until 13000
            > at 10000
              10000 renew
        "#]],
    );
}

#[test]
fn a_pause_longer_than_the_lease_ends_it_at_once() {
    let (mut session, mut out) = (Session::default(), "> asleep\n".to_owned());
    step(&mut session, Mono::ZERO, Event::Connected, &mut out);
    let welcome = Welcome { sent: Mono::ZERO, fence: Fence::new(Epoch(7), 1), terms: Terms::DEFAULT };
    step(&mut session, Mono::ZERO, Event::Welcome(welcome), &mut out);
    // The answer was waiting when the process woke up.
    step(&mut session, ms("7000"), Event::Renewed { sent: ms("6000") }, &mut out);
    expect![[r#"
        > asleep
          0 login
          0 opened 7/1 until 4000
          7000 lose
          7000 redial after 0ns: Silent
    "#]]
    .assert_eq(&out);
}

#[test]
fn an_answer_during_the_release_takes_it_back() {
    check(
        "connected
         welcome 7/1
         at 4000
         connected
         at 4200
         welcome 7/1 sent 4000
         at 4300
         renewed 4300",
        expect![[r#"
            > connected
              0 login
            > welcome 7/1
              0 opened 7/1 until 4000
            > at 4000
              1000 renew
              2000 renew
              3000 renew
              4000 release
              4000 redial after 0ns: Silent
            > connected
              4000 login
            > at 4200
            > welcome 7/1 sent 4000
              4200 resume
              4200 extended until 8000
            > at 4300
            > renewed 4300
              4300 extended until 8300
        "#]],
    );
}
