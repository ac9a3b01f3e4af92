//! What monitoring sees: the core's numbers, carried over as they change.

use metrics::{counter, gauge};

use crate::arbiter::Status;

/// What was carried over already. Only the difference is added: several arbiters in one process share each series.
#[derive(Debug, Default)]
pub(super) struct Meters {
    before: Status,
}

impl Meters {
    pub fn carry(&mut self, now: Status) {
        let before = std::mem::replace(&mut self.before, now);
        let change = |now: usize, before: usize| now as f64 - before as f64;
        gauge!("linkstead_arbiter_sessions").increment(change(now.sessions, before.sessions));
        gauge!("linkstead_arbiter_records").increment(change(now.keys, before.keys));
        gauge!("linkstead_arbiter_waited_for").increment(change(now.waited_for, before.waited_for));
        gauge!("linkstead_arbiter_warming").increment(change(now.warming.into(), before.warming.into()));
        let (now, before) = (now.counts, before.counts);
        counter!("linkstead_arbiter_granted_total").increment(now.granted - before.granted);
        counter!("linkstead_arbiter_reduces_total").increment(now.reduces - before.reduces);
        counter!("linkstead_arbiter_late_total").increment(now.late - before.late);
        counter!("linkstead_arbiter_evicted_total").increment(now.evicted - before.evicted);
    }
}
