//! The simulator of records: the production arbiter, and providers with the production cache, transactions and session, in
//! front of one storage, in virtual time and on one thread. Connections break, are silent and slow; processes stand still,
//! crash and start again; clocks run at different rates; the storage fails, and fails after it has done what was asked.
//!
//! A setting and a seed are a [`Plan`]; the same ones give the same run. Every run ends by healing everything, demanding
//! that everybody changes every record, and letting all leave. What must hold is in `invariants`, one file each.
//!
//! Reading order: `plan`, `world` (the loop), `inside` (one provider), `work` (its transactions), `ledger` (what is known
//! from outside), then `invariants`.
//!
//! Not simulated: bytes of the wire, what threads do to each other, the waits of `tables`' own runner of transactions.

mod court;
mod faults;
mod hands;
mod inside;
mod invariants;
mod item;
mod keys;
mod ledger;
mod link;
mod plan;
mod provider;
mod steps;
mod storage;
mod talk;
mod work;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use base::Mono;

use crate::sim::Keep;
use world::World;

pub use invariants::{Tally, Violation};
pub use plan::{Plan, Setting};

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    pub plan: Plan,
    pub steps: u64,
    /// How much virtual time it took.
    pub lasted: Mono,
    /// The same for two runs that did the same; of nothing unless a trace was kept.
    pub hash: u64,
    pub violation: Option<Violation>,
    /// The last lines of the trace.
    pub tail: Vec<String>,
    pub tally: Tally,
}

/// Runs one seed of a setting.
pub fn run(setting: Setting, seed: u64, keep: Keep) -> Outcome {
    let mut world = World::new(Plan::draw(setting, seed), keep);
    let ran = catch_unwind(AssertUnwindSafe(|| world.run()));
    let violation = match (world.watch.violation.take(), ran) {
        (Some(violation), _) => Some(violation),
        (None, Ok(())) => None,
        (None, Err(panic)) => {
            let why = base::fault::panic_text(&*panic).unwrap_or("a core panicked").to_owned();
            Some(Violation { invariant: "check", at: world.now, why })
        }
    };
    let World { plan, trace, steps, now, watch, .. } = world;
    let (hash, tail) = (trace.hash(), trace.tail());
    Outcome { plan, steps, lasted: now, hash, violation, tail, tally: watch.tally }
}

/// Runs one seed, and when it breaks a promise runs it again for its trace.
pub fn examine(setting: Setting, seed: u64) -> Outcome {
    let outcome = run(setting, seed, Keep::Nothing);
    if outcome.violation.is_some() { run(setting, seed, Keep::Tail) } else { outcome }
}

/// Everything that somebody needs who must find out why.
impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.plan)?;
        let (seed, setting, steps, lasted) =
            (self.plan.seed, self.plan.setting.name(), self.steps, self.lasted);
        let Some(violation) = &self.violation else {
            return write!(f, "seed {seed}: {steps} steps, {lasted} of virtual time, every promise kept");
        };
        for line in &self.tail {
            writeln!(f, "    {line}")?;
        }
        let Violation { invariant, at, why } = violation;
        writeln!(f, "seed {seed} of {setting} breaks {invariant} at step {steps}, {at}: {why}")?;
        write!(f, "replay: cargo sim --records={setting} {seed} --trace")
    }
}
