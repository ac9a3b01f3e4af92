//! The storage is always what the transactions up to one of each provider have made of it, and no transaction is there
//! without those that it has read from: each batch is exactly some next transactions of its provider, and each of them
//! follows on what the storage has.
//! Holds: I11.

use std::collections::BTreeMap;

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct Prefix;

impl Invariant for Prefix {
    fn name(&self) -> &'static str {
        "I11: the storage is a prefix"
    }

    fn see(&mut self, ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        match seen {
            Seen::Applied { place, batch, contents } => {
                let runs = ledger.batch(*place, batch.first.0);
                let count = batch.last.0 + 1 - batch.first.0;
                hold(runs.len() as u64 == count, || {
                    let (first, last) = (batch.first.0, batch.last.0);
                    format!("{place} writes {first} to {last}, which are {} transactions", runs.len())
                })?;
                let mut expected = BTreeMap::new();
                let mut there: BTreeMap<usize, Option<(i64, u64)>> = BTreeMap::new();
                let mut durable: Vec<u64> = Vec::new();
                for run in runs {
                    for (key, read) in &run.reads {
                        let is = there.get(key).copied().unwrap_or(ledger.stored[*key]);
                        let written = run.writes.iter().any(|(written, _)| written == key);
                        hold(!written || is == *read, || {
                            format!("{} changes {read:?} of record {key}, where {is:?} is: {run:?}", run.id)
                        })?;
                        let from = read.map(|(_, writer)| writer);
                        let known = |id: u64| ledger.durable.contains(&id) || durable.contains(&id);
                        hold(from.is_none_or(known), || {
                            format!("{} is durable and has read from {from:?}, which is not", run.id)
                        })?;
                    }
                    for (key, coins) in &run.writes {
                        let record = coins.map(|coins| (coins, run.id));
                        there.insert(*key, record);
                        expected.insert(*key, record);
                    }
                    durable.push(run.id);
                }
                hold(expected == **contents, || {
                    format!("{place} writes {contents:?}, and its transactions make {expected:?}")
                })
            }
            Seen::Rests => hold(!ledger.any_unwritten(), || "something is still not written".to_owned()),
            _ => Ok(()),
        }
    }
}
