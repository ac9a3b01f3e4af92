//! Transactions of one provider: each worker has one at a time, and runs it again until it is over, as `tables` does it for
//! handlers, but step by step, so that anything can happen between its reads and its commit.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use base::{Mono, Span};
use tables::Mode;
use tables::cache::cell::CellRef;
use tables::cache::waiter::Waiter;
use tables::tx::{Committed, Finish};
use tables::{Error, Level, Tx, sim};

use crate::sim::Rng;

use super::keys::{Keys, Seen as Record, Shelves};
use super::ledger::Run;
use super::provider::Body;

/// How long a transaction may take with all its runs.
const TIMEOUT: Span = Span::secs(5);
/// Runs of that kind after which it waits for all its records one after another.
const OVERTAKEN_FREE: u32 = 3;

/// What a transaction does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Coins go from one to another; `early`: says first what it will change.
    Transfer {
        from: usize,
        to: usize,
        coins: i64,
        early: bool,
    },
    /// Reads, and changes what it has read.
    Bump {
        key: usize,
    },
    Remove {
        key: usize,
    },
    /// Reads all of these.
    Look {
        keys: Vec<usize>,
        level: Level,
    },
    /// Counts in what only this provider knows.
    Scratch,
}

/// What a run has seen and written.
#[derive(Debug, Default)]
pub struct Notes {
    pub reads: Vec<(usize, Record)>,
    pub writes: Vec<(usize, Option<i64>)>,
    pub scratch: Option<i64>,
}

/// Records that a run has waited for, and has its turn with.
#[derive(Debug)]
pub struct Turn {
    wants: sim::Wants,
    waiter: Arc<Waiter>,
}

/// Where a transaction stands.
// One of a worker: its size is nothing to save.
#[allow(clippy::large_enum_variant)]
pub enum State {
    Idle,
    /// Its code has run, and nothing is committed yet.
    Ran {
        tx: Tx,
        id: u64,
        notes: Notes,
        succeeded: bool,
    },
    Waiting(Turn),
    /// It waits for the lease.
    Lease,
    /// It was refused a record, and asks again after this time.
    Denied(Span),
    /// It runs again at its next step.
    Again,
    /// It is committed, and its answer waits for the storage.
    Durable {
        committed: Committed,
        id: u64,
    },
}

/// See the module.
pub struct Worker {
    pub state: State,
    pub op: Op,
    pub sync: bool,
    pub turns: Vec<Turn>,
    /// What it has yet to wait for, one after another.
    line: VecDeque<(CellRef, Mode)>,
    /// Runs that were overtaken, or that lost again what they had waited for.
    overtaken: u32,
    waited: BTreeSet<u128>,
    pub until: Mono,
    /// Steps that were planned before this one are void.
    pub ticket: u64,
    /// A step is planned for what it waits for.
    pub called: bool,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Answered; of this number.
    Acked(u64),
    Failed(Error),
    Late,
}

impl Op {
    /// Drawn; `writes`: a change of this record.
    pub fn draw(keys: &Keys, rng: &mut Rng) -> Self {
        let (money, count) = (keys.money(), keys.all.len());
        let one = |rng: &mut Rng| rng.below(count as u64) as usize;
        match rng.below(20) {
            0..8 => {
                let from = rng.below(money.len() as u64) as usize;
                let to = (from + 1 + rng.below(money.len() as u64 - 1) as usize) % money.len();
                let (coins, early) = (rng.between(1, 20) as i64, rng.one_in(2));
                Self::Transfer { from: money[from], to: money[to], coins, early }
            }
            8..13 => Self::change(keys, one(rng)),
            13 => {
                let key = one(rng);
                if keys.all[key].money { Self::change(keys, key) } else { Self::Remove { key } }
            }
            14..17 => Self::Look { keys: money, level: Level::Serializable },
            17 => Self::Look { keys: money, level: Level::Snapshot },
            18 => Self::Look { keys: vec![one(rng)], level: Level::Serializable },
            _ => Self::Scratch,
        }
    }

    /// Something that changes this record.
    pub fn change(keys: &Keys, key: usize) -> Self {
        if !keys.all[key].money {
            return Self::Bump { key };
        }
        let to = keys.money().into_iter().find(|other| *other != key).unwrap_or(key);
        Self::Transfer { from: key, to, coins: 1, early: false }
    }

    /// The transaction's code.
    fn run(&self, shelves: &Shelves, tx: &mut Tx, id: u64, notes: &mut Notes) -> Result<(), Error> {
        match self {
            Self::Transfer { from, to, coins, early } => {
                if *early {
                    shelves.want_mut(tx, &[*from, *to])?;
                }
                for (key, change) in [(*from, -coins), (*to, *coins)] {
                    let before = shelves.get(tx, key)?;
                    notes.reads.push((key, before));
                    let after = before.map_or(0, |(coins, _)| coins) + change;
                    shelves.put(tx, key, after, id)?;
                    notes.writes.push((key, Some(after)));
                }
            }
            Self::Bump { key } => {
                let before = shelves.get(tx, *key)?;
                notes.reads.push((*key, before));
                let after = before.map_or(0, |(coins, _)| coins) + 1;
                shelves.put(tx, *key, after, id)?;
                notes.writes.push((*key, Some(after)));
            }
            Self::Remove { key } => {
                let before = shelves.get(tx, *key)?;
                notes.reads.push((*key, before));
                if shelves.remove(tx, *key)? {
                    notes.writes.push((*key, None));
                }
            }
            Self::Look { keys, .. } => {
                for key in keys {
                    notes.reads.push((*key, shelves.get(tx, *key)?));
                }
            }
            Self::Scratch => notes.scratch = Some(shelves.scratch(tx)?),
        }
        Ok(())
    }

