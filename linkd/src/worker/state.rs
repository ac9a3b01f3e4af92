//! A worker's shared state: the router and the sending halves of its connections.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use base::{Generation, LinkSid, Mono};
use bytes::Bytes;
use net::Outbox;
use net::inbox::SharedScratch;
use net::link::Link;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::code;

use super::{Settings, Transport};
use crate::admission::Admission;
use crate::auth::{Gate, Judgement};
use crate::counters::Counters;
use crate::router::{
    Action, Bounds, Event, Found, Guard, ProviderRef, Router, Summary, Who, give_back_room, slot,
};

/// One worker. Its tasks hold it by `Rc` and borrow the state only between awaits.
pub struct Worker {
    pub settings: Settings,
    pub scratch: SharedScratch,
    /// The worker stops: nobody comes in any more.
    pub closing: CancellationToken,
    /// Connections between their acceptance and their session. Bounded by the door.
    entering: Cell<usize>,
    zero: Instant,
    state: RefCell<State>,
}

/// A connection on its way in.
pub struct Entering<'a>(&'a Cell<usize>);

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A client's sending half.
pub struct Client {
    pub sid: LinkSid,
    pub outbox: Outbox,
    /// Rung when the session was ended from this side.
    pub ended: Rc<Notify>,
    /// Its place at the door.
    pub admission: Admission,
    pub transport: Transport,
    /// Has bytes that this batch has not flushed yet.
    pub touched: bool,
}

/// A provider's connection.
pub struct Provider {
    pub conn: Generation,
    pub link: Link,
    /// What is let through to it.
    pub guard: Guard,
    pub touched: bool,
}

/// Everything that tasks of the worker share.
pub struct State {
    pub router: Router,
    /// Indexed by [`slot`] of the sid.
    pub clients: Vec<Option<Client>>,
    /// Clients whose session the router has ended and whose last words are still on their way: their slots may be in
    /// use again.
    pub ending: BTreeMap<LinkSid, Client>,
    /// Indexed by [`ProviderRef::slot`].
    pub providers: Vec<Option<Provider>>,
    pub actions: Vec<Action>,
    pub touched_clients: Vec<LinkSid>,
    pub touched_providers: Vec<u32>,
    /// Clients whose outbox refused a frame.
    pub slow: Vec<LinkSid>,
    /// The frames of broadcasts on their way.
    pub kept: BTreeMap<u64, Bytes>,
    /// Rung while a broadcast waits for its next turn.
    pub fan: Rc<Notify>,
    pub bounds: Bounds,
    pub counters: Arc<Counters>,
    /// Who lets players in.
    pub gate: Arc<Gate>,
    /// Proofs that were judged while the router's actions were performed.
    pub judged: Vec<(LinkSid, Judgement)>,
    /// For judgements that come later.
    pub worker: Weak<Worker>,
}

impl Worker {
    pub fn new(settings: Settings, counters: Arc<Counters>, gate: Arc<Gate>) -> Rc<Self> {
        Rc::new_cyclic(|worker| {
            let state = State::new(&settings, counters, gate, worker.clone());
            let (scratch, zero) = (SharedScratch::default(), Instant::now());
            let (closing, entering) = (CancellationToken::new(), Cell::new(0));
            Self { settings, scratch, closing, entering, zero, state: RefCell::new(state) }
        })
    }

    pub fn now(&self) -> Mono {
        Mono(u64::try_from(self.zero.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Lends the state to a closure that must not await.
    pub fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.borrow_mut())
    }

    /// Counts a connection that is not a session yet, until the guard is dropped.
    pub fn entering(&self) -> Entering<'_> {
        self.entering.set(self.entering.get() + 1);
        Entering(&self.entering)
    }

    /// One event that brings no bytes of its own, performed and flushed.
    pub fn step(&self, event: Event<'_>) {
        let now = self.now();
        self.with(|state| {
            state.step(now, event, &[]);
            state.flush();
        });
    }

    /// Which of the linkd's workers this is.
    pub fn index(&self) -> usize {
        self.settings.rules.worker.into()
    }

    pub fn sessions(&self) -> usize {
        self.with(|state| state.router.sessions())
    }

    pub fn summary(&self) -> Summary {
        self.with(|state| state.router.summary())
    }

    pub fn lookup(&self, who: &Who) -> Vec<Found> {
        self.with(|state| state.router.lookup(who))
    }

    /// Whether every client is gone, its last words written.
    pub fn is_empty(&self) -> bool {
        self.entering.get() == 0
            && self.with(|state| state.ending.is_empty() && state.clients.iter().all(Option::is_none))
    }

