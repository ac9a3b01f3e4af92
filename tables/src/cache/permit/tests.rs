//! Scripts in, text out: the life of one record. And a random life, in which each Reduce is answered once in the end.

mod ends;
mod life;
mod random;

use std::fmt::Write as _;

use expect_test::Expect;

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