    fn level(&self) -> Level {
        if let Self::Look { level, .. } = self { *level } else { Level::Serializable }
    }
}

impl Worker {
    pub fn new() -> Self {
        let (op, turns) = (Op::Scratch, Vec::new());
        Self {
            state: State::Idle,
            op,
            sync: false,
            turns,
            line: VecDeque::new(),
            overtaken: 0,
            waited: BTreeSet::new(),
            until: Mono::ZERO,
            ticket: 0,
            called: false,
        }
    }

    pub fn begin(&mut self, op: Op, sync: bool, now: Mono) {
        (self.op, self.sync, self.until) = (op, sync, now + TIMEOUT);
        (self.overtaken, self.state) = (0, State::Again);
        self.waited.clear();
    }

    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Whether what it waits for has come, or never will.
    pub fn is_ready(&self, body: &Body) -> bool {
        match &self.state {
            State::Waiting(turn) => turn.waiter.outcome().is_some(),
            State::Lease => body.cache.is_leased(),
            State::Durable { committed, .. } => sim::durable(&body.cache, *committed).is_some(),
            _ => false,
        }
    }

    pub fn waits(&self) -> bool {
        matches!(self.state, State::Waiting(_) | State::Lease | State::Durable { .. })
    }

    /// Runs the code.
    pub fn run(&mut self, body: &Body, id: u64) {
        let mut tx = sim::begin(&body.cache, self.op.level());
        if self.sync {
            tx.require(tables::Durability::Sync);
        }
        let mut notes = Notes::default();
        let succeeded = self.op.run(&body.shelves, &mut tx, id, &mut notes).is_ok();
        self.state = State::Ran { tx, id, notes, succeeded };
    }

    /// Ends the run. What was committed, if anything was; the answer may have to wait.
    pub fn finish(&mut self, body: &Body, all: &Keys) -> (Option<(Run, Notes)>, Option<Ended>) {
        let State::Ran { tx, id, notes, succeeded } = std::mem::replace(&mut self.state, State::Again) else {
            return (None, None);
        };
        let leased = sim::leased_until(&body.cache) > body.cache.now();
        let (finish, wants, touched) = sim::finish(&body.cache, tx, succeeded);
        self.leave(body);
        match finish {
            Finish::Committed(committed) => {
                let sync = self.sync || notes.writes.iter().any(|(key, _)| all.all[*key].sync);
                let sync = sync && !notes.writes.is_empty();
                let (place, level) = (body.place, self.op.level());
                let (reads, writes) = (notes.reads.clone(), notes.writes.clone());
                let run = Run { id, place, level, reads, writes, sync, leased };
                let ended = if committed.waits {
                    sim::hurry(&body.cache);
                    self.state = State::Durable { committed, id };
                    None
                } else {
                    Some(Ended::Acked(id))
                };
                (Some((run, notes)), ended)
            }
            Finish::NotYet => {
                self.wait(body, wants, touched);
                (None, None)
            }
            Finish::NoLease => {
                self.state = State::Lease;
                (None, None)
            }
            Finish::Refused(error) => (None, Some(Ended::Failed(error))),
            // It runs again.
            Finish::Conflict | Finish::Aborted => {
                self.overtaken += 1;
                (None, None)
            }
        }
    }

    /// Waits for records: all at once, or one after another if that did not help.
    fn wait(&mut self, body: &Body, wants: sim::Wants, touched: sim::Wants) {
        let mut again = false;
        for (cell, _) in &wants {
            again |= !self.waited.insert(cell.lock().record);
        }
        self.overtaken += u32::from(again);
        if self.overtaken < OVERTAKEN_FREE {
            return self.turn(body, wants);
        }
        self.line = sim::in_order(touched.into_iter().chain(wants).collect()).into();
        self.next_in_line(body);
    }

    fn next_in_line(&mut self, body: &Body) {
        if let Some(next) = self.line.pop_front() {
            self.turn(body, vec![next]);
        }
    }

    fn turn(&mut self, body: &Body, mut wants: sim::Wants) {
        let waiter = sim::want(&body.cache, &mut wants);
        self.state = State::Waiting(Turn { wants, waiter });
    }

    /// Looks at what it waits for; `Some`: it is over.
    pub fn look(&mut self, body: &Body) -> Option<Ended> {
        match std::mem::replace(&mut self.state, State::Again) {
            State::Waiting(turn) => match turn.waiter.outcome() {
                None => {
                    self.state = State::Waiting(turn);
                    None
                }
                Some(outcome) => {
                    self.turns.push(turn);
                    match outcome {
                        Ok(()) => self.next_in_line(body),
                        Err(Error::Denied { retry_after, .. }) => {
                            self.line.clear();
                            self.state = State::Denied(retry_after);
                        }
                        Err(error) => return Some(Ended::Failed(error)),
                    }
                    None
                }
            },
            State::Durable { committed, id } => match sim::durable(&body.cache, committed) {
                None => {
                    self.state = State::Durable { committed, id };
                    None
                }
                Some(Ok(())) => Some(Ended::Acked(id)),
                Some(Err(error)) => Some(Ended::Failed(error)),
            },
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Its turns are over.
    pub fn leave(&mut self, body: &Body) {
        for turn in self.turns.drain(..) {
            sim::done(&body.cache, &turn.wants, &turn.waiter);
        }
    }

    /// It is over, however.
    pub fn end(&mut self, body: &Body) {
        if let State::Waiting(turn) = std::mem::replace(&mut self.state, State::Idle) {
            self.turns.push(turn);
        }
        self.leave(body);
        self.line.clear();
        self.ticket += 1;
    }
}
