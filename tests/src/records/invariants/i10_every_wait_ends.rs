//! The arbiter answers every question within its time, granted or not, unless the session that asked is over.
//! Holds: I10, Z-55.

use std::collections::BTreeMap;

use base::{Epoch, Mono, RequestId, Span};
use global_cache::arbiter::{ACQUIRE, Action, Event, SessionId};

use super::{Invariant, Ledger, Seen, Verdict, hold};

/// The arbiter looks at its clock every so often; a process that stood still looks when it goes on.
const SLACK: Span = Span::millis(200);

#[derive(Debug, Default)]
pub struct EveryWaitEnds {
    epoch: Epoch,
    asked: BTreeMap<(SessionId, RequestId), Mono>,
}

impl Invariant for EveryWaitEnds {
    fn name(&self) -> &'static str {
        "I10: every wait ends"
    }

    fn see(&mut self, _ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        let Seen::Judged { judged, epoch, here } = seen else { return Ok(()) };
        if self.epoch != *epoch {
            (self.epoch, self.asked) = (*epoch, BTreeMap::new());
        }
        if let Event::Acquire { session, ask } = &judged.event {
            self.asked.entry((*session, ask.request)).or_insert(*here);
        }
        for action in &judged.actions {
            match action {
                Action::Grant { session, request, .. } | Action::Deny { session, request, .. } => {
                    self.asked.remove(&(*session, *request));
                }
                Action::Lost { session } => self.asked.retain(|(whose, _), _| whose != session),
                _ => {}
            }
        }
        if let Event::Bye { session } = &judged.event {
            self.asked.retain(|(whose, _), _| whose != session);
        }
        if !matches!(judged.event, Event::Tick) {
            return Ok(());
        }
        let late = self.asked.iter().find(|(_, since)| here.since(**since) > ACQUIRE + SLACK);
        hold(late.is_none(), || format!("{late:?} has no answer at {here}"))
    }
}
