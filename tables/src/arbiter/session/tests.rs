//! Scripts in, text out. Times are milliseconds since the start.

mod joining;
mod lease;
mod refusals;

use std::fmt::Write as _;

use expect_test::Expect;
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
