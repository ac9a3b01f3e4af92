//! What must hold of a run: one file per promise. Each looks at what providers believe, at what was said, and at what the
//! storage holds, and never inside a core.

mod acked;
mod coins;
mod i01_one_modifier;
mod i02_modify_excludes;
mod i03_stops_in_time;
mod i05_numbers_grow;
mod i06_reloads;
mod i07_reduced_is_durable;
mod i08_reads_the_last;
mod i09_fences;
mod i10_every_wait_ends;
mod i11_prefix;
mod i12_nothing_left;
mod serializable;

use std::collections::BTreeMap;
use std::fmt;

use base::{Epoch, Fence, Mono, NodeId};
use global_cache::arbiter::Status;
use tables::Word;
use tables::backend::Batch;

use super::court::Judged;
use super::keys::{Keys, Seen as Record};
use super::ledger::{Ledger, Run};
use super::talk::Place;
use super::work::Ended;

/// Something that can be seen from outside. The ledger that comes with it says what was so before.
#[derive(Debug)]
pub enum Seen<'a> {
    /// The arbiter was told something, at this time of its clock, and said what must be done.
    Judged { judged: &'a Judged, epoch: Epoch, here: Mono },
    /// Something happened to a provider: what it believes may be something else.
    Minds,
    /// A provider says something.
    Said { place: Place, word: &'a Word },
    /// A provider has read a record.
    Loaded { place: Place, key: Option<usize>, version: u64, version_min: u64 },
    /// A transaction is committed.
    Committed { run: &'a Run },
    /// Its answer leaves.
    Acked { id: u64 },
    /// A provider has counted in what only it knows, as if it was there so often.
    Scratch { place: Place, count: i64, known: i64 },
    /// The storage is told that nobody of this node writes under less.
    Raised { node: Option<&'a NodeId>, below: Fence },
    /// It makes a batch.
    Applied { place: Place, batch: &'a Batch, contents: &'a BTreeMap<usize, Record> },
    /// And has made it: the ledger knows.
    Stored,
    /// Everything has come to rest.
    Rests,
    /// Everybody has left, and this is what the arbiter has.
    Left { status: Status },
}

pub type Verdict = Result<(), String>;

/// One promise.
pub trait Invariant: fmt::Debug {
    fn name(&self) -> &'static str;

    fn see(&mut self, ledger: &Ledger, seen: &Seen<'_>) -> Verdict;
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    pub at: Mono,
    pub why: String,
}

/// What a run did, so that one that did nothing is noticed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub commits: u64,
    pub answered: u64,
    pub unknown: u64,
    pub denied: u64,
    pub failed: u64,
    pub late: u64,
    pub batches: u64,
    pub refused: u64,
    pub granted: u64,
    pub reduced: u64,
    pub evicted: u64,
    pub reasserted: u64,
    pub faults: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.commits += other.commits;
        self.answered += other.answered;
        self.unknown += other.unknown;
        self.denied += other.denied;
        self.failed += other.failed;
        self.late += other.late;
        self.batches += other.batches;
        self.refused += other.refused;
        self.granted += other.granted;
        self.reduced += other.reduced;
        self.evicted += other.evicted;
        self.reasserted += other.reasserted;
        self.faults += other.faults;
    }
}

/// All invariants, and the first violation.
#[derive(Debug)]
pub struct Watch {
    invariants: Vec<Box<dyn Invariant>>,
    pub ledger: Ledger,
    pub violation: Option<Violation>,
    pub tally: Tally,
}

impl Watch {
    pub fn new(ledger: Ledger, keys: &Keys) -> Self {
        let records: BTreeMap<u128, usize> =
            keys.all.iter().enumerate().map(|(at, info)| (info.record, at)).collect();
        let sync: Vec<bool> = keys.all.iter().map(|info| info.sync).collect();
        let invariants: Vec<Box<dyn Invariant>> = vec![
            Box::<i01_one_modifier::OneModifier>::default(),
            Box::<i02_modify_excludes::ModifyExcludes>::default(),
            Box::new(i03_stops_in_time::StopsInTime::new(records.clone())),
            Box::<i05_numbers_grow::NumbersGrow>::default(),
            Box::<i06_reloads::Reloads>::default(),
            Box::new(i07_reduced_is_durable::ReducedIsDurable::new(records)),
            Box::<i08_reads_the_last::ReadsTheLast>::default(),
            Box::<i09_fences::Fences>::default(),
            Box::<i10_every_wait_ends::EveryWaitEnds>::default(),
            Box::<i11_prefix::Prefix>::default(),
            Box::<i12_nothing_left::NothingLeft>::default(),
            Box::<serializable::Serializable>::default(),
            Box::new(acked::Acked::new(sync)),
            Box::<coins::Coins>::default(),
        ];
        Self { invariants, ledger, violation: None, tally: Tally::default() }
    }

    pub fn see(&mut self, now: Mono, seen: &Seen<'_>) {
        self.note(seen);
        for invariant in &mut self.invariants {
            if let Err(why) = invariant.see(&self.ledger, seen) {
                let invariant = invariant.name();
                self.violation.get_or_insert(Violation { invariant, at: now, why });
            }
        }
    }

    pub fn fail(&mut self, invariant: &'static str, at: Mono, why: String) {
        self.violation.get_or_insert(Violation { invariant, at, why });
    }

    pub fn count(&mut self, ended: &Ended) {
        match ended {
            Ended::Acked(_) => self.tally.answered += 1,
            Ended::Failed(tables::Error::Unknown) => self.tally.unknown += 1,
            Ended::Failed(tables::Error::Denied { .. }) => self.tally.denied += 1,
            Ended::Failed(_) => self.tally.failed += 1,
            Ended::Late => self.tally.late += 1,
        }
    }

    fn note(&mut self, seen: &Seen<'_>) {
        use global_cache::arbiter::Action;
        match seen {
            Seen::Applied { .. } => self.tally.batches += 1,
            Seen::Judged { judged, .. } => {
                for action in &judged.actions {
                    match action {
                        Action::Grant { .. } => self.tally.granted += 1,
                        Action::Reduce { .. } => self.tally.reduced += 1,
                        Action::Lost { .. } => self.tally.evicted += 1,
                        Action::Reasserted { seq: Some(_), .. } => self.tally.reasserted += 1,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

/// `Err` with a text, unless the promise holds.
fn hold(holds: bool, why: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(why()) }
}
