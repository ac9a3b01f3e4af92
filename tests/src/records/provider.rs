//! One provider's process: the production cache with its tables, the production session, and workers. Also its clock, and
//! what waits for it while it stands still.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Mono, Span};
use tables::arbiter::session::Session;
use tables::backend::Batch;
use tables::cache::Cache;
use tables::flush::pipeline::Cut;
use tables::sim;

use super::court::node;
use super::hands::Hands;
use super::item::Item;
use super::keys::{Keys, Shelves};
use super::ledger::{Belief, Mind};
use super::talk::{ConnId, Place};
use super::work::Worker;

/// A clock that runs at its own rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Millionths of the true one.
    pub rate: u64,
    pub offset: u64,
}

impl Clock {
    pub fn here(self, now: Mono) -> Mono {
        let here = u128::from(now.0) * u128::from(self.rate) / 1_000_000;
        Mono(self.offset + here as u64)
    }

    /// When this clock shows `here`, not earlier.
    pub fn there(self, here: Mono) -> Mono {
        let since = u128::from(here.0.saturating_sub(self.offset));
        let there = (since * 1_000_000).div_ceil(u128::from(self.rate));
        Mono(u64::try_from(there).unwrap_or(u64::MAX))
    }
}

/// A batch on its way to the storage, which is said until it is made or refused.
pub struct Writing {
    pub cut: Cut,
    pub batch: Batch,
    pub wait: Span,
}

/// What lives and dies with the process.
pub struct Body {
    pub place: Place,
    pub cache: Arc<Cache>,
    pub shelves: Shelves,
    pub hands: Arc<Hands>,
    hand: Arc<AtomicU64>,
    pub session: Session,
    pub conn: Option<ConnId>,
    /// It is logged in over the connection: what is said leaves.
    pub inside: bool,
    /// Reassertions without an answer.
    pub asserting: usize,
    /// When the session wants to look at the clock.
    pub tick: Option<Mono>,
    pub workers: Vec<Worker>,
    pub writing: Option<Writing>,
    /// Something came to be written meanwhile.
    pub more: Option<bool>,
    pub scratch: i64,
    /// Sessions that the cache has dropped.
    pub losses: u64,
    /// It begins nothing and writes what it has, to leave.
    pub stopping: bool,
    pub left: bool,
}

impl Body {
    pub fn new(place: Place, keys: usize, bytes: usize, workers: usize) -> Self {
        let (hands, hand) = (Hands::new(), Arc::new(AtomicU64::new(0)));
        let reading = hand.clone();
        let clock = Box::new(move || Mono(reading.load(Ordering::Relaxed)));
        let bytes = bytes + keys;
        let cache = Cache::new(node(place.who), "sim", bytes, clock, hands.clone(), hands.clone());
        let cache = Arc::new(cache);
        Self {
            place,
            shelves: Shelves::new(&cache),
            cache,
            hands,
            hand,
            session: Session::default(),
            conn: None,
            inside: false,
            asserting: 0,
            tick: None,
            workers: (0..workers).map(|_| Worker::new()).collect(),
            writing: None,
            more: None,
            scratch: 0,
            losses: 0,
            stopping: false,
            left: false,
        }
    }

    pub fn set_clock(&self, now: Mono) {
        self.hand.store(now.0, Ordering::Relaxed);
    }

    /// What it believes.
    pub fn mind(&self, keys: &Keys, clock: Clock) -> Mind {
        let belief = |belief: sim::Belief| {
            let key = keys.of_record(belief.record)?;
            let held = if belief.current { belief.held } else { tables::Mode::Invalid };
            Some(Belief { key, held })
        };
        let beliefs = sim::beliefs(&self.cache).into_iter().filter_map(belief).collect();
        Mind { beliefs, until: clock.there(sim::leased_until(&self.cache)) }
    }

    /// Nothing that it has committed is still to be written.
    pub fn is_written(&self) -> bool {
        self.writing.is_none() && sim::unwritten(&self.cache) == 0
    }
}

/// A provider through all its lives.
pub struct Provider {
    pub who: usize,
    pub life: u64,
    pub clock: Clock,
    pub body: Option<Body>,
    pub paused: bool,
    /// What happens to it when it goes on.
    pub backlog: VecDeque<Item>,
}

impl Provider {
    pub fn place(&self) -> Place {
        Place { who: self.who, life: self.life }
    }
}
