//! Core: records that somebody waits for, and what is done about it.

use std::collections::VecDeque;

use base::Mono;

use super::event::{Ask, Mode, SessionId};
use super::holders::Holder;

/// A request that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiter {
    pub session: SessionId,
    pub ask: Ask,
    /// It is denied then.
    pub until: Mono,
}

/// A holder that was asked to reduce.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub holder: Holder,
    pub to: Mode,
    /// It could not yet, and is asked again then.
    pub again: Option<Mono>,
}

/// One record's: the request that is being served, whom it waits for, and who waits behind it, in order.
#[derive(Debug)]
pub(super) struct Op {
    pub entry: u32,
    pub serving: Waiter,
    pub targets: Vec<Target>,
    pub waiting: VecDeque<Waiter>,
}

impl Op {
    /// Everybody who waits, first who is served.
    pub fn waiters(&self) -> impl Iterator<Item = &Waiter> {
        std::iter::once(&self.serving).chain(&self.waiting)
    }
}

/// All of them. A name is one more than a place, so that 0 names none.
#[derive(Debug, Default)]
pub(super) struct Ops {
    places: Vec<Option<Op>>,
    free: Vec<u32>,
}

impl Ops {
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn at(&self, name: u32) -> Option<&Op> {
        self.places.get((name as usize).checked_sub(1)?)?.as_ref()
    }

    pub fn at_mut(&mut self, name: u32) -> Option<&mut Op> {
        self.places.get_mut((name as usize).checked_sub(1)?)?.as_mut()
    }

    pub fn begin(&mut self, op: Op) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(op);
            return place + 1;
        }
        self.places.push(Some(op));
        self.places.len() as u32
    }

    pub fn end(&mut self, name: u32) -> Option<Op> {
        let place = name.checked_sub(1)?;
        let op = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(op)
    }

    /// The names of all, in an order that is the same in every run.
    pub fn names(&self) -> Vec<u32> {
        (1..=self.places.len() as u32).filter(|name| self.at(*name).is_some()).collect()
    }

    pub fn check(&self) {
        for op in self.places.iter().flatten() {
            assert!(!op.targets.is_empty(), "an operation waits for nobody");
            let mut asked: Vec<_> = op.waiters().map(|waiter| (waiter.session, waiter.ask.request)).collect();
            asked.sort_unstable();
            asked.dedup();
            assert_eq!(asked.len(), op.waiters().count(), "a request waits once");
        }
    }
}
