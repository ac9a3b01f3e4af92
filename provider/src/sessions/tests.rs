//! Scripts in, text out; then random runs against what a player may rely on.

use std::collections::BTreeMap;
use std::fmt::Write;

use base::{LinkSid, Mono};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{Action, Event, Sessions};

type Core = Sessions<(), String>;

fn event(line: &str) -> Event<(), String> {
    let words: Vec<_> = line.split_whitespace().collect();
    let sid = || LinkSid(words[1].parse().unwrap());
    let job = || words[2].to_owned();
    match words[0] {
        "open" => Event::Opened { sid: sid(), state: () },
        "dispatch" => Event::Dispatch { sid: sid(), job: job(), parallel: false },
        "parallel" => Event::Dispatch { sid: sid(), job: job(), parallel: true },
        "done" => Event::Done { sid: sid(), parallel: words.len() > 2 },
        "kick" => Event::Kicked { sid: sid() },
        "broken" => Event::Broken { sid: sid(), cause: words[2].parse().unwrap() },
        "drain" => Event::Drain,
        "closed" => Event::Closed { cause: words[1].parse().unwrap() },
        other => panic!("no event is called {other}"),
    }
}

fn text(action: Action<(), String>) -> String {
    match action {
        Action::Run { sid, job, waited, .. } => format!("run {} {job} after {waited}", sid.0),
        Action::Refuse { sid, job, why } => format!("refuse {} {job} {why:?}", sid.0),
        Action::Drop { sid, job, why } => format!("drop {} {job} {why:?}", sid.0),
        Action::Gone { sid, cause, .. } => format!("gone {} {cause}", sid.0),
        Action::Ignored { sid } => format!("ignored {}", sid.0),
        Action::Idle => "idle".to_owned(),
    }
}

/// One millisecond passes before each line.
fn check(script: &str, expected: Expect) {
    let mut core = Core::new(3);
    let (mut out, mut now) = (String::new(), Mono::ZERO);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        now += base::Span::millis(1);
        let mut actions = Vec::new();
        core.step(now, event(line), &mut actions);
        core.check();
        let actions: Vec<_> = actions.into_iter().map(text).collect();
        writeln!(out, "{line}: {}", actions.join(", ")).unwrap();
    }
    expected.assert_eq(&out);
}

