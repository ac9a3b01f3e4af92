//! The core and the connections of its sessions: events in, words out. All of it runs on one thread, between two awaits.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use base::lease::Terms;
use base::{Generation, Mono, Span};
use net::link::Link;
use node::Clock;
use prost::Message;
use tokio::sync::Notify;
use wire::cache::{self, message, mode};
use wire::code::{self, Code};
use wire::node::Meta;

use super::ask::{Lock, Record};
use crate::arbiter::{Action, Arbiter, Ask, Denied, Event, Evicted, Grant, Key, Refused, SessionId, Status};
use crate::hot::Hot;

/// How long the last words of a stop may take.
const GOODBYE: Duration = Duration::from_millis(500);

pub(super) struct Hub {
    inner: RefCell<Inner>,
    clock: Clock,
    generations: Cell<u64>,
    /// A connection is over.
    gone: Notify,
}

struct Inner {
    arbiter: Arbiter,
    /// The core knows records by their hashes; operators want their keys.
    hot: Hot,
    terms: Terms,
    open: BTreeMap<Generation, Open>,
    /// The connection of the session in each slot, with the session's number.
    slots: Vec<Option<(u64, Generation)>>,
    /// Connections that something was queued for since the last flush.
    dirty: Vec<Generation>,
    /// The call that the present event answers.
    asking: Option<(Generation, u64)>,
    actions: Vec<Action>,
}

struct Open {
    link: Link,
    session: Option<SessionId>,
}

impl Hub {
    pub fn new(arbiter: Arbiter, clock: Clock, terms: Terms) -> Self {
        let (open, slots, dirty, actions) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        let hot = Hot::new(clock.now());
        let inner = Inner { arbiter, hot, terms, open, slots, dirty, asking: None, actions };
        Self { inner: RefCell::new(inner), clock, generations: Cell::new(0), gone: Notify::new() }
    }

    pub fn generation(&self) -> Generation {
        self.generations.set(self.generations.get() + 1);
        Generation(self.generations.get())
    }

    pub fn opened(&self, link: Link) {
        self.inner.borrow_mut().open.insert(link.generation, Open { link, session: None });
    }

    pub fn closed(&self, conn: Generation) {
        let mut inner = self.inner.borrow_mut();
        let session = inner.open.remove(&conn).and_then(|open| open.session);
        if let Some(at) = session.and_then(|session| inner.slots.get_mut(usize::from(session.slot)))
            && at.is_some_and(|(_, known)| known == conn)
        {
            *at = None;
        }
        self.gone.notify_one();
    }

    pub fn session(&self, conn: Generation) -> Option<SessionId> {
        self.inner.borrow().open.get(&conn)?.session
    }

    pub fn status(&self) -> Status {
        self.inner.borrow().arbiter.status()
    }

    pub fn step(&self, event: Event) {
        self.inner.borrow_mut().step(self.clock.now(), event);
    }

    pub fn now(&self) -> Mono {
        self.clock.now()
    }

    /// These are asked for next, all in one message.
    pub fn expect(&self, keys: &[Key]) {
        self.inner.borrow().arbiter.expect(keys);
    }

    /// A record is asked for. One that is not to be had at once is counted by its key.
    pub fn acquire(&self, now: Mono, session: SessionId, ask: Ask, key: &[u8]) {
        let mut inner = self.inner.borrow_mut();
        if inner.step(now, Event::Acquire { session, ask }) {
            inner.hot.contended(now, key);
        }
    }

    /// The records that are waited for most.
    pub fn locks(&self, most: usize) -> Vec<Lock> {
        let mut inner = self.inner.borrow_mut();
        let hottest = inner.hot.top(self.clock.now(), most);
        let arbiter = &inner.arbiter;
        let lock = |one: crate::hot::Hottest| {
            let record = Record::of(arbiter, Key(cache::record(&one.key)), Lock::NAMES_MAX);
            Lock { key: one.key, per_second: one.per_second, record }
        };
        hottest.into_iter().map(lock).collect()
    }

