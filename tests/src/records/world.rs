//! The world of a run, and its loop: the next thing happens, to whom it happens, until all has come to rest.

use std::collections::VecDeque;

use base::{Fence, Mono, Span};
use tables::backend::{Applied, BackendError, Batch};

use crate::sim::queue::Queue;
use crate::sim::trace::Trace;
use crate::sim::{Keep, Rng};

use super::court::{Court, Sends};
use super::invariants::{Seen, Watch};
use super::item::{Event, Item, name};
use super::keys::Keys;
use super::ledger::Ledger;
use super::link::{Links, Way};
use super::plan::{HEAL, Plan};
use super::provider::{Body, Clock, Provider};
use super::storage::{Storage, failure};
use super::talk::{ConnId, Down, Place, Up};
use super::work::Op;

/// So long after healing everybody has changed every record.
pub const PROGRESS: Span = Span::secs(60);
/// From the last transaction to the last look.
const REST: Span = Span::secs(5);
const COURT_TICK: Span = Span::millis(50);

/// Where the run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Things go wrong.
    Faults,
    /// Nothing does any more, and everybody is to change every record.
    Healed,
    /// Nothing is begun any more; what is under way ends, by then.
    Rest(Mono),
    /// Everybody leaves, by then.
    Leaving(Mono),
}

pub struct World {
    pub plan: Plan,
    pub keys: Keys,
    pub now: Mono,
    pub rng: Rng,
    pub queue: Queue<Item>,
    pub trace: Trace,
    pub links: Links,
    pub storage: Storage,
    pub court: Option<Court>,
    pub court_life: u64,
    pub court_clock: Clock,
    pub court_paused: bool,
    court_backlog: VecDeque<Item>,
    pub providers: Vec<Provider>,
    pub watch: Watch,
    pub phase: Phase,
    pub ids: u64,
    pub steps: u64,
    /// Records that each provider has changed since all healed.
    pub changed: Vec<Vec<bool>>,
}

impl World {
    pub fn new(plan: Plan, keep: Keep) -> Self {
        let keys = Keys::new(plan.keys);
        let mut rng = Rng::new(base::hash::mix(plan.seed ^ 0x0077_6f72_6c64));
        let provider = |(who, rate): (usize, &u64)| Provider {
            who,
            life: 0,
            clock: Clock { rate: *rate, offset: 1_000_000 * (who as u64 + 1) },
            body: None,
            paused: false,
            backlog: VecDeque::new(),
        };
        let providers: Vec<Provider> = plan.rates.iter().enumerate().map(provider).collect();
        let court_clock = Clock { rate: plan.arbiter_rate, offset: 77 };
        let mut world = Self {
            storage: Storage::new(&keys),
            court: None,
            court_life: 0,
            court_clock,
            court_paused: false,
            court_backlog: VecDeque::new(),
            watch: Watch::new(Ledger::new(&keys), &keys),
            changed: vec![vec![false; plan.keys]; plan.providers],
            keys,
            now: Mono::ZERO,
            queue: Queue::default(),
            trace: Trace::new(keep),
            links: Links::default(),
            providers,
            phase: Phase::Faults,
            ids: 0,
            steps: 0,
            plan,
            rng: rng.clone(),
        };
        world.court_start();
        for who in 0..world.providers.len() {
            world.queue.push(Mono(rng.below(300_000)), Item::Start { who });
        }
        for at in 0..world.plan.faults.len() {
            world.queue.push(world.plan.faults[at].0, Item::Fault(at));
        }
        world.queue.push(HEAL, Item::Heal);
        world
    }

    /// Runs to the end, or to the first broken promise.
    pub fn run(&mut self) {
        while let Some((at, item)) = self.queue.pop() {
            self.now = self.now.max(at);
            self.watch.ledger.now = self.now;
            if self.watch.violation.is_some() || self.is_over() {
                return;
            }
            self.steps += 1;
            self.happen(item);
        }
    }

    pub fn after(&mut self, span: Span, item: Item) {
        self.queue.push(self.now + span, item);
    }

    pub fn say(&mut self, what: impl FnOnce() -> String) {
        self.trace.say(self.now, what);
    }

    pub fn see(&mut self, seen: &Seen<'_>) {
        self.watch.see(self.now, seen);
    }

