//! Core: who may hold which record, to read or to change it.
//!
//! A record has readers or one that may change it. Who asks for what others hold waits while they are asked to reduce what
//! they hold; each grant has a number of its own, so that what is late, doubled or reordered changes nothing. A session that
//! is not heard of for the eviction time loses everything at once; from then on each grant names it, so that storages refuse
//! what it may still write.

mod acquire;
mod event;
mod holders;
mod keys;
mod op;
mod reduce;
mod sessions;

use base::lease::Terms;
use base::{Epoch, Fence, Mono, Span};

pub use event::{Action, Ask, Denied, Event, Evicted, Grant, Key, Mode, Refused, Seq, SessionId, Storage};
use holders::Holder;
use keys::Keys;
use op::Ops;
use sessions::Sessions;

/// Within this a holder answers a Reduce.
pub const REDUCE: Span = Span::secs(2);
/// Every Acquire is answered within this.
pub const ACQUIRE: Span = Span::secs(3);
/// When to ask again after a refusal that names no moment of its own.
const AGAIN: Span = Span::millis(50);
/// Entries that a tick looks through for what the dead have held.
const SWEEP: u32 = 65_536;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// This start of the arbiter: the upper part of every fence.
    pub epoch: Epoch,
    pub terms: Terms,
    /// How long nothing is granted after a start: as long as somebody may use what an earlier life granted.
    pub grace: Span,
    /// Records that one session may hold.
    pub held_max: usize,
    /// Sessions, at most 65,535.
    pub sessions_max: usize,
    /// Requests that may wait for one record.
    pub waiting_max: usize,
    /// Records that may be waited for.
    pub ops_max: usize,
}

impl Settings {
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            terms: Terms::DEFAULT,
            grace: Terms::DEFAULT.eviction,
            held_max: 20_000_000,
            sessions_max: 4_096,
            waiting_max: 1_024,
            ops_max: 1_000_000,
        }
    }
}

/// What was done, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub granted: u64,
    pub denied: u64,
    pub reduces: u64,
    /// Words about grants that were over.
    pub late: u64,
    pub evicted: u64,
}

/// The numbers of an arbiter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    pub sessions: usize,
    pub keys: usize,
    pub waited_for: usize,
    pub warming: bool,
    pub counts: Counts,
}

/// See the module.
#[derive(Debug)]
pub struct Arbiter {
    settings: Settings,
    opens: Mono,
    open: bool,
    seq: u64,
    keys: Keys,
    sessions: Sessions,
    ops: Ops,
    counts: Counts,
}

impl Arbiter {
    pub fn new(settings: Settings, now: Mono) -> Self {
        let sessions = Sessions::new(settings.sessions_max.min(usize::from(u16::MAX)));
        let opens = now + settings.grace;
        let (keys, ops) = (Keys::default(), Ops::default());
        let mut arbiter =
            Self { settings, opens, open: false, seq: 0, keys, sessions, ops, counts: Counts::default() };
        arbiter.open(now);
        arbiter
    }

    pub fn step(&mut self, now: Mono, event: Event, actions: &mut Vec<Action>) {
        self.open(now);
        match event {
            Event::Login { conn, node, epoch, storages } => {
                self.login(now, conn, node, epoch, storages, actions);
            }
            Event::Renew { session } => self.renew(now, session, actions),
            Event::Acquire { session, ask } => self.acquire(now, session, ask, actions),
            Event::AcquireMany { session, asks } => {
                for ask in asks {
                    self.acquire(now, session, ask, actions);
                }
            }
            Event::Release { session, key, seq, flushed } => {
                self.reduced(session, key, (seq, Mode::Invalid, flushed), actions);
            }
            Event::Reduced { session, key, seq, to, flushed } => {
                self.reduced(session, key, (seq, to, flushed), actions);
            }
            Event::Refused { session, key, seq, until } => {
                self.refused(now, session, key, (seq, until), actions)
            }
            Event::Reassert { session, key, mode } => self.reassert(session, key, mode, actions),
            Event::Bye { session } => self.bye(session, actions),
            Event::Tick => self.tick(now, actions),
        }
    }

    /// These are asked for next: looks where each stands. Changes nothing, but the looks wait for memory together, and the
    /// steps, one after another, find it near.
    pub fn expect(&self, keys: &[Key]) {
        std::hint::black_box(keys.iter().filter(|key| self.keys.find(**key).is_some()).count());
    }

    pub fn status(&self) -> Status {
        Status {
            sessions: self.sessions.alive(),
            keys: self.keys.len(),
            waited_for: self.ops.len(),
            warming: !self.open,
            counts: self.counts,
        }
    }

