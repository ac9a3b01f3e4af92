//! Scripts in, text out. Times are milliseconds since the start.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn ms(text: &str) -> Mono {
    Mono::ZERO + Span::millis(text.parse().unwrap())
}

fn fence(text: &str) -> Fence {
    let (epoch, session) = text.split_once('/').unwrap();
    Fence::new(Epoch(epoch.parse().unwrap()), session.parse().unwrap())
}

/// Runs each line and shows what came of it.
///
/// `connected`, `welcome EPOCH/SESSION [sent MS] [terms RENEW RELEASE FLUSH EVICTION]`, `refused CODE`, `renewed SENT`,
/// `reasserted`, `closed`, `abandon EPOCH/SESSION`, `leave`, `at MS` (with the ticks on the way).
fn check(script: &str, expect: Expect) {
    let (mut session, mut now, mut out) = (Session::default(), Mono::ZERO, String::new());
    for line in script.lines().map(str::trim) {
        let _ = writeln!(out, "> {line}");
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "at" {
            let until = ms(words[1]);
            while let Some(next) = session.next().filter(|next| *next <= until) {
                now = now.max(next);
                step(&mut session, now, Event::Tick, &mut out);
            }
            now = until;
        }
        step(&mut session, now, event(now, &words), &mut out);
    }
    expect.assert_eq(&out);
}

fn step(session: &mut Session, now: Mono, event: Event, out: &mut String) {
    let mut actions = Vec::new();
    session.step(now, event, &mut actions);
    session.check();
    for action in actions {
        let _ = write!(out, "  {} ", now.0 / 1_000);
        let _ = match action {
            Action::Open { fence, until } => writeln!(out, "opened {fence} until {}", until.0 / 1_000),
            Action::Reopen { fence } => writeln!(out, "reopened {fence}"),
            Action::Extend { until } => writeln!(out, "extended until {}", until.0 / 1_000),
            Action::Redial { after, why } => writeln!(out, "redial after {after}: {why:?}"),
            other => writeln!(out, "{}", format!("{other:?}").to_lowercase()),
        };
    }
}

fn event(now: Mono, words: &[&str]) -> Event {
    let after = |name: &str| words.iter().position(|word| *word == name).map(|at| &words[at + 1..]);
    match words[0] {
        "connected" => Event::Connected,
        "welcome" => {
            let sent = after("sent").map_or(now, |words| ms(words[0]));
            let terms = after("terms").map_or(Terms::DEFAULT, |words| {
                let span = |at: usize| Span::millis(words[at].parse().unwrap());
                Terms { renew: span(0), self_release: span(1), flush: span(2), eviction: span(3) }
            });
            Event::Welcome(Welcome { sent, fence: fence(words[1]), terms })
        }
        "refused" => {
            let code = code::ALL.iter().find(|code| code.name == words[1]).unwrap();
            Event::Refused { code: code.number }
        }
        "renewed" => Event::Renewed { sent: ms(words[1]) },
        "reasserted" => Event::Reasserted,
        "closed" => Event::Closed,
        "abandon" => Event::Abandon { fence: fence(words[1]) },
        "leave" => Event::Leave,
        "at" => Event::Tick,
        other => panic!("{other}"),
    }
}

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

/// What may happen next.
fn any_event() -> impl Strategy<Value = (u64, u8, u64, u64)> {
    (0..3_000u64, 0..12u8, 0..3u64, 1..4u64)
}

proptest! {
    /// Whatever comes in whatever order: commits are allowed only while the arbiter can't have evicted us, and each session
    /// ends once.
    #[test]
    fn nobody_commits_beyond_the_lease(script in prop::collection::vec(any_event(), 1..60)) {
        let (mut session, mut now) = (Session::default(), Mono::ZERO);
        let (mut sent, mut until, mut open): (Mono, Mono, Option<Fence>) = (now, now, None);
        for (wait, what, back, number) in script {
            now += Span::millis(wait);
            let fence = Fence::new(Epoch(7 + back % 2), number);
            let event = match what {
                0..=2 => Event::Connected,
                3..=4 => Event::Welcome(Welcome { sent: Mono(now.0.saturating_sub(back * 1_500_000)), fence, terms: Terms::DEFAULT }),
                5..=6 => Event::Renewed { sent: Mono(now.0.saturating_sub(back * 1_500_000)) },
                7 => Event::Reasserted,
                8 => Event::Closed,
                9 => Event::Abandon { fence },
                10 => Event::Refused { code: code::NOT_LOGGED_IN.number },
                _ => Event::Tick,
            };
            if let Event::Welcome(Welcome { sent: at, .. }) | Event::Renewed { sent: at } = event {
                sent = sent.max(at);
            }
            let mut actions = Vec::new();
            session.step(now, event, &mut actions);
            session.check();
            for action in actions {
                match action {
                    Action::Open { fence, until: to } => {
                        prop_assert_eq!(open, None, "what was open is lost first");
                        (open, until) = (Some(fence), to);
                    }
                    Action::Extend { until: to } => {
                        prop_assert!(open.is_some());
                        until = to;
                    }
                    Action::Reopen { fence } => {
                        let before = open.replace(fence);
                        prop_assert!(before.is_some_and(|before| before <= fence));
                        until = Mono::ZERO;
                    }
                    Action::Lose => {
                        prop_assert!(open.take().is_some(), "it is lost once");
                        until = Mono::ZERO;
                    }
                    Action::Resume | Action::Release => prop_assert!(open.is_some()),
                    _ => {}
                }
            }
            prop_assert!(until <= sent + Terms::DEFAULT.self_release);
            prop_assert_eq!(session.fence(), open);
            // When ticks come on time, nothing is held longer than this.
            let next = session.next();
            prop_assert!(open.is_none() || next.is_some_and(|next| next <= sent + Span::secs(7)));
        }
    }
}