    fn happen(&mut self, item: Item) {
        match item {
            Item::Up { .. } | Item::Hung { .. } | Item::CourtTick { .. } if self.court_paused => {
                self.court_backlog.push_back(item);
            }
            Item::Up { conn, up } => {
                if self.links.carries(conn, Way::Up) {
                    self.judge(|court, now, sends| court.hear(now, conn, up, sends));
                }
            }
            Item::Hung { conn } => {
                if let Some(court) = &mut self.court {
                    court.closed(conn);
                }
            }
            Item::CourtTick { life } => {
                if life == self.court_life && self.court.is_some() {
                    self.judge(Court::tick);
                    self.after(COURT_TICK, Item::CourtTick { life });
                }
            }
            Item::Load { place, load } => {
                let stored = self.storage.get(load.table, &load.key).cloned();
                self.answer(place, Event::Loaded { load, result: Ok(stored) });
            }
            Item::Raise { place, evicted } => self.raise(place, evicted),
            Item::Apply { place, batch } => self.apply(place, &batch),
            Item::In { place, event } => self.to(place, event),
            Item::Fault(at) => self.fault(self.plan.faults[at].1),
            Item::Resume { who, life } => {
                if self.providers[who].life == life {
                    self.resume(who);
                }
            }
            Item::Start { who } => self.start(who),
            Item::CourtStart { life } => {
                if life == self.court_life && self.court.is_none() {
                    self.court_start();
                }
            }
            Item::CourtResume { life } => {
                if life == self.court_life {
                    self.court_resume();
                }
            }
            Item::Heal => self.heal(),
        }
    }

    /// A provider gets an answer of the storage.
    fn answer(&mut self, place: Place, event: Event) {
        let takes = Span::micros(self.rng.between(50, 1_000));
        self.after(takes, Item::In { place, event });
    }

    fn raise(&mut self, place: Place, evicted: Vec<tables::arbiter::Evicted>) {
        if self.storage.refuses(self.now, place.who) {
            let wait = self.rng.millis(10, 200);
            return self.after(wait, Item::Raise { place, evicted });
        }
        for one in evicted {
            self.say(|| format!("{place}: {} writes nothing below {}", name(&one.node), one.below));
            self.see(&Seen::Raised { node: one.node.as_ref(), below: one.below });
            self.storage.raise(one.node, one.below);
        }
        self.answer(place, Event::Raised);
    }

    fn apply(&mut self, place: Place, batch: &Batch) {
        let result = self.make(place, batch);
        self.answer(place, Event::Applied { result });
    }

    fn make(&mut self, place: Place, batch: &Batch) -> Result<Applied, BackendError> {
        if self.storage.refuses(self.now, place.who) {
            return Err(failure());
        }
        let result = self.storage.apply(batch);
        self.say(|| {
            let (fence, first, last) = (batch.fence, batch.first.0, batch.last.0);
            format!("{place}: batch {first}-{last} under {fence}: {result:?}")
        });
        if result == Ok(Applied::Now) {
            let contents = Ledger::contents(&self.keys, batch);
            self.see(&Seen::Applied { place, batch, contents: &contents });
            self.watch.ledger.applied(place, batch.first.0);
            self.see(&Seen::Stored);
        }
        if result.is_ok() && self.storage.forgets(self.now) {
            return Err(failure());
        }
        result
    }

    /// Lets the arbiter judge something and sends what it says.
    pub fn judge(&mut self, ask: impl FnOnce(&mut Court, Mono, &mut Sends)) {
        let here = self.court_clock.here(self.now);
        let Some(court) = &mut self.court else { return };
        let warming = court.core.status().warming;
        let mut sends = Sends::default();
        ask(court, here, &mut sends);
        let (epoch, opens) = (court.epoch, warming && !court.core.status().warming);
        if self.steps.is_multiple_of(64) {
            court.core.check();
        }
        if opens {
            self.watch.ledger.evicted(|fence| fence.epoch < epoch);
        }
        for judged in &sends.judged {
            for action in &judged.actions {
                if let global_cache::arbiter::Action::Lost { session } = action {
                    let over = Fence::new(epoch, session.number);
                    self.watch.ledger.evicted(|fence| fence == over);
                }
            }
            if self.trace.is_on() && !matches!(judged.event, global_cache::arbiter::Event::Tick) {
                self.say(|| format!("arbiter: {:?}", judged.event));
            }
            if self.trace.is_on() {
                for action in &judged.actions {
                    self.say(|| format!("arbiter:   {action:?}"));
                }
            }
            self.watch.see(self.now, &Seen::Judged { judged, epoch, here });
        }
        for (conn, down) in sends.down {
            self.send_down(conn, down);
        }
        for conn in sends.closed {
            if let Some(court) = &mut self.court {
                court.closed(conn);
            }
        }
    }

