//! Of a record that nobody holds or waits for, the arbiter knows nothing.
//! Holds: I12.

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct NothingLeft;

impl Invariant for NothingLeft {
    fn name(&self) -> &'static str {
        "I12: nothing is left"
    }

    fn see(&mut self, _ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        let Seen::Left { status } = seen else { return Ok(()) };
        hold((status.keys, status.waited_for, status.sessions) == (0, 0, 0), || {
            format!("everybody has left, and the arbiter has {status:?}")
        })
    }
}
