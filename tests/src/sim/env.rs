//! What every process of the simulation stands in: time, chance, the network and whoever watches.

use base::{Mono, Span};
use service_manager::directory::Terms;

use super::disk::Disk;
use super::invariants::{Seen, Watch};
use super::network::{Network, Place};
use super::queue::{Item, Queue};
use super::rng::Rng;
use super::trace::Trace;

/// How often a process looks at its clock.
pub const TICK: Span = Span::millis(400);

#[derive(Debug)]
pub struct Env {
    pub now: Mono,
    pub rng: Rng,
    pub queue: Queue,
    pub network: Network,
    pub trace: Trace,
    pub watch: Watch,
    /// What a directory with a store has saved.
    pub disk: Disk,
    /// Starts that have ended by themselves.
    pub ended: Vec<Place>,
    /// The directory's times.
    pub terms: Terms,
    /// A connection between linkd and provider that was silent for so long is asked, for twice as long given up.
    pub beat: Span,
    /// No more faults: whoever misbehaved behaves.
    pub healed: bool,
    /// Clients ask for nothing more, so that what is under way can end.
    pub quiet: bool,
}

impl Env {
    /// Everybody who watches looks at this.
    pub fn see(&mut self, seen: &Seen<'_>) {
        self.watch.see(self.now, seen);
    }

    pub fn after(&mut self, span: Span, item: Item) {
        self.queue.push(self.now + span, item);
    }
}
