//! Transactions are as if they ran one after another, at the moments of their commits: each sees exactly what the ones
//! before it have left, whoever made them.
//! Holds: Z-52.

use tables::Level;

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct Serializable;

impl Invariant for Serializable {
    fn name(&self) -> &'static str {
        "serializable"
    }

    fn see(&mut self, ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        let Seen::Committed { run } = seen else { return Ok(()) };
        if run.level != Level::Serializable {
            return Ok(());
        }
        for (key, read) in &run.reads {
            let head = ledger.head(*key);
            hold(*read == head, || {
                format!("{} of {} saw {read:?} in record {key}, which is {head:?}", run.id, run.place)
            })?;
        }
        Ok(())
    }
}
