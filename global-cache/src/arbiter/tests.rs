//! Scripts in, text out. Providers have letters, records numbers, times are milliseconds since the start.

mod acquiring;
mod leaving;
mod random;
mod restarting;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base::{Epoch, Generation, NodeId, RequestId, Span};
use expect_test::Expect;

use super::*;

/// The arbiter with its sessions by their letters.
struct World {
    arbiter: Arbiter,
    now: Mono,
    sessions: BTreeMap<String, SessionId>,
    names: BTreeMap<SessionId, String>,
    conns: u64,
    joining: BTreeMap<Generation, String>,
}

fn settings() -> Settings {
    Settings { grace: Span::ZERO, held_max: 4, sessions_max: 4, waiting_max: 3, ..Settings::new(Epoch(7)) }
}

fn key(number: u64) -> Key {
    Key(u128::from(base::hash::mix(number)) << 64 | u128::from(number))
}

/// Runs each line and shows what came of it.
///
/// `A login [EPOCH [STORAGE]]`, `A share|modify KEY [have SEQ] [as REQUEST]`, `A release KEY SEQ [FLUSHED]`,
/// `A reduced KEY SEQ share|invalid [FLUSHED]`, `A refused KEY SEQ MS`, `A reassert KEY share|modify`, `A renew`, `A bye`,
/// `A many KEY…`, `wait MS` (ticks on the way, and everybody named after it renews), `who KEY`, `status`.
fn check_with(settings: Settings, script: &str, expect: Expect) {
    let mut world = World {
        arbiter: Arbiter::new(settings, Mono::ZERO),
        now: Mono::ZERO,
        sessions: BTreeMap::new(),
        names: BTreeMap::new(),
        conns: 0,
        joining: BTreeMap::new(),
    };
    let mut out = String::new();
    for line in script.lines().map(str::trim) {
        let _ = writeln!(out, "> {line}");
        world.line(line, &mut out);
        world.arbiter.check();
    }
    expect.assert_eq(&out);
}

fn check(script: &str, expect: Expect) {
    check_with(settings(), script, expect);
}

