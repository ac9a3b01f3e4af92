//! The seeded simulator: a whole cluster of pure cores in virtual time. One `Directory`, linkds with a `Router` per
//! worker, providers with `Sessions` per connection and a `View` of the directory, and model clients, on a network that
//! delays, cuts, stalls and leaves connections half-open, among processes that pause, crash and start twice.
//!
//! A seed is a [`Plan`]: a shape and a list of faults. The same seed gives the same run, byte for byte. Every run ends by
//! healing everything and demanding progress. Half of the plans have a directory with a store, whose disk outlives it. What must hold is in `invariants`, one file each.
//!
//! Reading order: `plan`, `cluster` (the loop), `network`, then one process (`linkd`), then `invariants`.
//!
//! Not simulated: sockets and encodings between nodes (the client wire is), back-pressure by bytes, clocks that run at
//! different rates.

mod client;
mod cluster;
mod directory;
mod disk;
mod env;
mod faults;
mod frames;
mod input;
mod invariants;
mod linkd;
mod member;
mod network;
mod perform;
mod plan;
mod process;
mod provider;
pub(crate) mod queue;
mod rng;
mod talk;
pub(crate) mod trace;
mod wants;

use std::panic::{AssertUnwindSafe, catch_unwind};

use base::Mono;

use cluster::Cluster;

pub use invariants::{Tally, Violation};
pub use plan::Plan;
pub use rng::Rng;
pub use trace::Keep;

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

/// Runs one seed.
pub fn run(seed: u64, keep: Keep) -> Outcome {
    let mut cluster = Cluster::new(Plan::draw(seed), keep);
    let ran = catch_unwind(AssertUnwindSafe(|| cluster.run()));
    let now = cluster.env.now;
    let watch = std::mem::take(&mut cluster.env.watch);
    let tally = watch.tally.clone();
    let violation = match ran {
        // What was seen from outside says more than the core's own assertion.
        _ if watch.violation.is_some() => watch.violation,
        Err(panic) => Some(Violation { invariant: "check", at: now, why: text(&*panic) }),
        Ok(()) => watch.end(now, &cluster),
    };
    let Cluster { plan, env, steps, .. } = cluster;
    Outcome { plan, steps, lasted: now, hash: env.trace.hash(), violation, tail: env.trace.tail(), tally }
}

/// Runs one seed, and when it breaks a promise runs it again for its trace.
pub fn examine(seed: u64) -> Outcome {
    let outcome = run(seed, Keep::Nothing);
    if outcome.violation.is_some() { run(seed, Keep::Tail) } else { outcome }
}

/// A core's own promise to itself, as its assertion says it.
fn text(panic: &(dyn std::any::Any + Send)) -> String {
    base::fault::panic_text(panic).unwrap_or("a core panicked").to_owned()
}

/// Everything that somebody needs who must find out why.
impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.plan)?;
        let (seed, steps, lasted) = (self.plan.seed, self.steps, self.lasted);
        let Some(violation) = &self.violation else {
            return write!(f, "seed {seed}: {steps} steps, {lasted} of virtual time, every promise kept");
        };
        for line in &self.tail {
            writeln!(f, "    {line}")?;
        }
        let Violation { invariant, at, why } = violation;
        writeln!(f, "seed {seed} breaks {invariant} at step {steps}, {at}: {why}")?;
        write!(f, "replay: cargo sim {seed} --trace")
    }
}
