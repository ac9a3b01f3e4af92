//! Counters and histograms of a run while it goes on. Bots share shards of them, so that a thousand bots neither wait
//! for one lock nor keep a thousand histograms.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::Client;
use crate::bots::Failure;

const SHARDS: usize = 16;
/// Longer answers count as this long.
const LONGEST_US: u64 = 60_000_000;

/// Everything a run counts.
#[derive(Debug)]
pub(crate) struct Tally {
    shards: Vec<Mutex<BTreeMap<&'static str, Histogram<u64>>>>,
    pub logins: AtomicU64,
    pub rounds: AtomicU64,
    pub requests: AtomicU64,
    pub pushes: AtomicU64,
    pub pushes_forgotten: AtomicU64,
    pub retried: AtomicU64,
    pub errors: AtomicU64,
    pub failed_assertions: AtomicU64,
    failures: Mutex<Vec<String>>,
    failures_max: usize,
}

/// Microseconds at three significant digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, 3).expect("1 and 60 s at 3 digits are bounds it takes")
}

impl Tally {
    pub fn new(failures_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            logins: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            pushes: AtomicU64::new(0),
            pushes_forgotten: AtomicU64::new(0),
            retried: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            failed_assertions: AtomicU64::new(0),
            failures: Mutex::default(),
            failures_max,
        }
    }

    /// A request of bot `index` was answered.
    pub fn timed(&self, index: u32, step: &'static str, took: Duration) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(LONGEST_US);
        let mut steps = self.shards[index as usize % SHARDS].lock();
        steps.entry(step).or_insert_with(histogram).saturating_record(micros.max(1));
    }

    pub fn logged_in(&self) {
        self.logins.fetch_add(1, Ordering::Relaxed);
    }

    pub fn forgotten(&self) {
        self.pushes_forgotten.fetch_add(1, Ordering::Relaxed);
    }

    pub fn retried(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection is at its end: takes over what it counted.
    pub fn closed(&self, client: &Client) {
        self.pushes.fetch_add(client.stats().pushes, Ordering::Relaxed);
    }

    pub fn failed(&self, account: &str, failure: &Failure) {
        let counter = if failure.is_assertion() { &self.failed_assertions } else { &self.errors };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut failures = self.failures.lock();
        if failures.len() < self.failures_max {
            failures.push(format!("{account}: {failure}"));
        }
    }

    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().clone()
    }

    /// All shards as one.
    pub fn merged(&self) -> BTreeMap<&'static str, Histogram<u64>> {
        let mut all = BTreeMap::<_, Histogram<u64>>::new();
        for shard in &self.shards {
            for (step, times) in shard.lock().iter() {
                all.entry(*step).or_insert_with(histogram).add(times).expect("their bounds are the same");
            }
        }
        all
    }
}