/// A login and the disconnect behind it: the login runs first, the end after it.
///
/// Holds: Q13, Z-11.
#[test]
fn the_end_of_a_session_comes_after_its_requests() {
    check(
        "open 1
         dispatch 1 login
         dispatch 1 enter
         broken 1 110
         dispatch 1 late
         done 1
         done 1
         dispatch 1 later",
        expect![[r#"
            open 1: 
            dispatch 1 login: run 1 login after 0ns
            dispatch 1 enter: 
            broken 1 110: 
            dispatch 1 late: drop 1 late Late
            done 1: run 1 enter after 3ms
            done 1: gone 1 110
            dispatch 1 later: drop 1 later NotOpen
        "#]],
    );
}

#[test]
fn parallel_requests_overlap_and_the_end_waits_for_them_too() {
    check(
        "open 1
         dispatch 1 a
         parallel 1 p
         broken 1 0
         done 1
         done 1 parallel",
        expect![[r#"
            open 1: 
            dispatch 1 a: run 1 a after 0ns
            parallel 1 p: run 1 p after 0ns
            broken 1 0: 
            done 1: 
            done 1 parallel: gone 1 0
        "#]],
    );
}

#[test]
fn a_kicked_session_executes_nothing_more() {
    check(
        "open 1
         dispatch 1 a
         dispatch 1 b
         kick 1
         dispatch 1 c
         done 1
         broken 1 118
         broken 1 118",
        expect![[r#"
            open 1: 
            dispatch 1 a: run 1 a after 0ns
            dispatch 1 b: 
            kick 1: drop 1 b Kicked
            dispatch 1 c: drop 1 c Kicked
            done 1: 
            broken 1 118: gone 1 118
            broken 1 118: ignored 1
        "#]],
    );
}

#[test]
fn a_session_past_its_bound_is_busy_and_others_are_not() {
    check(
        "open 1
         open 2
         dispatch 1 a
         dispatch 1 b
         parallel 1 c
         dispatch 1 d
         dispatch 2 e
         done 1
         dispatch 1 f",
        expect![[r#"
            open 1: 
            open 2: 
            dispatch 1 a: run 1 a after 0ns
            dispatch 1 b: 
            parallel 1 c: run 1 c after 0ns
            dispatch 1 d: refuse 1 d Busy
            dispatch 2 e: run 2 e after 0ns
            done 1: run 1 b after 4ms
            dispatch 1 f: 
        "#]],
    );
}

/// What had not begun is dropped and counted, what runs ends, each session is over once.
///
/// Holds: Z-08.
#[test]
fn a_broken_connection_ends_every_session_once() {
    check(
        "open 1
         open 2
         dispatch 1 a
         dispatch 1 b
         closed 172
         open 3
         dispatch 2 c
         done 1",
        expect![[r#"
            open 1: 
            open 2: 
            dispatch 1 a: run 1 a after 0ns
            dispatch 1 b: 
            closed 172: drop 1 b Closed, gone 2 172
            open 3: ignored 3
            dispatch 2 c: drop 2 c NotOpen
            done 1: gone 1 172
        "#]],
    );
}

/// Holds: G-13.
#[test]
fn while_draining_nothing_new_begins_and_the_last_end_is_told() {
    check(
        "open 1
         dispatch 1 a
         dispatch 1 b
         drain
         dispatch 1 c
         done 1
         done 1",
        expect![[r#"
            open 1: 
            dispatch 1 a: run 1 a after 0ns
            dispatch 1 b: 
            drain: 
            dispatch 1 c: refuse 1 c ShuttingDown
            done 1: run 1 b after 3ms
            done 1: idle
        "#]],
    );
}

/// What happens next in a random run.
#[derive(Debug, Clone)]
enum Random {
    Open(u64),
    Dispatch(u64, bool),
    Done(usize),
    Kick(u64),
    Broken(u64),
    Closed,
}

fn random() -> impl Strategy<Value = Random> {
    prop_oneof![
        2 => (0..4u64).prop_map(Random::Open),
        8 => (0..4u64, any::<bool>()).prop_map(|(sid, parallel)| Random::Dispatch(sid, parallel)),
        6 => any::<prop::sample::Index>().prop_map(|index| Random::Done(index.index(1 << 16))),
        1 => (0..4u64).prop_map(Random::Kick),
        2 => (0..4u64).prop_map(Random::Broken),
        1 => Just(Random::Closed),
    ]
}

/// What a player and a game may rely on, kept beside the core.
#[derive(Default)]
struct Believer {
    /// Running requests: session, number, whether it overlaps.
    running: Vec<(u64, u64, bool)>,
    /// The number of the last request begun, by session.
    begun: BTreeMap<u64, u64>,
    open: BTreeMap<u64, bool>,
    accounted: u64,
}

impl Believer {
    fn see(&mut self, action: Action<(), u64>) {
        match action {
            Action::Run { sid, job, parallel, .. } => {
                let kicked = self.open.get(&sid.0).copied();
                assert_eq!(kicked, Some(false), "session {sid} is not open, or kicked, and runs {job}");
                if !parallel {
                    let busy = self.running.iter().any(|&(other, _, parallel)| other == sid.0 && !parallel);
                    assert!(!busy, "two requests of {sid} at once");
                    let last = self.begun.insert(sid.0, job);
                    assert!(last.is_none_or(|last| last < job), "{job} of {sid} was overtaken");
                }
                self.running.push((sid.0, job, parallel));
            }
            Action::Refuse { .. } | Action::Drop { .. } => self.accounted += 1,
            Action::Gone { sid, .. } => {
                assert!(self.open.remove(&sid.0).is_some(), "{sid} is over twice");
                assert!(
                    !self.running.iter().any(|&(other, ..)| other == sid.0),
                    "{sid} is over and still runs"
                );
                self.begun.remove(&sid.0);
            }
            Action::Ignored { .. } | Action::Idle => {}
        }
    }
}

proptest! {
    /// Holds: Q13, Z-11.
    #[test]
    fn every_request_ends_once_and_in_order(run in prop::collection::vec(random(), 0..200)) {
        let mut core = Sessions::<(), u64>::new(3);
        let (mut believer, mut sent, mut done, mut closed) = (Believer::default(), 0u64, 0u64, false);
        let finish = vec![Random::Closed].into_iter().chain((0..200).map(|_| Random::Done(0)));
        for random in run.into_iter().chain(finish) {
            let event = match random {
                Random::Open(sid) => {
                    if !closed {
                        believer.open.entry(sid).or_insert(false);
                    }
                    Event::Opened { sid: LinkSid(sid), state: () }
                }
                Random::Dispatch(sid, parallel) => {
                    sent += 1;
                    Event::Dispatch { sid: LinkSid(sid), job: sent, parallel }
                }
                Random::Done(_) if believer.running.is_empty() => continue,
                Random::Done(index) => {
                    let (sid, _, parallel) = believer.running.remove(index % believer.running.len());
                    done += 1;
                    Event::Done { sid: LinkSid(sid), parallel }
                }
                Random::Kick(sid) => {
                    believer.open.entry(sid).and_modify(|kicked| *kicked = true);
                    Event::Kicked { sid: LinkSid(sid) }
                }
                Random::Broken(sid) => Event::Broken { sid: LinkSid(sid), cause: 0 },
                Random::Closed => {
                    closed = true;
                    Event::Closed { cause: 1 }
                }
            };
            let mut actions = Vec::new();
            core.step(Mono::ZERO, event, &mut actions);
            core.check();
            actions.into_iter().for_each(|action| believer.see(action));
        }
        prop_assert!(core.is_empty() && believer.open.is_empty() && believer.running.is_empty());
        prop_assert_eq!(sent, done + believer.accounted);
    }
}
