//! What came of a run, as one JSON object.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::bots::tally::{Tally, histogram};

/// The result of a run. Times are microseconds; every request that was answered counts in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Bots started.
    pub bots: u32,
    /// Connections that were authenticated.
    pub logins: u64,
    /// Requests answered.
    pub requests: u64,
    /// Pushes received.
    pub pushes: u64,
    /// Bots that ended with a failed request, a refused login or overdue.
    pub errors: u64,
    /// Bots that ended with a check that did not hold.
    pub failed_assertions: u64,
    pub p50_us: u64,
    pub p99_us: u64,
    /// Rounds played to their end.
    pub rounds: u64,
    /// How long it took.
    pub seconds: f64,
    /// Pushes that came in greater numbers than a bot keeps.
    pub pushes_forgotten: u64,
    /// Requests that were refused for the moment and asked again.
    pub retried: u64,
    /// By step, which is a protocol's name or what the scenario called it.
    pub steps: BTreeMap<String, Step>,
    /// The first failures, at most the plan's `failures_max`.
    pub failures: Vec<String>,
}

/// One step's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub count: u64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
}

impl From<&Histogram<u64>> for Step {
    fn from(times: &Histogram<u64>) -> Self {
        let at = |quantile| times.value_at_quantile(quantile);
        Self { count: times.len(), p50_us: at(0.50), p99_us: at(0.99), max_us: times.max() }
    }
}

impl Summary {
    pub(crate) fn new(bots: u32, took: Duration, tally: &Tally) -> Self {
        let merged = tally.merged();
        let mut all = histogram();
        for times in merged.values() {
            all.add(times).expect("their bounds are the same");
        }
        let Step { p50_us, p99_us, .. } = Step::from(&all);
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            bots,
            logins: get(&tally.logins),
            requests: get(&tally.requests),
            pushes: get(&tally.pushes),
            errors: get(&tally.errors),
            failed_assertions: get(&tally.failed_assertions),
            p50_us,
            p99_us,
            rounds: get(&tally.rounds),
            seconds: took.as_secs_f64(),
            pushes_forgotten: get(&tally.pushes_forgotten),
            retried: get(&tally.retried),
            steps: merged.iter().map(|(step, times)| ((*step).to_owned(), Step::from(times))).collect(),
            failures: tally.failures(),
        }
    }

    /// Whether no bot failed and at least one played: what an exit code says.
    pub fn passed(&self) -> bool {
        self.errors == 0 && self.failed_assertions == 0 && (self.bots == 0 || self.rounds > 0)
    }
}