    /// Says goodbye to every provider: the end of the worker.
    pub fn part(&self) {
        self.with(|state| {
            for provider in state.providers.iter_mut().filter_map(Option::take) {
                provider.link.goodbye(&code::SHUTTING_DOWN, "this linkd stops");
            }
        });
    }
}

impl State {
    fn new(settings: &Settings, counters: Arc<Counters>, gate: Arc<Gate>, worker: Weak<Worker>) -> Self {
        Self {
            router: Router::new(settings.rules.clone()),
            clients: Vec::new(),
            ending: BTreeMap::new(),
            providers: Vec::new(),
            actions: Vec::new(),
            touched_clients: Vec::new(),
            touched_providers: Vec::new(),
            slow: Vec::new(),
            kept: BTreeMap::new(),
            fan: Rc::default(),
            bounds: settings.bounds,
            counters,
            gate,
            judged: Vec::new(),
            worker,
        }
    }

    /// Runs one event through the router and performs what it says. `bytes` is the frame at hand: a client's payload
    /// for Dispatch, a whole frame for Forward.
    pub fn step(&mut self, now: Mono, event: Event<'_>, bytes: &[u8]) {
        let mut actions = std::mem::take(&mut self.actions);
        self.router.step(now, event, &mut actions);
        for action in actions.drain(..) {
            self.perform(action, bytes);
        }
        self.actions = actions;
        while let Some(sid) = self.slow.pop() {
            self.step(now, Event::ClientViolation { sid, code: &code::SLOW_READER }, &[]);
        }
        if self.router.fans_out() {
            self.fan.notify_one();
        }
        self.tell_judgements(now);
    }

    /// Tells the router what was judged at once.
    pub fn tell_judgements(&mut self, now: Mono) {
        while let Some((sid, result)) = self.judged.pop() {
            self.step(now, Event::Authenticated { sid, result }, &[]);
        }
    }

    pub fn client(&mut self, sid: LinkSid) -> Option<&mut Client> {
        self.clients.get_mut(slot(sid))?.as_mut().filter(|client| client.sid == sid)
    }

    pub fn provider(&mut self, to: ProviderRef) -> Option<&mut Provider> {
        self.providers.get_mut(to.slot as usize)?.as_mut().filter(|provider| provider.conn == to.conn)
    }

    pub fn add_client(&mut self, client: Client) {
        let index = slot(client.sid);
        if self.clients.len() <= index {
            self.clients.resize_with(index + 1, || None);
        }
        self.counters.opened(client.transport);
        debug_assert!(self.clients[index].is_none());
        self.clients[index] = Some(client);
    }

    /// The router has ended this session: its slot is free, its connection goes on until the last words are written.
    pub fn end_client(&mut self, sid: LinkSid) -> Option<&Client> {
        self.client(sid)?;
        let client = self.clients.get_mut(slot(sid))?.take()?;
        // As the router's table, this one ends with who is last.
        while self.clients.pop_if(|client| client.is_none()).is_some() {}
        give_back_room(&mut self.clients);
        Some(self.ending.entry(sid).or_insert(client))
    }

    /// The connection of exactly this sid is gone.
    pub fn remove_client(&mut self, sid: LinkSid) {
        self.end_client(sid);
        if let Some(client) = self.ending.remove(&sid) {
            self.counters.ended(client.transport);
        }
    }

    pub fn add_provider(&mut self, at: ProviderRef, link: Link) {
        let index = at.slot as usize;
        if self.providers.len() <= index {
            self.providers.resize_with(index + 1, || None);
        }
        self.providers[index] =
            Some(Provider { conn: at.conn, link, guard: Guard::default(), touched: false });
    }

    /// Removes exactly this connection, wherever it is.
    pub fn remove_provider(&mut self, conn: Generation) -> Option<Provider> {
        self.providers.iter_mut().find(|p| p.as_ref().is_some_and(|p| p.conn == conn))?.take()
    }

    /// Sends what this batch has queued: to clients at once, to providers after the turn's other readers added
    /// theirs.
    pub fn flush(&mut self) {
        while let Some(sid) = self.touched_clients.pop() {
            if let Some(client) = self.client(sid) {
                client.touched = false;
                client.outbox.flush();
            }
        }
        while let Some(slot) = self.touched_providers.pop() {
            if let Some(provider) = self.providers.get_mut(slot as usize).and_then(Option::as_mut) {
                provider.touched = false;
                provider.link.outbox.flush_or_wake();
            }
        }
    }
}
