//! While somebody may change a record, nobody else whose lease runs believes that he may read it.
//! Holds: I2, Z-48.

use tables::Mode;

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct ModifyExcludes;

impl Invariant for ModifyExcludes {
    fn name(&self) -> &'static str {
        "I2: who may change is alone"
    }

    fn see(&mut self, ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        if !matches!(seen, Seen::Minds) {
            return Ok(());
        }
        let leased = || ledger.minds.iter().filter(|(_, mind)| mind.until > ledger.now);
        for (writer, mind) in leased() {
            for changed in mind.beliefs.iter().filter(|belief| belief.held == Mode::Modify) {
                let reads = |belief: &&super::super::ledger::Belief| {
                    belief.key == changed.key && belief.held == Mode::Share
                };
                let reader =
                    leased().find(|(who, mind)| *who != writer && mind.beliefs.iter().any(|one| reads(&one)));
                hold(reader.is_none(), || {
                    let reader = reader.map_or(0, |(who, _)| *who);
                    format!("p{writer} may change record {} while p{reader} may read it", changed.key)
                })?;
            }
        }
        Ok(())
    }
}
