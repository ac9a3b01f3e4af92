//! What can happen in a run.

use base::{Fence, NodeId};
use tables::arbiter::Evicted;
use tables::backend::{Applied, BackendError, Batch, Stored};
use tables::cache::Load;

use super::talk::{ConnId, Down, Place, Up};

/// One thing that happens.
pub enum Item {
    /// It reaches the arbiter.
    Up {
        conn: ConnId,
        up: Up,
    },
    /// The arbiter learns that a connection is over.
    Hung {
        conn: ConnId,
    },
    /// The arbiter looks at its clock.
    CourtTick {
        life: u64,
    },
    /// A read reaches the storage.
    Load {
        place: Place,
        load: Load,
    },
    /// Fences reach it.
    Raise {
        place: Place,
        evicted: Vec<Evicted>,
    },
    /// A batch does.
    Apply {
        place: Place,
        batch: Batch,
    },
    /// Something happens in the process of a provider.
    In {
        place: Place,
        event: Event,
    },
    Fault(usize),
    Resume {
        who: usize,
        life: u64,
    },
    Start {
        who: usize,
    },
    CourtStart {
        life: u64,
    },
    CourtResume {
        life: u64,
    },
    Heal,
}

/// What happens to a provider.
pub enum Event {
    Dial,
    Down {
        conn: ConnId,
        down: Down,
    },
    Closed {
        conn: ConnId,
    },
    Loaded {
        load: Load,
        result: Result<Option<Stored>, BackendError>,
    },
    Raised,
    Applied {
        result: Result<Applied, BackendError>,
    },
    /// The batch that failed is said again.
    WriteAgain,
    Flush,
    Look,
    /// Every so often: looks, and makes room.
    Beat,
    Tick,
    Abandon {
        fence: Option<Fence>,
    },
    Work {
        worker: usize,
        ticket: u64,
    },
    /// Writes everything and leaves.
    Stop,
}

impl Event {
    pub fn is_work(&self) -> bool {
        matches!(self, Self::Work { .. })
    }
}

/// For a trace.
pub fn name(node: &Option<NodeId>) -> String {
    node.as_ref().map_or_else(|| "everybody".to_owned(), ToString::to_string)
}
