//! What was seen of a run, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::{Epoch, Retry};
use client::Error;
use linkstead::LinkRef;
use parking_lot::Mutex;

use crate::plan::{PLAYERS, Plan, Theme};

/// How long a player waits for an answer, or for the news that none may come.
pub const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A cluster that has just started serves everybody from here on.
const SETTLED: Duration = Duration::from_secs(3);

/// One for the whole run. A clone is the same.
pub type Shared = Arc<Mutex<Ledger>>;

/// A request: whose, and which of theirs.
type Key = (String, u64);

/// Everything that hosts and players write down.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Where each request ran.
    runs: BTreeMap<Key, Vec<String>>,
    /// How each request ended, with its beginning.
    ends: BTreeMap<Key, (Duration, Result<(), Error>)>,
    /// Whose session each is.
    accounts: BTreeMap<LinkRef, String>,
    epochs: BTreeMap<String, Epoch>,
    /// When each player was told that what it asks may be lost, as when its provider is.
    told: BTreeMap<String, Vec<Duration>>,
    /// What broke a promise, in the order it was seen.
    wrong: Vec<String>,
}

impl Ledger {
    /// A handler runs this request, at this start of this node.
    pub fn ran(&mut self, account: &str, number: u64, link: LinkRef, at: String) {
        let owner = self.accounts.entry(link.clone()).or_insert_with(|| account.to_owned());
        if owner != account {
            let wrong = format!("session {link} was {owner}'s and is {account}'s");
            self.wrong.push(wrong);
        }
        self.runs.entry((account.to_owned(), number)).or_default().push(at);
    }

    /// A node has started.
    pub fn started(&mut self, node: &str, epoch: Epoch) {
        let before = self.epochs.insert(node.to_owned(), epoch);
        if before.is_some_and(|before| before >= epoch) {
            self.wrong.push(format!("{node} starts with epoch {epoch} after {before:?}"));
        }
    }

    /// A player hears a report.
    pub fn told(&mut self, account: &str, at: Duration) {
        self.told.entry(account.to_owned()).or_default().push(at);
    }

    /// A player has its answer, or hears that there is none.
    pub fn ended(&mut self, account: &str, number: u64, began: Duration, end: Result<(), Error>) {
        if self.ends.insert((account.to_owned(), number), (began, end)).is_some() {
            self.wrong(format!("{account}'s request {number} ended twice"));
        }
    }

    pub fn wrong(&mut self, what: String) {
        self.wrong.push(what);
    }

    /// A player's requests that were answered.
    pub fn answered(&self, account: &str) -> BTreeSet<u64> {
        let answered =
            |((of, _), (_, end)): &(&Key, &(Duration, Result<(), Error>))| of == account && end.is_ok();
        self.ends.iter().filter(answered).map(|((_, number), _)| *number).collect()
    }

    /// How many of a player's requests ended because it waited no longer.
    pub fn given_up(&self, account: &str) -> u64 {
        let given_up = |((of, _), (_, end)): (&Key, &(Duration, Result<(), Error>))| {
            of == account && matches!(end, Err(Error::Timeout(_)))
        };
        self.ends.iter().filter(|end| given_up(*end)).count() as u64
    }

    /// Requests that were answered, and all.
    pub fn counts(&self) -> (usize, usize) {
        (self.ends.values().filter(|(_, end)| end.is_ok()).count(), self.ends.len())
    }

    /// Everything that broke a promise.
    pub fn judge(mut self, plan: &Plan) -> Vec<String> {
        let mut wrong = std::mem::take(&mut self.wrong);
        for (key, runs) in self.runs.iter().filter(|(_, runs)| runs.len() > 1) {
            wrong.push(format!("request {key:?} ran more than once: {runs:?}"));
        }
        for (key, (began, end)) in &self.ends {
            wrong.extend(self.judge_end(plan, key, *began, end).map(|why| format!("request {key:?}: {why}")));
        }
        for player in PLAYERS {
            let served = |((account, _), (began, end)): (&Key, &(Duration, Result<(), Error>))| {
                account == player && *began >= plan.recovered() && end.is_ok()
            };
            if !self.ends.iter().any(served) {
                wrong.push(format!("{player} is not served again"));
            }
        }
        wrong
    }

    fn judge_end(&self, plan: &Plan, key: &Key, began: Duration, end: &Result<(), Error>) -> Option<String> {
        let ran = self.runs.contains_key(key);
        let error = match end {
            Ok(()) if ran => return None,
            Ok(()) => return Some("was answered and never ran".to_owned()),
            Err(error) => error,
        };
        if began >= plan.recovered() {
            return Some(format!("began at {began:?}, after everything had recovered: {error}"));
        }
        if began > SETTLED && undisturbed(plan) {
            return Some(format!(
                "began at {began:?}, and nothing between player and game was disturbed: {error}"
            ));
        }
        match error {
            Error::Timeout(_) if plan.cuts(&key.0) || self.was_told(&key.0, began) => None,
            Error::Timeout(_) => {
                Some(format!("began at {began:?}, and nobody said that it is lost: {error}"))
            }
            _ => match error.retry() {
                // What is told to be safe to repeat must not have run.
                Retry::Now | Retry::After(_) if ran => Some(format!("ran although it was refused: {error}")),
                Retry::Now | Retry::After(_) | Retry::Unknown => None,
                Retry::Never => Some(error.to_string()),
            },
        }
    }

    /// Whether a player heard of a loss while it waited for what it asked then.
    fn was_told(&self, account: &str, began: Duration) -> bool {
        let waited = began..=began + ANSWER_MAX;
        self.told.get(account).is_some_and(|told| told.iter().any(|at| waited.contains(at)))
    }
}

/// Whether the way of a request was whole all the time: the directory is not on it.
fn undisturbed(plan: &Plan) -> bool {
    matches!(plan.theme, Theme::Calm | Theme::LostDirectory)
}
