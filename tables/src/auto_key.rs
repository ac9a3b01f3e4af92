//! Numbers that no record has had: for keys of new ones.

use std::sync::Arc;

use base::{Mono, Span};
use parking_lot::Mutex;
use redirect_macros::Record;

use crate::error::Error;
use crate::record::Durability;
use crate::table::Table;
use crate::tx::{Attempt, Home, Options, Tx};

/// Numbers taken in one go, at first, at least and at most.
const STEP_MIN: u64 = 16;
const STEP_MAX: u64 = 65_536;
/// Who needs more within this takes twice as many; who needs none for so long half.
const SOON: Span = Span::secs(1);
const LATE: Span = Span::secs(120);

/// How far the numbers of a name are given out.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "crate", table = "_autokey", id = 0xF000_0001, key = String, durability = "sync")]
pub struct Given {
    #[prost(fixed64, tag = "1")]
    pub upto: u64,
}

/// Gives out the numbers of one name, from 1 on: each once in the whole cluster, for ever, whatever crashes. A provider takes
/// them in ranges, and what is left of a range when it ends is lost; so they grow, and have gaps.
///
/// Errors of [`next`](Self::next) are to be given on with `?`, as a table's.
#[derive(Clone)]
pub struct AutoKey {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    table: Table<String, Given>,
    home: Home,
    range: Mutex<Range>,
    /// One takes the next range; others wait for it.
    taking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Range {
    next: u64,
    /// Not included.
    end: u64,
    step: u64,
    taken: Mono,
}

impl std::fmt::Debug for AutoKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AutoKey").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

impl AutoKey {
    pub(crate) fn new(name: &str, table: Table<String, Given>, home: Home) -> Self {
        let (name, range) = (name.to_owned(), Mutex::new(Range { step: STEP_MIN, ..Range::default() }));
        Self { shared: Arc::new(Shared { name, table, home, range, taking: tokio::sync::Mutex::new(()) }) }
    }

    /// The next number. One that a transaction took which was not committed is lost.
    pub fn next(&self, tx: &mut Tx) -> Result<u64, Error> {
        if let Some(number) = self.shared.take() {
            return Ok(number);
        }
        let shared = self.shared.clone();
        Err(tx.wait_for(Box::pin(async move { shared.take_range().await })))
    }
}

impl Shared {
    fn take(&self) -> Option<u64> {
        let mut range = self.range.lock();
        let number = range.next;
        if number == range.end {
            return None;
        }
        range.next += 1;
        Some(number)
    }

    /// Takes the next range: it is durable before any number of it is used.
    async fn take_range(&self) -> Result<(), Error> {
        let _taking = self.taking.lock().await;
        let step = {
            let mut range = self.range.lock();
            if range.next < range.end {
                return Ok(());
            }
            let now = self.home.now();
            let since = now.since(range.taken);
            range.step = match since {
                since if range.end > 0 && since < SOON => (range.step * 2).min(STEP_MAX),
                since if since > LATE => (range.step / 2).max(STEP_MIN),
                _ => range.step,
            };
            range.taken = now;
            range.step
        };
        let options = Options { durability: Durability::Sync, ..Options::default() };
        // In a box: a transaction that waits for one is not to be as large as both.
        let mut attempt = Attempt::new(self.home.clone(), options);
        let taken = Box::pin(attempt.run(|tx| {
            let given = self.table.get_or_default(tx, &self.name)?;
            given.upto += step;
            Ok::<_, Error>(given.upto)
        }));
        let upto = taken.await?;
        let mut range = self.range.lock();
        (range.next, range.end) = (upto - step + 1, upto + 1);
        Ok(())
    }
}