    /// Who holds a record, and how.
    pub fn lookup(&self, key: Key) -> Vec<(&base::NodeId, Mode, Seq)> {
        let Some(at) = self.keys.find(key) else { return Vec::new() };
        let holders = &self.keys.at(at).holders;
        let holder = |holder: &Holder| {
            let session = self.sessions.living(holder.slot())?;
            Some((&session.node, holders.mode(holder.slot()), holder.seq()))
        };
        holders.as_slice().iter().filter_map(holder).collect()
    }

    /// Who waits for a record, and for what; first who is served next.
    pub fn waiting(&self, key: Key) -> Vec<(&base::NodeId, Mode)> {
        let op = self.keys.find(key).and_then(|at| self.ops.at(self.keys.at(at).op));
        let waiters = op.into_iter().flat_map(|op| op.waiters());
        let waiter = |waiter: &op::Waiter| {
            let session = self.sessions.living(waiter.session.slot)?;
            Some((&session.node, waiter.ask.want))
        };
        waiters.filter_map(waiter).collect()
    }

    /// Until then nothing is granted.
    pub fn opens(&self) -> Mono {
        self.opens
    }

    /// Everything that decides what comes next, as text: the same for two arbiters that will do the same. For models that
    /// look at every order of events. Looks at every record.
    #[doc(hidden)]
    pub fn image(&self) -> String {
        let used = (0..self.keys.places()).filter(|at| self.keys.is_used(*at));
        let records: Vec<_> = used.map(|at| self.keys.at(at)).collect();
        format!("{} {} {records:?} {:?} {:?}", self.open, self.seq, self.sessions, self.ops)
    }

    /// The grace is over: from now on nobody writes under what an earlier life of the arbiter granted.
    fn open(&mut self, now: Mono) {
        if !self.open && now >= self.opens {
            self.open = true;
            self.sessions.evict_all_before(Fence::new(self.settings.epoch, 0));
        }
    }

    fn next_seq(&mut self) -> Seq {
        self.seq += 1;
        Seq(self.seq)
    }

    /// Time has passed: leases run out, requests are answered late rather than never, and what the dead held is swept up.
    fn tick(&mut self, now: Mono, actions: &mut Vec<Action>) {
        for slot in self.sessions.expired(now) {
            self.evict(slot, actions);
        }
        self.wake(now, actions);
        for _ in 0..SWEEP {
            let Some(at) = self.sessions.sweep_next(self.keys.places()) else { break };
            if self.keys.is_used(at) {
                self.prune(at);
                self.forget_if_empty(at);
            }
        }
    }

    /// Drops holders whose sessions are over.
    fn prune(&mut self, at: u32) {
        let (sessions, entry) = (&self.sessions, self.keys.at_mut(at));
        let modifier = entry.holders.modifier();
        entry.holders.retain(|holder| sessions.living(holder.slot()).is_some());
        if modifier.is_some() && entry.holders.is_empty() {
            // What it has written last nobody can say: perhaps it has removed the record, whose versions then begin again.
            entry.flushed = 0;
        }
    }

    fn forget_if_empty(&mut self, at: u32) {
        let entry = self.keys.at(at);
        if entry.holders.is_empty() && entry.op == 0 {
            self.keys.forget(at);
        }
    }

    /// What always holds between two steps. Looks at every record.
    pub fn check(&self) {
        let mut used = 0;
        for at in (0..self.keys.places()).filter(|at| self.keys.is_used(*at)) {
            used += 1;
            let entry = self.keys.at(at);
            assert_eq!(self.keys.find(entry.key()), Some(at), "a record is found by its key");
            assert!(
                entry.op != 0 || !entry.holders.is_empty(),
                "a record that nobody holds or waits for is kept"
            );
            if entry.op != 0 {
                assert_eq!(
                    self.ops.at(entry.op).map(|op| op.entry),
                    Some(at),
                    "an operation is of its record"
                );
            }
            let slots: std::collections::BTreeSet<_> =
                entry.holders.as_slice().iter().map(|holder| holder.slot()).collect();
            assert_eq!(slots.len(), entry.holders.as_slice().len(), "a session holds a record once");
            assert!(
                entry.holders.as_slice().iter().all(|holder| holder.seq().0 <= self.seq),
                "a number nobody gave"
            );
        }
        assert_eq!(used, self.keys.len(), "records are counted");
        self.sessions.check();
        self.ops.check();
    }
}

#[cfg(test)]
mod tests;
