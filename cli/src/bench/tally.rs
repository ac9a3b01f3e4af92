//! What a load has seen while it was measured.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::load::Measured;

/// How long a load runs, and how much it keeps outstanding.
#[derive(Debug, Clone, clap::Args)]
pub struct Pace {
    #[arg(long, default_value_t = 1)]
    pub window: usize,
    #[arg(long, default_value_t = 300)]
    pub warm_ms: u64,
    #[arg(long, default_value_t = 1_000)]
    pub measure_ms: u64,
}

/// Times of what ended after the warm-up and before the end.
#[derive(Debug)]
pub struct Tally {
    start: Instant,
    end: Instant,
    /// Nanoseconds, up to a minute.
    times: Histogram<u64>,
    pub errors: u64,
}

impl Tally {
    /// Begins now.
    pub fn new(pace: &Pace) -> anyhow::Result<Self> {
        let start = Instant::now() + Duration::from_millis(pace.warm_ms);
        let end = start + Duration::from_millis(pace.measure_ms);
        Ok(Self { start, end, times: Histogram::new_with_bounds(1, 60_000_000_000, 3)?, errors: 0 })
    }

    /// Something that began then ended now.
    pub fn note(&mut self, began: Instant, now: Instant) {
        if now >= self.start && now < self.end {
            self.times.saturating_record((now - began).as_nanos() as u64);
        }
    }

    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.end
    }

    /// What another one has seen at the same time.
    pub fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        self.errors += other.errors;
        Ok(self.times.add(&other.times)?)
    }

    pub fn measured(&self) -> Measured {
        let micros = |quantile| self.times.value_at_quantile(quantile) as f64 / 1_000.0;
        Measured {
            ops_per_s: self.times.len() as f64 / (self.end - self.start).as_secs_f64(),
            p50_us: micros(0.5),
            p99_us: micros(0.99),
            p999_us: micros(0.999),
            errors: self.errors,
        }
    }
}
