//! Who says that it uses a record less has written what it committed in it, and names the version that the storage has.
//! Holds: I7, Z-50, Z-51.

use std::collections::BTreeMap;

use tables::Word;

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug)]
pub struct ReducedIsDurable {
    records: BTreeMap<u128, usize>,
}

impl ReducedIsDurable {
    pub fn new(records: BTreeMap<u128, usize>) -> Self {
        Self { records }
    }
}

impl Invariant for ReducedIsDurable {
    fn name(&self) -> &'static str {
        "I7: what is reduced is durable"
    }

    fn see(&mut self, ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        let Seen::Said { place, word: Word::Reduced { record, seq, to, .. } } = seen else { return Ok(()) };
        let Some(key) = self.records.get(record) else { return Ok(()) };
        let unwritten = ledger.unwritten(*key, *place).filter(|_| ledger.is_alive(*place));
        hold(unwritten.is_none(), || {
            format!(
                "{place} gives {seq} of record {key} up to {to:?} with transaction {unwritten:?} not written"
            )
        })
    }
}
