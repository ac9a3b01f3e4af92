//! What a database of records counts, for the metrics recorder: looked at now and then, since it counts for itself.

use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::Mutex;
use tables::Status;

/// A total of the database, and how much of it was told.
struct Total {
    exported: Counter,
    of: fn(&Status) -> u64,
    told: u64,
}

impl Total {
    fn new(exported: Counter, of: fn(&Status) -> u64) -> Self {
        Self { exported, of, told: 0 }
    }

    /// Adds and does not set: databases of one process are one series, which is their sum.
    fn look(&mut self, status: &Status) {
        let now = (self.of)(status);
        self.exported.increment(now.saturating_sub(self.told));
        self.told = self.told.max(now);
    }
}

/// What stands somewhere now.
struct Level {
    exported: Gauge,
    of: fn(&Status) -> f64,
    told: f64,
}

impl Level {
    fn new(exported: Gauge, of: fn(&Status) -> f64) -> Self {
        Self { exported, of, told: 0.0 }
    }

    fn look(&mut self, status: &Status) {
        let now = (self.of)(status);
        self.exported.increment(now - self.told);
        self.told = now;
    }

    fn leave(&mut self) {
        self.exported.decrement(self.told);
    }
}

/// All of them.
pub(super) struct Meters(Mutex<All>);

struct All {
    totals: Vec<Total>,
    levels: Vec<Level>,
}

impl Meters {
    /// Takes the handles from the recorder that is installed now.
    pub fn new() -> Self {
        let totals = vec![
            Total::new(counter!("linkstead_records_asked_total"), |s| s.asked),
            Total::new(counter!("linkstead_records_reduced_total"), |s| s.reduced),
            Total::new(counter!("linkstead_records_loads_total"), |s| s.loads),
            Total::new(counter!("linkstead_records_load_errors_total"), |s| s.load_errors),
            Total::new(counter!("linkstead_records_evicted_total"), |s| s.evicted),
            Total::new(counter!("linkstead_records_losses_total"), |s| s.losses),
            Total::new(counter!("linkstead_records_lost_commits_total"), |s| s.lost),
            Total::new(counter!("linkstead_records_refused_batches_total"), |s| s.refused),
            Total::new(counter!("linkstead_records_write_errors_total"), |s| s.write_errors),
        ];
        let levels = vec![
            Level::new(gauge!("linkstead_records_in_memory"), |s| s.records as f64),
            Level::new(gauge!("linkstead_records_bytes"), |s| s.bytes as f64),
            Level::new(gauge!("linkstead_records_unwritten"), |s| s.unwritten as f64),
            Level::new(gauge!("linkstead_records_flush_lag_seconds"), |s| {
                std::time::Duration::from(s.flush_lag).as_secs_f64()
            }),
            Level::new(gauge!("linkstead_records_without_lease"), |s| f64::from(u8::from(!s.leased))),
            Level::new(gauge!("linkstead_records_failing"), |s| f64::from(u8::from(s.failing.is_some()))),
        ];
        Self(Mutex::new(All { totals, levels }))
    }

    pub fn look(&self, status: &Status) {
        let All { totals, levels } = &mut *self.0.lock();
        totals.iter_mut().for_each(|total| total.look(status));
        levels.iter_mut().for_each(|level| level.look(status));
    }
}

impl Drop for Meters {
    /// What others of this process tell stays.
    fn drop(&mut self) {
        self.0.get_mut().levels.iter_mut().for_each(Level::leave);
    }
}
