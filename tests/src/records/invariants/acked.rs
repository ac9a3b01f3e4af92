//! What was answered as durable is durable, and so is everything that somebody saw in a table that promises it. And what
//! only one provider has is what it left there.

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug)]
pub struct Acked {
    /// Of each record, whether whoever sees it waits until it is durable.
    sync: Vec<bool>,
}

impl Acked {
    pub fn new(sync: Vec<bool>) -> Self {
        Self { sync }
    }
}

impl Invariant for Acked {
    fn name(&self) -> &'static str {
        "what is answered is durable"
    }

    fn see(&mut self, ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        match seen {
            Seen::Acked { id } => {
                let Some(run) = ledger.runs.get(id) else { return Ok(()) };
                let durable = ledger.durable.contains(id);
                hold(durable || !run.sync, || format!("{id} is answered and not durable: {run:?}"))?;
                let reads = run.reads.iter().filter(|(key, _)| self.sync[*key] && run.writes.is_empty());
                for (key, read) in reads.filter(|_| run.level == tables::Level::Serializable) {
                    let from = read.map(|(_, writer)| writer);
                    hold(from.is_none_or(|from| ledger.durable.contains(&from)), || {
                        format!("{id} tells of {read:?} in record {key}, which is not durable")
                    })?;
                }
                Ok(())
            }
            Seen::Scratch { place, count, known } => {
                hold(count == known, || format!("{place} has counted to {known} and finds {count}"))
            }
            _ => Ok(()),
        }
    }
}
