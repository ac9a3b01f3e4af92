//! Who has failed too often waits for his turn: those who use the same records then run one after another.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::arbiter::Mode;
use crate::cache::cell::{CellRef, address};

/// All of these in the order in which everybody waits for several one after another, each once.
pub(crate) fn in_order(mut all: Vec<(CellRef, Mode)>) -> Vec<(CellRef, Mode)> {
    all.sort_by_key(|(cell, mode)| (cell.lock().record, std::cmp::Reverse(*mode)));
    all.dedup_by_key(|(cell, _)| address(cell));
    all
}

/// Places to queue at; records that share one wait for each other without need, and nothing worse.
const PLACES: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub struct Queue {
    places: Box<[Arc<Mutex<()>>]>,
}

/// Places in the queue; they are others' when this is dropped.
#[derive(Debug, Default)]
pub struct Queued {
    _guards: Vec<OwnedMutexGuard<()>>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| Arc::default()).collect() }
    }
}

impl Queue {
    /// Waits for the turn at all records, in an order that is the same for everybody. It is over when the guards are
    /// dropped. Fair: who came first has the first turn.
    pub(super) async fn turn(&self, records: impl Iterator<Item = usize>) -> Queued {
        let mut places: Vec<usize> = records.map(|address| (address >> 6) % PLACES).collect();
        places.sort_unstable();
        places.dedup();
        let mut guards = Vec::with_capacity(places.len());
        for place in places {
            guards.push(self.places[place].clone().lock_owned().await);
        }
        Queued { _guards: guards }
    }
}
