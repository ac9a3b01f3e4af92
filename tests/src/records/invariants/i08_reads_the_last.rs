//! What the next holder of a record reads is at least what the one before has said that it wrote.
//! Holds: I8.

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct ReadsTheLast;

impl Invariant for ReadsTheLast {
    fn name(&self) -> &'static str {
        "I8: the next holder reads the last version"
    }

    fn see(&mut self, _ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        let Seen::Loaded { place, key, version, version_min } = seen else { return Ok(()) };
        hold(version >= version_min, || {
            format!("{place} reads version {version} of record {key:?}, which was at {version_min}")
        })
    }
}
