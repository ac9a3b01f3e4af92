//! Coins only move: the storage has the same number of them after each batch, and so does whoever sees all at one moment.
//! Holds: I11.

use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug, Default)]
pub struct Coins;

impl Invariant for Coins {
    fn name(&self) -> &'static str {
        "coins only move"
    }

    fn see(&mut self, ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        let of = |record: &Option<(i64, u64)>| record.map_or(0, |(coins, _)| coins);
        match seen {
            Seen::Stored => {
                let money = (0..ledger.stored.len()).filter(|key| ledger.is_money(*key));
                let sum: i64 = money.map(|key| of(&ledger.stored[key])).sum();
                hold(sum == ledger.coins(), || format!("the storage has {sum} coins of {}", ledger.coins()))
            }
            Seen::Committed { run } if run.writes.is_empty() => {
                let money = run.reads.iter().filter(|(key, _)| ledger.is_money(*key));
                let seen: Vec<i64> = money.map(|(_, record)| of(record)).collect();
                let (sum, all) = (seen.iter().sum::<i64>(), ledger.coins());
                let some = seen.len() as i64 * super::super::storage::COINS < all;
                hold(some || sum == all, || format!("{} sees {sum} coins of {all}: {run:?}", run.id))
            }
            _ => Ok(()),
        }
    }
}
