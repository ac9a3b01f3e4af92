//! Scripts in, text out; then any order of signals, requests and time.

use std::fmt::Write;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn budgets() -> Budgets {
    Budgets {
        propagation: Span::secs(5),
        close: Span::secs(2),
        drain: Span::secs(15),
        save: Span::secs(5),
        grace: Span::secs(30),
    }
}

fn run(core: &mut Lifecycle, now: &mut Mono, script: &str) -> String {
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let _ = writeln!(out, "{line}");
        let mut actions = Vec::new();
        match line.split_once(' ').unwrap_or((line, "")) {
            ("stop", _) => core.step(*now, Event::Stop, &mut actions),
            ("hurry", _) => core.step(*now, Event::Hurry, &mut actions),
            ("closed", _) => core.step(*now, Event::Done { stage: Stage::Close, error: None }, &mut actions),
            ("saved", "") => core.step(*now, Event::Done { stage: Stage::Save, error: None }, &mut actions),
            ("saved", why) => {
                let error = Some(why.to_owned());
                core.step(*now, Event::Done { stage: Stage::Save, error }, &mut actions);
            }
            ("begin", _) => {
                let _ = writeln!(out, "  {}", if core.begin() { "taken" } else { "refused" });
            }
            ("end", _) => core.end(*now, &mut actions),
            (time, _) => {
                *now += time[1..].parse::<crate::config::Time>().unwrap().span();
                core.step(*now, Event::Tick, &mut actions);
            }
        }
        core.check();
        for action in actions {
            let _ = match action {
                Action::Started { stage, budget } => writeln!(out, "  {stage:?} begins, {budget}"),
                Action::Ended { stage, took, how } => writeln!(out, "  {stage:?} ends after {took}: {how:?}"),
                Action::Exit(outcome) => {
                    writeln!(out, "  exit, cut off {}, {:?}", outcome.cut_off, outcome.save_error)
                }
                other => writeln!(out, "  {other:?}"),
            };
        }
    }
    out
}

fn check(script: &str, expected: Expect) {
    let mut core = Lifecycle::new(budgets()).unwrap();
    expected.assert_eq(&run(&mut core, &mut Mono::ZERO.clone(), script));
}