    pub fn record(&self, key: &[u8]) -> Record {
        Record::of(&self.inner.borrow().arbiter, Key(cache::record(key)), Record::NAMES_MAX)
    }

    /// An event that is a call, answered by what the core says of it.
    pub fn ask(&self, conn: Generation, call: u64, event: Event) {
        let mut inner = self.inner.borrow_mut();
        inner.asking = Some((conn, call));
        inner.step(self.clock.now(), event);
        inner.asking = None;
    }

    pub fn tick(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.step(self.clock.now(), Event::Tick);
        inner.flush();
    }

    /// Sends what was queued.
    pub fn flush(&self) {
        self.inner.borrow_mut().flush();
    }

    /// Says goodbye to everybody, and waits a moment until it is written.
    pub async fn goodbye(&self) {
        let links: Vec<Link> = {
            let inner = self.inner.borrow();
            inner.open.values().map(|open| open.link.clone()).collect()
        };
        for link in &links {
            link.goodbye(&code::SHUTTING_DOWN, "the arbiter stops");
        }
        let written = async {
            while !self.inner.borrow().open.is_empty() {
                self.gone.notified().await;
            }
        };
        // Whoever reads nothing hears nothing.
        let _ = tokio::time::timeout(GOODBYE, written).await;
    }
}

impl Inner {
    /// Says whether nothing was answered: what was asked for waits, or too much waits already.
    fn step(&mut self, now: Mono, event: Event) -> bool {
        let mut actions = std::mem::take(&mut self.actions);
        self.arbiter.step(now, event, &mut actions);
        let mut unanswered = true;
        for action in actions.drain(..) {
            let asks_others =
                matches!(&action, Action::Reduce { .. } | Action::Deny { why: Denied::Busy, .. });
            unanswered &= asks_others;
            self.perform(now, action);
        }
        self.actions = actions;
        unanswered
    }

    fn flush(&mut self) {
        for conn in self.dirty.drain(..) {
            if let Some(open) = self.open.get(&conn) {
                open.link.outbox.flush();
            }
        }
    }

    fn perform(&mut self, now: Mono, action: Action) {
        match action {
            Action::Welcome { conn, session, fence, fresh, opens } => {
                let opens_after = opens.since(now);
                self.welcome(conn, session);
                let terms = self.terms;
                self.answer(&message::Welcome {
                    session: fence.session,
                    epoch: fence.epoch.0,
                    fresh,
                    opens_after_ms: millis(opens_after),
                    renew_ms: millis(terms.renew),
                    self_release_ms: millis(terms.self_release),
                    flush_ms: millis(terms.flush),
                    eviction_ms: millis(terms.eviction),
                });
            }
            Action::Refuse { conn, why } => {
                let (code, text) = refusal(&why);
                self.end(conn, code, &text);
            }
            Action::Renewed { .. } => self.answer(&message::Done {}),
            Action::Lost { session } => {
                if let Some(conn) = self.conn(session) {
                    self.end(conn, &code::NOT_LOGGED_IN, "the session is over; log in anew");
                }
            }
            Action::Close { conn } => self.close(conn),
            Action::Grant { session, request, grant } => self.grant(session, request.0, &grant),
            Action::Deny { session, request, why, retry_after } => {
                let denial = why.code();
                metrics::counter!("linkstead_arbiter_denied_total", "code" => denial.name).increment(1);
                let (code, retry_after_ms) = (denial.number, millis(retry_after));
                let head = cache::Deny { request: request.0, code, retry_after_ms }.encode();
                self.say(session, cache::DENY, &head, &[]);
            }
            Action::Reduce { session, key, seq, to, within } => {
                let (to, within_ms) = (to.byte(), millis(within));
                let head = cache::Reduce { record: key.0, seq: seq.0, to, within_ms }.encode();
                self.say(session, cache::REDUCE, &head, &[]);
            }
            Action::Reasserted { session, key, seq } => {
                let seq = seq.map_or(0, |seq| seq.0);
                let held = cache::Held { record: key.0, mode: mode::INVALID, seq }.encode();
                self.say(session, cache::REASSERTED, &[], &held);
            }
        }
    }

