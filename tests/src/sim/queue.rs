//! What is going to happen, in order of time and, at one time, in the order in which it was decided.

use std::collections::BTreeMap;

use base::{LinkSid, Mono};

use super::network::{ConnId, Place, Side};
use super::provider::Job;
use super::talk::Talk;

/// One thing that happens.
#[derive(Debug)]
pub enum Item {
    /// A message reaches the end `to` of a connection.
    Deliver {
        conn: ConnId,
        to: Side,
        talk: Talk,
    },
    /// The end `to` of a connection learns that the connection is over.
    Gone {
        conn: ConnId,
        to: Side,
    },
    /// A process looks at its clock.
    Tick(Place),
    /// A handler of a provider has done its work.
    Worked {
        at: Place,
        conn: ConnId,
        sid: LinkSid,
        job: Job,
    },
    /// The directory's turn is on the disk.
    Saved(Place),
    /// The plan's fault of this number begins, or ends.
    Fault(usize),
    Lift(usize),
    /// The process in this slot starts, for the first time or anew.
    Start(usize),
    /// A paused process goes on.
    Resume(usize),
    /// All faults end.
    Heal,
}

/// Of these, or of what another simulation has instead.
#[derive(Debug)]
pub struct Queue<T = Item> {
    items: BTreeMap<(Mono, u64), T>,
    pushed: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), pushed: 0 }
    }
}

impl<T> Queue<T> {
    pub fn push(&mut self, at: Mono, item: T) {
        self.pushed += 1;
        self.items.insert((at, self.pushed), item);
    }

    pub fn pop(&mut self) -> Option<(Mono, T)> {
        self.items.pop_first().map(|((at, _), item)| (at, item))
    }
}