/// Holds: G-02, G-03, G-05, G-08, G-11, G-13, G-14.
#[test]
fn the_order_is_fixed_and_requests_end_first() {
    check(
        "begin
         stop
         begin
         +5s
         begin
         closed
         end
         +1s
         end
         stop
         saved",
        expect![[r#"
            begin
              taken
            stop
              ReadinessOff
              Propagate begins, 5s
            begin
              taken
            +5s
              Propagate ends after 5s: Done
              Close begins, 2s
              CloseListeners
            begin
              refused
            closed
              Close ends after 0ns: Done
              Drain begins, 15s
            end
            +1s
            end
              Drain ends after 1s: Done
              Save begins, 5s
              Save
            stop
            saved
              Save ends after 0ns: Done
              exit, cut off 0, None
        "#]],
    );
}

/// Holds: G-06, G-15.
#[test]
fn a_drain_that_never_ends_is_forced_and_still_saves() {
    check(
        "begin
         stop
         +5s
         +2s
         closed
         +15s
         end
         saved disk full",
        expect![[r#"
            begin
              taken
            stop
              ReadinessOff
              Propagate begins, 5s
            +5s
              Propagate ends after 5s: Done
              Close begins, 2s
              CloseListeners
            +2s
              Close ends after 2s: TimedOut
              Drain begins, 15s
            closed
            +15s
              Drain ends after 15s: TimedOut
              Save begins, 5s
              Save
            end
            saved disk full
              Save ends after 0ns: Failed
              exit, cut off 1, Some("disk full")
        "#]],
    );
}

/// Holds: G-06.
#[test]
fn it_exits_within_the_sum_of_budgets_when_everything_hangs() {
    check(
        "begin
         stop
         +5s
         +2s
         +15s
         +5s
         saved
         begin",
        expect![[r#"
            begin
              taken
            stop
              ReadinessOff
              Propagate begins, 5s
            +5s
              Propagate ends after 5s: Done
              Close begins, 2s
              CloseListeners
            +2s
              Close ends after 2s: TimedOut
              Drain begins, 15s
            +15s
              Drain ends after 15s: TimedOut
              Save begins, 5s
              Save
            +5s
              Save ends after 5s: TimedOut
              exit, cut off 1, Some("not finished within 5s")
            saved
            begin
              refused
        "#]],
    );
}

/// Holds: G-09.
#[test]
fn a_second_signal_skips_the_waits_and_still_saves() {
    check(
        "begin
         stop
         +1s
         hurry
         hurry
         saved",
        expect![[r#"
            begin
              taken
            stop
              ReadinessOff
              Propagate begins, 5s
            +1s
            hurry
              Propagate ends after 1s: Skipped
              Close begins, 2s
              CloseListeners
              Close ends after 0ns: Skipped
              Drain begins, 15s
              Drain ends after 0ns: Skipped
              Save begins, 5s
              Save
            hurry
            saved
              Save ends after 0ns: Done
              exit, cut off 1, None
        "#]],
    );
}

/// Holds: G-16.
#[test]
fn nothing_in_flight_is_no_wait() {
    let none = Budgets { propagation: Span::ZERO, ..budgets() };
    let mut core = Lifecycle::new(none).unwrap();
    expect![[r#"
        stop
          ReadinessOff
          Propagate begins, 0ns
          Propagate ends after 0ns: Done
          Close begins, 2s
          CloseListeners
        closed
          Close ends after 0ns: Done
          Drain begins, 15s
          Drain ends after 0ns: Done
          Save begins, 5s
          Save
        saved
          Save ends after 0ns: Done
          exit, cut off 0, None
        stop
        hurry
        begin
          refused
    "#]]
    .assert_eq(&run(&mut core, &mut Mono::ZERO.clone(), "stop\nclosed\nsaved\nstop\nhurry\nbegin"));
}

/// Holds: G-07, BI-111.
#[test]
fn budgets_that_do_not_fit_are_refused_with_their_numbers() {
    let why = Lifecycle::new(Budgets { grace: Span::secs(27), ..budgets() }).unwrap_err().to_string();
    assert!(why.contains("5s + close 2s + drain 15s + save 5s = 27s") && why.contains("grace 27s"), "{why}");
    assert!(Budgets::NONE.check().is_ok());
}

#[derive(Debug, Clone)]
enum Step {
    Begin,
    End,
    Stop,
    Hurry,
    Done(bool),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Begin),
        5 => Just(Step::End),
        1 => Just(Step::Stop),
        1 => Just(Step::Hurry),
        2 => any::<bool>().prop_map(Step::Done),
        3 => (0..6_000u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    /// Holds: G-12, G-16, G-17.
    #[test]
    fn whatever_happens_it_counts_right_and_saves_once(steps in steps()) {
        let mut core = Lifecycle::new(budgets()).unwrap();
        let (mut now, mut actions) = (Mono::ZERO, Vec::new());
        let (mut open, mut refused, mut drained) = (0u64, 0u64, false);
        let end = [Step::Stop, Step::Wait(5_000), Step::Wait(2_000), Step::Wait(15_000), Step::Wait(5_000)];
        for step in steps.into_iter().chain(end) {
            match step {
                Step::Begin => {
                    let state = core.state();
                    let taken = core.begin();
                    prop_assert_eq!(taken, state == State::Running);
                    prop_assert!(!(taken && drained), "a request was counted after the drain");
                    if taken { open += 1 } else { refused += 1 }
                }
                Step::End if open > 0 => {
                    open -= 1;
                    core.end(now, &mut actions);
                }
                Step::End => {}
                Step::Stop => core.step(now, Event::Stop, &mut actions),
                Step::Hurry => core.step(now, Event::Hurry, &mut actions),
                Step::Done(close) => {
                    let stage = if close { Stage::Close } else { Stage::Save };
                    core.step(now, Event::Done { stage, error: None }, &mut actions);
                }
                Step::Wait(ms) => {
                    now += Span::millis(ms);
                    core.step(now, Event::Tick, &mut actions);
                }
            }
            core.check();
            drained = actions.iter().any(|action| matches!(action, Action::Save));
            let numbers = core.statistics();
            prop_assert_eq!((numbers.in_flight, numbers.rejected), (open, refused));
            prop_assert_eq!(numbers.started, numbers.finished + numbers.in_flight);
        }
        prop_assert_eq!(core.state(), State::Closed);
        for once in [Action::ReadinessOff, Action::CloseListeners, Action::Save] {
            prop_assert_eq!(actions.iter().filter(|action| **action == once).count(), 1);
        }
        prop_assert_eq!(actions.iter().filter(|action| matches!(action, Action::Exit(_))).count(), 1);
    }
}
