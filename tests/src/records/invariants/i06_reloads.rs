//! Only who has in memory what its present grant stands for need not read a record again.
//! Holds: I6, Z-53.

use global_cache::arbiter::{Action, Event};

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct Reloads;

impl Invariant for Reloads {
    fn name(&self) -> &'static str {
        "I6: who has something old reads again"
    }

    fn see(&mut self, _ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        let Seen::Judged { judged, .. } = seen else { return Ok(()) };
        let Event::Acquire { ask, .. } = &judged.event else { return Ok(()) };
        for action in &judged.actions {
            let Action::Grant { request, grant, .. } = action else { continue };
            if *request != ask.request || grant.key != ask.key || grant.must_reload {
                continue;
            }
            let known = judged.before.iter().any(|(_, _, seq)| Some(*seq) == ask.have);
            hold(known, || format!("{ask:?} need not read again, and {:?} hold it", judged.before))?;
        }
        Ok(())
    }
}
