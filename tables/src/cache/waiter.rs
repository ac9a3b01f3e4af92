//! Whoever waits for records: for all of them, or for the first that can't be had.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Cache;
use super::cell::{Cell, CellRef};
use super::permit::Event;
use crate::arbiter::Mode;
use crate::error::Error;

/// Counts down as records come.
#[derive(Debug, Default)]
pub struct Waiter {
    missing: AtomicUsize,
    failed: Mutex<Option<Error>>,
    notify: Notify,
}

impl Waiter {
    /// Waits for so many.
    pub fn new(count: usize) -> Self {
        Self { missing: AtomicUsize::new(count), ..Self::default() }
    }

    /// One of them is to be looked at again.
    pub fn came(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.notify.notify_one();
        }
    }

    /// One of them can't be had.
    pub fn fail(&self, error: Error) {
        self.failed.lock().get_or_insert(error);
        self.notify.notify_one();
    }

    /// What became of it, as far as it is known.
    pub fn outcome(&self) -> Option<Result<(), Error>> {
        if let Some(error) = &*self.failed.lock() {
            return Some(Err(error.clone()));
        }
        (self.missing.load(Ordering::Acquire) == 0).then_some(Ok(()))
    }

    /// Waits for the outcome. Cancel-safe.
    pub async fn wait(&self) -> Result<(), Error> {
        loop {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            self.notify.notified().await;
        }
    }
}

impl Cache {
    /// Waits for records, each to be used like this. Everybody who has waited says [`done`](Self::done) with them later. A
    /// cell that has left memory is replaced by the one that stands for its record now: else a transaction that needs more
    /// than memory has room for would lose one record for each that it waits for, and never have all.
    pub(crate) fn want(&self, wants: &mut [(CellRef, Mode)], waiter: &Arc<Waiter>) {
        for (cell, mode) in wants {
            self.want_one(cell, *mode, waiter);
        }
        self.arbiter.send();
    }

    /// Whoever has a turn with these takes its records in order, and keeps them longer.
    pub(crate) fn keep(&self, wants: &[(CellRef, Mode)]) {
        for (cell, _) in wants {
            let mut locked = cell.lock();
            self.step_locked(cell, &mut locked, Event::Keep);
        }
    }

    fn want_one(&self, cell: &mut CellRef, mode: Mode, waiter: &Arc<Waiter>) {
        loop {
            let mut locked = cell.lock();
            if !locked.gone {
                locked.waiters.push(waiter.clone());
                let request = self.requests.fetch_add(1, Ordering::Relaxed);
                return self.step_locked(cell, &mut locked, Event::Want { mode, request });
            }
            if locked.own {
                // Nobody else has it: whoever looks again finds another cell at once.
                return waiter.came();
            }
            let Cell { shelf, key, .. } = &*locked;
            let (shelf, key) = (shelf.clone(), key.clone());
            drop(locked);
            *cell = self.cell(&shelf, &key);
        }
    }

    /// Whoever waited has had its turn with the records, or waits no longer.
    pub(crate) fn done(&self, wants: &[(CellRef, Mode)], waiter: &Arc<Waiter>) {
        for (cell, _) in wants {
            let mut locked = cell.lock();
            let place = locked.waiters.iter().position(|other| Arc::ptr_eq(other, waiter));
            let event = match place {
                Some(place) => {
                    locked.waiters.remove(place);
                    Event::GaveUp
                }
                None => Event::Unpinned,
            };
            self.step_locked(cell, &mut locked, event);
        }
        self.arbiter.send();
    }
}
