//! At most one provider whose lease runs, by its own clock, believes that it may change a record.
//! Holds: I1, Z-48.

use std::collections::BTreeMap;

use tables::Mode;

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct OneModifier;

impl Invariant for OneModifier {
    fn name(&self) -> &'static str {
        "I1: one modifier"
    }

    fn see(&mut self, ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        if !matches!(seen, Seen::Minds) {
            return Ok(());
        }
        let mut modifiers = BTreeMap::new();
        for (who, mind) in ledger.minds.iter().filter(|(_, mind)| mind.until > ledger.now) {
            for belief in mind.beliefs.iter().filter(|belief| belief.held == Mode::Modify) {
                let other = modifiers.insert(belief.key, *who);
                hold(other.is_none(), || {
                    format!(
                        "both p{} and p{who} believe they may change record {}",
                        other.unwrap_or(0),
                        belief.key
                    )
                })?;
            }
        }
        Ok(())
    }
}
