//! Rows: an input, what came of it, and what should have.

use std::collections::BTreeSet;
use std::time::Duration;

use super::client::{Client, Got};
use super::elsewhere;
use super::world::World;

/// Memory that one input may leave the gateway with, and all of them together. Most of it is what the allocator keeps.
const GROWN_KIB_MAX: i64 = 16 * 1024;
const GROWN_KIB_MAX_ALL: i64 = 64 * 1024;
/// The neighbour plays on, this often while one input is tried.
const ASKS: Duration = Duration::from_millis(20);

/// What becomes of the connection that the input came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Open,
    Closed,
    /// There was none: a process did not start.
    NotStarted,
}

impl After {
    const fn as_str(self) -> &'static str {
        match self {
            After::Open => "open",
            After::Closed => "closed",
            After::NotStarted => "not started",
        }
    }
}

/// All rows so far.
pub struct Table {
    neighbour: Client,
    kib_before: i64,
    tried: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Table {
    pub async fn new(world: &World) -> Self {
        println!(
            "{:<7} {:<52} {:<26} {:<11} {:>9}  neighbour",
            "id", "input", "answer", "connection", "grown KiB"
        );
        let neighbour = world.player("neighbour").await;
        Self { neighbour, kib_before: world.kib(), tried: BTreeSet::new(), wrong: Vec::new() }
    }

    /// Tries one input while the neighbour plays on. `expected`: the code's name, `answered` or `nothing`, and what
    /// becomes of the connection.
    pub async fn row(
        &mut self,
        world: &World,
        id: &str,
        input: &str,
        expected: (&str, After),
        act: impl Future<Output = Got>,
    ) {
        let before = world.kib();
        let mut act = std::pin::pin!(act);
        let got = loop {
            tokio::select! {
                got = &mut act => break got,
                // Sleep: the neighbour's own pace.
                () = tokio::time::sleep(ASKS) => self.neighbour.is_answered().await,
            }
        };
        self.neighbour.is_answered().await;
        let grown = world.kib() - before;
        self.note(id, input, expected, &got, Some(grown));
        if grown > GROWN_KIB_MAX {
            self.wrong.push(format!("{id} {input}: the gateway has grown by {grown} KiB"));
        }
        let all = world.kib() - self.kib_before;
        if all > GROWN_KIB_MAX_ALL {
            self.wrong.push(format!("{id} {input}: the gateway has grown by {all} KiB in all"));
        }
    }

    /// A row without a gateway.
    pub fn process(&mut self, id: &str, input: &str, expected: &str, got: String) {
        self.note(
            id,
            input,
            (expected, After::NotStarted),
            &Got { code: got, after: After::NotStarted },
            None,
        );
    }

    /// A row of another process than the gateways, which has grown by so much.
    pub fn measured(&mut self, id: &str, input: &str, expected: (&str, After), got: &Got, grown: i64) {
        self.note(id, input, expected, got, Some(grown));
        self.demand(grown <= GROWN_KIB_MAX, || format!("{id} {input}: it has grown by {grown} KiB"));
    }

    pub fn demand(&mut self, holds: bool, wrong: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(wrong());
        }
    }

    fn note(&mut self, id: &str, input: &str, expected: (&str, After), got: &Got, grown: Option<i64>) {
        let (code, after) = expected;
        let as_expected = got.code == code && got.after == after;
        let (grown, neighbour) = match grown {
            Some(kib) => (kib.to_string(), "answered"),
            None => ("-".to_owned(), "-"),
        };
        let mark = if as_expected { "" } else { "  WRONG" };
        println!(
            "{id:<7} {input:<52} {:<26} {:<11} {grown:>9}  {neighbour}{mark}",
            got.code,
            got.after.as_str()
        );
        if !as_expected {
            self.wrong.push(format!("{id} {input}: expected {code}, {}; got {got:?}", after.as_str()));
        }
        self.tried.insert(id.to_owned());
    }

    /// Every input of the catalogue is in the table or listed with its place, and not both for nothing.
    pub fn end(self) {
        println!();
        for (id, place, why) in elsewhere::LIST {
            println!("{id:<7} {why} ({place})");
        }
        let listed: BTreeSet<String> = elsewhere::LIST.iter().map(|(id, ..)| (*id).to_owned()).collect();
        let twice: Vec<_> = listed.intersection(&self.tried).collect();
        assert!(twice.is_empty(), "both in the table and listed: {twice:?}");
        let all: BTreeSet<String> =
            (1..=65).chain(81..=96).chain(108..=119).map(|n| format!("BI-{n:03}")).collect();
        let known: BTreeSet<String> = listed.union(&self.tried).cloned().collect();
        assert_eq!(known, all);
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}