    fn welcome(&mut self, conn: Generation, session: SessionId) {
        let slot = usize::from(session.slot);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, None);
        }
        self.slots[slot] = Some((session.number, conn));
        if let Some(open) = self.open.get_mut(&conn) {
            open.session = Some(session);
        }
    }

    fn conn(&self, session: SessionId) -> Option<Generation> {
        let (number, conn) = (*self.slots.get(usize::from(session.slot))?)?;
        (number == session.number).then_some(conn)
    }

    fn grant(&mut self, session: SessionId, request: u64, grant: &Grant) {
        let Grant { mode, seq, must_reload, version_min, evicted, .. } = grant;
        let (mode, must_reload, seq, version_min) =
            (mode.byte(), u8::from(*must_reload), seq.0, *version_min);
        let head = cache::Grant { request, mode, must_reload, seq, version_min }.encode();
        if evicted.is_empty() {
            return self.say(session, cache::GRANT, &head, &[]);
        }
        let eviction = |evicted: &Evicted| message::Eviction {
            node: evicted.node.as_ref().map(|node| node.as_str().to_owned()).unwrap_or_default(),
            epoch: evicted.below.epoch.0,
            session: evicted.below.session,
        };
        let body = message::Evictions { evictions: evicted.iter().map(eviction).collect() };
        self.say(session, cache::GRANT, &head, &body.encode_to_vec());
    }

    /// Queues a word for a session. One whose connection is lost hears it when it comes back, or logs in anew.
    fn say(&mut self, session: SessionId, kind: wire::node::Kind, head: &[u8], body: &[u8]) {
        let Some(conn) = self.conn(session) else { return };
        let Some(open) = self.open.get(&conn) else { return };
        if open.link.push(&Meta::notice(kind), head, body).is_err() {
            metrics::counter!("linkstead_arbiter_slow_total").increment(1);
            open.link.goodbye(&code::SLOW_READER, "the provider reads slower than it is answered");
        } else if self.dirty.last() != Some(&conn) {
            self.dirty.push(conn);
        }
    }

    /// Answers the call that the present event is.
    fn answer(&mut self, message: &impl Message) {
        let Some((conn, call)) = self.asking.take() else { return };
        if let Some(open) = self.open.get(&conn) {
            // Whoever is too slow for this is noticed by its lease.
            let _ = open.link.reply(call, message);
        }
    }

    /// Refuses the call that the present event is, and closes the connection.
    fn end(&mut self, conn: Generation, code: &'static Code, text: &str) {
        let Some(open) = self.open.get(&conn) else { return };
        if let Some((_, call)) = self.asking.take_if(|(asking, _)| *asking == conn) {
            let _ = open.link.refuse(call, code, text);
        }
        open.link.goodbye(code, text);
    }

    /// Its session is over, or goes on over a newer connection.
    fn close(&mut self, conn: Generation) {
        if self.asking.is_some_and(|(asking, _)| asking == conn) {
            self.answer(&message::Done {});
        }
        if let Some(open) = self.open.get(&conn) {
            open.link.goodbye(&code::SUPERSEDED, "the session is over, or has a newer connection");
        }
    }
}

fn millis(span: Span) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}

fn refusal(why: &Refused) -> (&'static Code, String) {
    match why {
        Refused::Stale { newest } => (&code::STALE_EPOCH, format!("start {newest} of this node is here")),
        Refused::Storage { backend } => {
            (&code::OTHER_STORAGE, format!("others keep their records in another storage named {backend}"))
        }
        Refused::Sessions => (&code::LIMIT, "there are as many sessions as may be".to_owned()),
    }
}
