//! What an operator asks of a running arbiter: answered on its thread, between two reads, and never without a bound.

use base::NodeId;
use tokio::sync::oneshot;

use super::hub::Hub;
use crate::arbiter::{Arbiter, Key, Mode, Seq};

/// Questions that wait for the arbiter's thread; more are refused.
pub(super) const QUESTIONS_MAX: usize = 64;

/// Why there is no answer. Nothing was done; ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    #[error("{QUESTIONS_MAX} questions wait already")]
    Full,
    #[error("the arbiter stops")]
    Stopping,
}

#[derive(Debug)]
pub(super) enum Question {
    Locks { most: usize, answer: oneshot::Sender<Vec<Lock>> },
    Record { key: Vec<u8>, answer: oneshot::Sender<Record> },
}

impl Question {
    pub fn answer(self, hub: &Hub) {
        // Who asked may have given up.
        match self {
            Question::Locks { most, answer } => drop(answer.send(hub.locks(most))),
            Question::Record { key, answer } => drop(answer.send(hub.record(&key))),
        }
    }
}

/// A record that is waited for often.
#[derive(Debug, Clone, PartialEq)]
pub struct Lock {
    pub key: Box<[u8]>,
    /// Requests a second that had to wait.
    pub per_second: f64,
    pub record: Record,
}

/// Who holds a record, and who waits for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    pub holders: Vec<(NodeId, Mode, Seq)>,
    /// How many there are, of which those are the first.
    pub holders_count: usize,
    pub waiting: Vec<(NodeId, Mode)>,
    pub waiting_count: usize,
}

impl Lock {
    /// Holders and waiters that a list of records names for each.
    pub const NAMES_MAX: usize = 8;
    /// Records in one answer.
    pub const COUNT_MAX: usize = 100;
}

impl Record {
    /// Holders and waiters that an answer about one record names.
    pub const NAMES_MAX: usize = 1_000;

    pub(super) fn of(arbiter: &Arbiter, key: Key, most: usize) -> Self {
        let (holders, waiting) = (arbiter.lookup(key), arbiter.waiting(key));
        let (holders_count, waiting_count) = (holders.len(), waiting.len());
        let holders = holders.into_iter().take(most).map(|(node, mode, seq)| (node.clone(), mode, seq));
        let waiting = waiting.into_iter().take(most).map(|(node, mode)| (node.clone(), mode));
        Self { holders: holders.collect(), holders_count, waiting: waiting.collect(), waiting_count }
    }
}
