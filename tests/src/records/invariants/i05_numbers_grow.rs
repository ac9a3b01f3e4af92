//! The number of a record's grant grows with each change of its holders, and a word about an earlier one changes nothing.
//! Holds: I5, Z-52, Z-54.

use std::collections::BTreeMap;

use base::Epoch;
use global_cache::arbiter::{Action, Event, Key, Mode, Seq, SessionId};

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct NumbersGrow {
    epoch: Epoch,
    /// The last grant of each record, and whose it is.
    last: BTreeMap<Key, (Seq, SessionId, Mode)>,
}

impl NumbersGrow {
    fn granted(&mut self, key: Key, session: SessionId, mode: Mode, seq: Seq) -> Verdict {
        let last = self.last.get(&key).copied();
        if let Some((number, holder, before)) = last {
            let same = number == seq && holder == session && mode <= before;
            // A reader that is one of several is told its own number again.
            let earlier = seq < number && mode == Mode::Share && before == Mode::Share;
            hold(seq > number || same || earlier, || {
                format!("record {key} is granted as {seq} to {session:?} after {number} to {holder:?}")
            })?;
        }
        if last.is_none_or(|(number, ..)| seq > number) {
            self.last.insert(key, (seq, session, mode));
        }
        Ok(())
    }
}

impl Invariant for NumbersGrow {
    fn name(&self) -> &'static str {
        "I5: numbers grow"
    }

    fn see(&mut self, _ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        let Seen::Judged { judged, epoch, .. } = seen else { return Ok(()) };
        if self.epoch != *epoch {
            (self.epoch, self.last) = (*epoch, BTreeMap::new());
        }
        if let Event::Reduced { key, seq, .. } = &judged.event
            && !judged.before.iter().any(|(_, _, known)| known == seq)
        {
            let lost = judged.actions.iter().all(|action| matches!(action, Action::Lost { .. }));
            hold(lost, || format!("a word about {seq} of {key}, which nobody holds: {:?}", judged.actions))?;
            hold(judged.before == judged.after, || {
                format!("a word about {seq} of {key} changes its holders")
            })?;
        }
        for action in &judged.actions {
            match action {
                Action::Grant { session, grant, .. } => {
                    self.granted(grant.key, *session, grant.mode, grant.seq)?;
                }
                Action::Reasserted { session, key, seq: Some(seq) } => {
                    let mode =
                        if let Event::Reassert { mode, .. } = judged.event { mode } else { Mode::Share };
                    self.granted(*key, *session, mode, *seq)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
