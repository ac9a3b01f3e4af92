//! An arbiter in the provider's own process: the same core, called instead of spoken to. For development, and for a game
//! whose providers all are one process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use base::{Epoch, Fence, Generation, Mono, NodeId, Span};
use global_cache::Arbiter as Core;
use global_cache::arbiter::{Action, Event, SessionId, Settings};
use parking_lot::Mutex;

use super::said::{event, heard};
use super::{Arbiter, Hear, Heard, Word};

/// See the module.
pub struct Embedded {
    clock: Box<dyn Fn() -> Mono + Send + Sync>,
    inner: Mutex<Inner>,
    /// Somebody hands out what the core has said.
    handing: AtomicBool,
}

struct Inner {
    core: Core,
    said: VecDeque<(SessionId, Word)>,
    seats: BTreeMap<SessionId, Weak<dyn Hear>>,
    welcomed: Option<(SessionId, Fence)>,
    joined: u64,
    actions: Vec<Action>,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded").finish_non_exhaustive()
    }
}

/// A provider's place at an embedded arbiter, which it has before it can hear.
#[derive(Debug)]
pub struct Seat {
    arbiter: Arc<Embedded>,
    node: NodeId,
    epoch: Epoch,
    session: Mutex<Option<SessionId>>,
}

impl Embedded {
    /// `epoch`: larger at each start of the process, since what is written under an earlier one is refused by it.
    pub fn new(epoch: Epoch, clock: Box<dyn Fn() -> Mono + Send + Sync>) -> Arc<Self> {
        let mut settings = Settings::new(epoch);
        // Who is in this process can't be silent, and an earlier start of it is over.
        settings.grace = Span::ZERO;
        let core = Core::new(settings, clock());
        let (said, seats, actions) = (VecDeque::new(), BTreeMap::new(), Vec::new());
        let inner = Inner { core, said, seats, welcomed: None, joined: 0, actions };
        Arc::new(Self { clock, inner: Mutex::new(inner), handing: AtomicBool::new(false) })
    }

    /// A place for a provider.
    pub fn seat(self: &Arc<Self>, node: NodeId, epoch: Epoch) -> Arc<Seat> {
        Arc::new(Seat { arbiter: self.clone(), node, epoch, session: Mutex::new(None) })
    }

    /// Requests that waited too long are denied. To be called every now and then.
    pub fn tick(&self) {
        {
            let mut inner = self.inner.lock();
            let now = (self.clock)();
            let sessions: Vec<SessionId> = inner.seats.keys().copied().collect();
            for session in sessions {
                inner.step(now, Event::Renew { session });
            }
            inner.step(now, Event::Tick);
        }
        self.hand();
    }

    /// Lets the core judge what was said and hands out its answers, unless somebody does already.
    fn hand(&self) {
        loop {
            if self.handing.swap(true, Ordering::Acquire) {
                return;
            }
            while let Some((hear, mut words)) = self.next() {
                hear.heard(&mut words);
            }
            self.handing.store(false, Ordering::Release);
            let inner = self.inner.lock();
            if inner.said.is_empty() && inner.actions.is_empty() {
                return;
            }
        }
    }

    /// The next answer and whom it is for.
    fn next(&self) -> Option<(Arc<dyn Hear>, Vec<Heard>)> {
        let mut inner = self.inner.lock();
        loop {
            if inner.actions.is_empty() {
                let (session, word) = inner.said.pop_front()?;
                let now = (self.clock)();
                inner.step(now, event(session, word));
                continue;
            }
            let action = inner.actions.remove(0);
            let Some((session, heard)) = heard(&action) else { continue };
            if let Some(hear) = inner.seats.get(&session).and_then(Weak::upgrade) {
                return Some((hear, vec![heard]));
            }
        }
    }
}

impl Inner {
    fn step(&mut self, now: Mono, event: Event) {
        let mut actions = std::mem::take(&mut self.actions);
        self.core.step(now, event, &mut actions);
        for action in &actions {
            if let Action::Welcome { session, fence, .. } = action {
                self.welcomed = Some((*session, *fence));
            }
        }
        self.actions = actions;
    }
}

impl Seat {
    /// Logs in: from now on `hear` hears.
    pub fn open(&self, hear: &Arc<dyn Hear>) {
        let arbiter = &self.arbiter;
        let welcomed = {
            let mut inner = arbiter.inner.lock();
            inner.joined += 1;
            let (conn, node, epoch) = (Generation(inner.joined), self.node.clone(), self.epoch);
            inner.welcomed = None;
            inner.step((arbiter.clock)(), Event::Login { conn, node, epoch, storages: Vec::new() });
            let welcomed = inner.welcomed.take();
            if let Some((session, _)) = welcomed {
                inner.seats.insert(session, Arc::downgrade(hear));
            }
            welcomed
        };
        let Some((session, fence)) = welcomed else {
            return tracing::error!(node = %self.node, "the embedded arbiter has no room for another provider");
        };
        *self.session.lock() = Some(session);
        hear.opened(fence.epoch, fence, Mono(u64::MAX));
        arbiter.hand();
    }

    /// Everything that it holds is free.
    pub fn leave(&self) {
        let Some(session) = self.session.lock().take() else { return };
        let mut inner = self.arbiter.inner.lock();
        inner.seats.remove(&session);
        inner.step((self.arbiter.clock)(), Event::Bye { session });
        drop(inner);
        self.arbiter.hand();
    }
}

impl Arbiter for Seat {
    fn say(&self, words: &mut Vec<Word>) {
        let session = *self.session.lock();
        let Some(session) = session else { return words.clear() };
        let mut inner = self.arbiter.inner.lock();
        inner.said.extend(words.drain(..).map(|word| (session, word)));
    }

    fn send(&self) {
        self.arbiter.hand();
    }
}