impl World {
    fn line(&mut self, line: &str, out: &mut String) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "wait" => return self.wait(words[1].parse().unwrap(), &words[2..], out),
            "who" => {
                let mut who = self.arbiter.lookup(key(words[1].parse().unwrap()));
                who.sort();
                let who: String =
                    who.iter().map(|(node, mode, seq)| format!(" {node} {mode:?} {seq}")).collect();
                return writeln!(out, " {}", if who.is_empty() { " nobody" } else { &who }).unwrap();
            }
            "status" => {
                let Status { sessions, keys, waited_for, counts, .. } = self.arbiter.status();
                let Counts { granted, denied, reduces, late, evicted } = counts;
                return writeln!(
                    out,
                    "  {sessions} sessions, {keys} keys, {waited_for} waited for; {granted} granted, {denied} denied, \
                     {reduces} reduces, {late} late, {evicted} evicted"
                )
                .unwrap();
            }
            _ => {}
        }
        let event = self.event(words[0], &words[1..]);
        self.step(event, out);
    }

    fn event(&mut self, who: &str, words: &[&str]) -> Event {
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let after = |word: &str| words.iter().position(|other| *other == word).and_then(|at| number(at + 1));
        let nobody = SessionId { slot: 9, number: 9 };
        let session = self.sessions.get(who).copied().unwrap_or(nobody);
        let record = || key(number(1).unwrap());
        let mode = |word: &str| match word {
            "share" => Mode::Share,
            "modify" => Mode::Modify,
            _ => Mode::Invalid,
        };
        match words[0] {
            "login" => {
                self.conns += 1;
                let (conn, node) = (Generation(self.conns), NodeId::new(who).unwrap());
                self.joining.insert(conn, who.to_owned());
                let storages = number(2).map(|id| Storage { backend: "main".to_owned(), id: id.into() });
                let storages = storages.into_iter().collect();
                Event::Login { conn, node, epoch: Epoch(number(1).unwrap_or(1)), storages }
            }
            "share" | "modify" | "invalid" => {
                let request = RequestId(after("as").unwrap_or(1));
                let have = after("have").map(Seq);
                Event::Acquire { session, ask: Ask { request, key: record(), want: mode(words[0]), have } }
            }
            "many" => {
                let ask = |(at, word): (usize, &&str)| Ask {
                    request: RequestId(at as u64),
                    key: key(word.parse().unwrap()),
                    want: Mode::Modify,
                    have: None,
                };
                Event::AcquireMany { session, asks: words[1..].iter().enumerate().map(ask).collect() }
            }
            "release" => {
                let (seq, flushed) = (Seq(number(2).unwrap()), number(3).unwrap_or(0));
                Event::Release { session, key: record(), seq, flushed }
            }
            "reduced" => {
                let (seq, to, flushed) = (Seq(number(2).unwrap()), mode(words[3]), number(4).unwrap_or(0));
                Event::Reduced { session, key: record(), seq, to, flushed }
            }
            "refused" => {
                let (seq, until) = (Seq(number(2).unwrap()), Span::millis(number(3).unwrap()));
                Event::Refused { session, key: record(), seq, until }
            }
            "reassert" => Event::Reassert { session, key: record(), mode: mode(words[2]) },
            "renew" => Event::Renew { session },
            "bye" => Event::Bye { session },
            other => panic!("no such line: {other}"),
        }
    }

    fn wait(&mut self, ms: u64, renewing: &[&str], out: &mut String) {
        for at in 1..=ms.div_ceil(50) {
            self.now += Span::millis(50.min(ms - (at - 1) * 50));
            for who in renewing.iter().filter(|_| at % 20 == 0) {
                let session = self.sessions[*who];
                self.arbiter.step(self.now, Event::Renew { session }, &mut Vec::new());
            }
            let mut text = String::new();
            self.step(Event::Tick, &mut text);
            if !text.is_empty() {
                let _ = write!(out, "  at {} ms:\n{text}", self.now.since(Mono::ZERO).0 / 1_000);
            }
        }
    }

    fn step(&mut self, event: Event, out: &mut String) {
        let mut actions = Vec::new();
        self.arbiter.step(self.now, event, &mut actions);
        for action in actions {
            self.show(action, out);
        }
    }

    fn show(&mut self, action: Action, out: &mut String) {
        let number = |key: Key| key.0 as u64;
        let name = |id: &SessionId| self.names.get(id).cloned().unwrap_or_else(|| "?".to_owned());
        let _ = match action {
            Action::Welcome { conn, session, fence, fresh, .. } => {
                let who = self.joining[&conn].clone();
                let again = if fresh { "" } else { " again" };
                let text = writeln!(out, "  {who} welcome{again}, fence {fence}");
                self.names.insert(session, who.clone());
                self.sessions.insert(who, session);
                text
            }
            Action::Refuse { conn, why } => writeln!(out, "  {} refused: {why:?}", self.joining[&conn]),
            Action::Renewed { session } => writeln!(out, "  {} renewed", name(&session)),
            Action::Lost { session } => writeln!(out, "  {} lost", name(&session)),
            Action::Close { conn } => writeln!(out, "  connection {conn} of {} closed", self.joining[&conn]),
            Action::Grant { session, grant, .. } => {
                let Grant { key, mode, seq, must_reload, version_min, evicted } = grant;
                let reload = if must_reload { ", reload" } else { "" };
                let least = if version_min > 0 { format!(" at least {version_min}") } else { String::new() };
                let evicted: String = evicted
                    .iter()
                    .map(|evicted| {
                        let node = evicted.node.as_ref().map_or("all", NodeId::as_str);
                        format!(", {node} below {}", evicted.below)
                    })
                    .collect();
                writeln!(
                    out,
                    "  {} has {} {mode:?} {seq}{reload}{least}{evicted}",
                    name(&session),
                    number(key)
                )
            }
            Action::Deny { session, why, retry_after, .. } => {
                writeln!(out, "  {} denied: {why:?}, again after {retry_after}", name(&session))
            }
            Action::Reduce { session, key, seq, to, .. } => {
                writeln!(out, "  {} is to reduce {} {seq} to {to:?}", name(&session), number(key))
            }
            Action::Reasserted { session, key, seq } => {
                let seq = seq.map_or_else(|| "no more".to_owned(), |seq| format!("as {seq}"));
                writeln!(out, "  {} holds {} {seq}", name(&session), number(key))
            }
        };
    }
}
