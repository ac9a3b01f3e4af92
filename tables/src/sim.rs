//! A door for the simulator of the workspace's tests: it runs transactions step by step and looks at what a cache believes.
//! It decides nothing, and games have no use for it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::Mono;

use crate::arbiter::Mode;
use crate::backend::TableId;
use crate::cache::cell::CellRef;
use crate::cache::waiter::Waiter;
use crate::cache::{Cache, Counts, Load};
use crate::error::Error;
use crate::record::Record;
use crate::table::Table;
use crate::tx::{Committed, Finish, Home, Level, Tx};

/// What a cache believes of one record that others can have too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belief {
    pub table: TableId,
    pub record: u128,
    /// What the arbiter has granted.
    pub held: Mode,
    /// What may be done with what is in memory.
    pub usable: Mode,
    pub seq: u64,
    /// It is of the session that is current.
    pub current: bool,
    /// Somebody waits for it, or something is being done about it.
    pub busy: bool,
}

/// What a run waits for.
pub type Wants = Vec<(CellRef, Mode)>;

/// A table of a cache that has no database around it.
pub fn table<V: Record>(cache: &Arc<Cache>) -> Table<V::Key, V> {
    Table::new(cache.clone())
}

/// Begins a run.
pub fn begin(cache: &Arc<Cache>, level: Level) -> Tx {
    Tx::new(Home::new(cache.clone()), level)
}

/// Ends it. With what was not at hand, and with all that it has touched.
pub fn finish(cache: &Cache, mut tx: Tx, succeeded: bool) -> (Finish, Wants, Wants) {
    let finish = tx.finish(succeeded);
    cache.calls.run();
    (finish, std::mem::take(&mut tx.wants), tx.touched())
}

/// All of these in the order in which everybody waits for several one after another, each once.
pub fn in_order(all: Wants) -> Wants {
    crate::tx::in_order(all)
}

/// Begins to wait; ended by [`done`].
pub fn want(cache: &Cache, wants: &mut Wants) -> Arc<Waiter> {
    let waiter = Arc::new(Waiter::new(wants.len()));
    cache.want(wants, &waiter);
    waiter
}

/// The turn that [`want`] has waited for is over, or is waited for no longer.
pub fn done(cache: &Cache, wants: &Wants, waiter: &Arc<Waiter>) {
    cache.done(wants, waiter);
}

/// Somebody waits for what is committed to be written.
pub fn hurry(cache: &Cache) {
    cache.flush(true);
}

/// Whether a commit is as durable as its answer needs; `None`: that is not known yet.
pub fn durable(cache: &Cache, committed: Committed) -> Option<Result<(), Error>> {
    if !committed.waits {
        return Some(Ok(()));
    }
    let waiting = pin!(cache.pipeline.wait(committed.cut, committed.losses));
    match waiting.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// What it believes of each record, in the order of the records.
pub fn beliefs(cache: &Cache) -> Vec<Belief> {
    let term = cache.lease.current();
    let belief = |cell: CellRef| {
        let cell = cell.lock();
        Belief {
            table: cell.shelf.meta().id,
            record: cell.record,
            held: cell.permit.held(),
            usable: cell.usable(),
            seq: cell.permit.seq(),
            current: cell.term == term,
            busy: cell.permit.is_busy(),
        }
    };
    cache.cells().into_iter().map(belief).collect()
}

/// Whether somebody waits for what is read: its grant is still the record's.
pub fn is_waited_for(load: &Load) -> bool {
    load.cell.lock().permit.is_loading(load.seq)
}

/// Until when commits may be made, by the cache's clock.
pub fn leased_until(cache: &Cache) -> Mono {
    cache.lease.until()
}

/// Records that are committed and in no batch yet.
pub fn unwritten(cache: &Cache) -> usize {
    cache.pipeline.open.records()
}

pub fn counts(cache: &Cache) -> &Counts {
    &cache.counts
}
