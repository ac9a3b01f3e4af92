//! Scripts in, text out: the life of one record. And a random life, in which each Reduce is answered once in the end.

mod random;

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

/// The core with what its cell would know.
#[derive(Debug, Default)]
struct World {
    permit: Permit,
    now: Mono,
    dirty: bool,
}

/// Runs each line and shows what came of it, and how the record may be used after it.
///
/// `share|modify REQUEST`, `gave up`, `granted REQUEST share|modify SEQ [reload] [least VERSION]`, `denied REQUEST`,
/// `loaded SEQ`, `failed SEQ`, `reduce SEQ share|invalid`, `unpinned`, `look`, `renumbered SEQ|none`, `ask again`, `lost`,
/// `let go`, `wait MS`, `dirty`, `clean`.
fn check(script: &str, expect: Expect) {
    let mut world = World::default();
    let mut out = String::new();
    for line in script.lines().map(str::trim) {
        let before = world.permit.usable();
        let _ = writeln!(out, "> {line}");
        for action in world.line(line) {
            let _ = writeln!(out, "  {}", show(action));
        }
        if world.permit.usable() != before {
            let _ = writeln!(out, "  = {:?}", world.permit.usable());
        }
    }
    expect.assert_eq(&out);
}

impl World {
    fn line(&mut self, line: &str) -> Vec<Action> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        match words[0] {
            "wait" => self.now += Span::millis(number(1)),
            "dirty" => self.dirty = true,
            "clean" => self.dirty = false,
            _ => return self.step(event(&words)),
        }
        Vec::new()
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.permit.step(Facts { now: self.now, dirty: self.dirty }, event, &mut actions);
        actions
    }
}

fn mode(word: &str) -> Mode {
    match word {
        "share" => Mode::Share,
        "modify" => Mode::Modify,
        "invalid" => Mode::Invalid,
        other => panic!("no such mode: {other}"),
    }
}

fn event(words: &[&str]) -> Event {
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    match words {
        ["share" | "modify", _] => Event::Want { mode: mode(words[0]), request: number(1) },
        ["gave", "up"] => Event::GaveUp,
        ["granted", ..] => {
            let least = words.iter().position(|word| *word == "least").map_or(0, |at| number(at + 1));
            let must_reload = words.contains(&"reload");
            let (request, seq) = (number(1), number(3));
            Event::Granted { request, mode: mode(words[2]), seq, must_reload, version_min: least }
        }
        ["denied", _] => Event::Denied { request: number(1) },
        ["loaded", _] => Event::Loaded { seq: number(1) },
        ["failed", _] => Event::NotLoaded { seq: number(1) },
        ["reduce", ..] => Event::Reduce { seq: number(1), to: mode(words[2]) },
        ["unpinned"] => Event::Unpinned,
        ["look"] => Event::Look,
        ["renumbered", "none"] => Event::Renumbered { seq: None },
        ["renumbered", _] => Event::Renumbered { seq: Some(number(1)) },
        ["ask", "again"] => Event::AskAgain,
        ["lost"] => Event::Lost,
        ["let", "go"] => Event::LetGo,
        other => panic!("no such line: {other:?}"),
    }
}

fn show(action: Action) -> String {
    match action {
        Action::Ask { request, want, have } => format!("ask for {want:?} as {request}, has {have}"),
        Action::Load { seq, version_min } => format!("load for {seq}, at least {version_min}"),
        Action::Drop => "drop".to_owned(),
        Action::Wake => "wake".to_owned(),
        Action::Fail => "fail".to_owned(),
        Action::Flush => "flush".to_owned(),
        Action::LookAt { at } => format!("look at {} ms", at.0 / 1_000),
        Action::Reduced { seq, to } => format!("reduced {seq} to {to:?}"),
        Action::Forget => "forget".to_owned(),
    }
}

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