    fn send_down(&mut self, conn: ConnId, down: Down) {
        let Some(place) = self.links.get(conn).map(|link| link.place) else { return };
        if let Some(at) = self.links.arrives(conn, Way::Down, self.now, &mut self.rng) {
            self.queue.push(at, Item::In { place, event: Event::Down { conn, down } });
        }
    }

    pub fn send_up(&mut self, conn: ConnId, up: Up) {
        if let Some(at) = self.links.arrives(conn, Way::Up, self.now, &mut self.rng) {
            self.queue.push(at, Item::Up { conn, up });
        }
    }

    pub fn court_start(&mut self) {
        self.court_life += 1;
        let (life, here) = (self.court_life, self.court_clock.here(self.now));
        self.court = Some(Court::new(life, here, life == 1));
        self.court_paused = false;
        self.court_backlog.clear();
        self.say(|| format!("the arbiter starts as {life}"));
        self.after(COURT_TICK, Item::CourtTick { life });
    }

    pub fn court_resume(&mut self) {
        self.court_paused = false;
        for item in std::mem::take(&mut self.court_backlog) {
            self.happen(item);
        }
    }

    pub fn start(&mut self, who: usize) {
        if self.providers[who].body.is_some() {
            return;
        }
        let Plan { keys, cache_bytes, workers, .. } = self.plan;
        let provider = &mut self.providers[who];
        provider.life += 1;
        (provider.paused, provider.backlog) = (false, VecDeque::new());
        let place = provider.place();
        provider.body = Some(Body::new(place, keys, cache_bytes, workers));
        self.say(|| format!("{place} starts"));
        let span = self.rng.millis(0, 20);
        self.after(span, Item::In { place, event: Event::Dial });
        self.after(span, Item::In { place, event: Event::Beat });
        for worker in 0..workers {
            let wait = self.rng.millis(1, 300);
            self.after(wait, Item::In { place, event: Event::Work { worker, ticket: 0 } });
        }
    }

    fn resume(&mut self, who: usize) {
        let provider = &mut self.providers[who];
        if !std::mem::take(&mut provider.paused) {
            return;
        }
        let place = provider.place();
        let mut backlog: Vec<Item> = std::mem::take(&mut provider.backlog).into();
        self.say(|| format!("{place} goes on"));
        // Its threads run again in any order: often workers go on before the session looks at the clock.
        if self.rng.one_in(2) {
            backlog.sort_by_key(|item| !matches!(item, Item::In { event, .. } if event.is_work()));
        }
        for item in backlog {
            self.happen(item);
        }
    }

    fn to(&mut self, place: Place, event: Event) {
        let provider = &mut self.providers[place.who];
        if provider.place() != place || provider.body.is_none() {
            return;
        }
        if provider.paused {
            return provider.backlog.push_back(Item::In { place, event });
        }
        self.inside(place, event);
    }

    /// What a worker does next.
    pub fn next_op(&mut self, place: Place) -> Option<Op> {
        match self.phase {
            Phase::Faults => {}
            Phase::Healed => {
                let missing = self.changed[place.who].iter().position(|changed| !changed);
                if let Some(key) = missing.filter(|_| self.rng.one_in(2)) {
                    return Some(Op::change(&self.keys, key));
                }
            }
            Phase::Rest(_) | Phase::Leaving(_) => return None,
        }
        Some(Op::draw(&self.keys, &mut self.rng))
    }

    /// Goes from phase to phase; true: it is over.
    fn is_over(&mut self) -> bool {
        match self.phase {
            Phase::Faults => false,
            Phase::Healed => {
                if self.changed.iter().flatten().all(|changed| *changed) {
                    self.phase = Phase::Rest(self.now + REST);
                } else if self.now.since(HEAL) > PROGRESS {
                    let changed = self.changed.clone();
                    self.watch.fail("progress", self.now, format!("who has changed what: {changed:?}"));
                }
                false
            }
            Phase::Rest(until) if self.now >= until => {
                self.see(&Seen::Rests);
                self.phase = Phase::Leaving(self.now + REST);
                for who in 0..self.providers.len() {
                    let place = self.providers[who].place();
                    self.after(Span::ZERO, Item::In { place, event: Event::Stop });
                }
                false
            }
            Phase::Leaving(until) if self.now >= until => {
                if let Some(court) = &self.court {
                    let status = court.core.status();
                    court.core.check();
                    self.watch.see(self.now, &Seen::Left { status });
                }
                true
            }
            Phase::Rest(_) | Phase::Leaving(_) => false,
        }
    }
}
