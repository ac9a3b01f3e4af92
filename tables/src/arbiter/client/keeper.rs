//! The one task that keeps the session: it performs what the core says, and watches the time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::lease::Terms;
use base::{Epoch, Fence, Mono, Span};
use net::calls::CallError;
use net::hello::Ours;
use net::link::Link;
use net::{NetIo, Security};
use store::StoreId;
use tokio::task::spawn_local;
use tokio_util::sync::CancellationToken;
use wire::Code;
use wire::cache::{self, message};
use wire::code;

use super::{Place, Shared, words};
use crate::arbiter::session::{Action, Event, Session, Welcome, Why};
use crate::arbiter::{Hear, Heard, Word};

/// How long a login and a renewal may take. A later answer is worth little: the lease counts from when they were sent.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(3);
const RENEW_TIMEOUT: Duration = Duration::from_secs(4);
/// How long the arbiter has to hear our goodbye.
const BYE_TIMEOUT: Duration = Duration::from_secs(1);
/// Reassertions go on when less than this waits to be sent.
const REASSERT_BYTES: usize = 1024 * 1024;

pub(super) struct Keeper {
    pub shared: Arc<Shared>,
    pub hear: Arc<dyn Hear>,
    pub ours: Ours,
    pub security: Security,
    storages: Vec<message::Storage>,
    session: RefCell<Session>,
    pub conn: RefCell<Option<Conn>>,
    /// What was heard and not handed over.
    pub heard: RefCell<Vec<Heard>>,
    /// Reassertions without an answer.
    pub unanswered: Cell<usize>,
    /// Not to be dialled before.
    pub stay_away: Cell<Span>,
    goodbye: Cell<Option<Goodbye>>,
}

#[derive(Debug, Clone, Copy)]
enum Goodbye {
    Say,
    Spare,
}

/// A connection after its hellos.
#[derive(Clone)]
pub(super) struct Conn {
    pub link: Link,
    pub cut: CancellationToken,
}

impl Keeper {
    pub fn new(
        shared: Arc<Shared>,
        hear: Arc<dyn Hear>,
        ours: Ours,
        security: Security,
        storages: Vec<(String, StoreId)>,
    ) -> Rc<Self> {
        let storage = |(backend, id): (String, StoreId)| message::Storage {
            backend,
            id: id.0.to_be_bytes().to_vec().into(),
        };
        Rc::new(Self {
            shared,
            hear,
            ours,
            security,
            storages: storages.into_iter().map(storage).collect(),
            session: RefCell::default(),
            conn: RefCell::default(),
            heard: RefCell::default(),
            unanswered: Cell::new(0),
            stay_away: Cell::new(Span::ZERO),
            goodbye: Cell::new(None),
        })
    }

    /// Until it is left, outlived or dropped.
    pub async fn run<N: NetIo>(self: Rc<Self>, net: N, place: Place) {
        tokio::select! {
            biased;
            () = self.watch() => {}
            () = self.connections(net, place) => {}
        }
        // A client that is dropped without a word keeps no session either.
        self.outside();
        let fence = self.shared.shown.lock().0;
        if fence.is_some() {
            self.shared.shown.lock().0 = None;
            self.hear.lost();
        }
    }

    /// Time, and what callers want.
    async fn watch(self: &Rc<Self>) {
        let shared = &self.shared;
        loop {
            match self.goodbye.get() {
                Some(Goodbye::Say) => return self.bye().await,
                Some(Goodbye::Spare) => return,
                None => {}
            }
            let next = self.session.borrow().next();
            let tick = async {
                match next {
                    Some(next) => tokio::time::sleep_until(shared.clock.instant(next)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = shared.stop.cancelled() => return,
                () = shared.leaving.cancelled() => self.step(Event::Leave),
                // Also after each step, since another time may be the next one.
                () = shared.told.notified() => {
                    let abandoned = shared.abandoned.lock().take();
                    self.step(abandoned.map_or(Event::Tick, |fence| Event::Abandon { fence }));
                }
                () = tick => self.step(Event::Tick),
            }
        }
    }

    async fn bye(&self) {
        let Some(Conn { link, .. }) = self.conn.borrow().clone() else { return };
        if let Err(error) = link.call::<message::Done>(cache::BYE, &message::Done {}, BYE_TIMEOUT).await {
            tracing::warn!(%error, "the arbiter may not have heard our goodbye; it evicts the session by its lease");
        }
    }

    pub fn step(self: &Rc<Self>, event: Event) {
        let mut actions = Vec::new();
        self.session.borrow_mut().step(self.shared.clock.now(), event, &mut actions);
        for action in actions {
            self.perform(action);
        }
        // Whatever was said meanwhile.
        if let Some(conn) = &*self.conn.borrow() {
            conn.link.outbox.flush();
        }
        let next = self.session.borrow().next();
        if event != Event::Tick && next.is_some() {
            self.shared.told.notify_one();
        }
    }

    fn perform(self: &Rc<Self>, action: Action) {
        match action {
            Action::Login => self.ask(Self::login),
            Action::Renew => self.ask(Self::renew),
            Action::Open { fence, until } => {
                self.inside("opened", fence, until);
                self.hear.opened(fence.epoch, fence, until);
            }
            Action::Reopen { fence } => {
                self.inside("reopened", fence, self.shared.clock.now());
                let words = self.hear.reopened(fence.epoch, fence);
                self.reassert(words);
            }
            Action::Resume => {
                let (fence, until) = *self.shared.shown.lock();
                self.inside("resumed", fence.unwrap_or_default(), until);
                self.hear.resumed();
            }
            Action::Extend { until } => {
                self.shared.shown.lock().1 = until;
                self.hear.extended(until);
            }
            Action::Release => {
                count("released");
                self.hear.released();
            }
            Action::Lose => {
                count("lost");
                self.outside();
                *self.shared.shown.lock() = (None, self.shared.clock.now());
                self.hear.lost();
            }
            Action::Redial { after, why } => self.redial(after, why),
            Action::Bye => self.goodbye.set(Some(Goodbye::Say)),
            Action::End => self.goodbye.set(Some(Goodbye::Spare)),
            Action::Outlived => {
                tracing::error!(node = %self.ours.node, "a later start of this node is at the arbiter; this one is over");
                self.goodbye.set(Some(Goodbye::Spare));
                self.shared.outlived.cancel();
            }
        }
        if self.goodbye.get().is_some() {
            self.shared.told.notify_one();
        }
    }

    /// The arbiter has let us in over the present connection: from now on what is said is sent.
    fn inside(&self, how: &'static str, fence: Fence, until: Mono) {
        count(how);
        let link = self.conn.borrow().as_ref().map(|conn| conn.link.clone());
        if std::mem::replace(&mut *self.shared.inside.write(), link).is_none() {
            metrics::gauge!("linkstead_tables_arbiter_connected").increment(1.0);
        }
        *self.shared.refused.lock() = None;
        *self.shared.shown.lock() = (Some(fence), until);
    }

    pub fn outside(&self) {
        if self.shared.inside.write().take().is_some() {
            metrics::gauge!("linkstead_tables_arbiter_connected").decrement(1.0);
        }
    }

    fn redial(&self, after: Span, why: Why) {
        match why {
            Why::Refused(number) => {
                *self.shared.refused.lock() = Some(number);
                let code = Code::find(number).map_or("UNKNOWN", |code| code.name);
                if number == code::SHUTTING_DOWN.number {
                    tracing::info!("the arbiter stops; it is dialled until it is back");
                } else {
                    tracing::error!(code, number, %after, "refused by the arbiter; coming again");
                }
            }
            Why::Closed => {}
            why => tracing::error!(?why, %after, "the arbiter is dialled anew"),
        }
        self.outside();
        self.stay_away.set(after);
        if let Some(conn) = &*self.conn.borrow() {
            conn.cut.cancel();
        }
    }

    /// Makes a call of the present connection, and steps with its answer unless that connection is over by then.
    fn ask<F: Future<Output = Option<Event>> + 'static>(
        self: &Rc<Self>,
        call: impl FnOnce(Rc<Self>, Link, Mono) -> F,
    ) {
        let Some(Conn { link, cut }) = self.conn.borrow().clone() else { return };
        let call = call(self.clone(), link, self.shared.clock.now());
        let keeper = self.clone();
        spawn_local(async move {
            let event = tokio::select! {
                biased;
                () = cut.cancelled() => None,
                event = call => event,
            };
            if let Some(event) = event {
                keeper.step(event);
                keeper.deliver();
            }
        });
    }

    async fn login(self: Rc<Self>, link: Link, sent: Mono) -> Option<Event> {
        let login = message::Login { storages: self.storages.clone() };
        Some(match link.call::<message::Welcome>(cache::LOGIN, &login, LOGIN_TIMEOUT).await {
            Ok(welcome) => {
                let ms = |ms: u32| Span::millis(ms.into());
                let terms = Terms {
                    renew: ms(welcome.renew_ms),
                    self_release: ms(welcome.self_release_ms),
                    flush: ms(welcome.flush_ms),
                    eviction: ms(welcome.eviction_ms),
                };
                let fence = Fence::new(Epoch(welcome.epoch), welcome.session);
                let opens_after = ms(welcome.opens_after_ms);
                tracing::info!(arbiter = %link.peer.node, %fence, fresh = welcome.fresh, %opens_after, "welcomed by the arbiter");
                Event::Welcome(Welcome { sent, fence, terms })
            }
            Err(CallError::Refused(refusal)) => {
                tracing::error!(arbiter = %link.peer.node, code = refusal.code, "no session: {}", refusal.text);
                Event::Refused { code: refusal.code }
            }
            // Whoever serves the connection says so.
            Err(CallError::Broken) => return None,
            Err(error) => {
                tracing::error!(arbiter = %link.peer.node, %error, "the login is not answered");
                Event::Closed
            }
        })
    }

    async fn renew(self: Rc<Self>, link: Link, sent: Mono) -> Option<Event> {
        match link.call::<message::Done>(cache::RENEW, &message::Done {}, RENEW_TIMEOUT).await {
            Ok(_) => Some(Event::Renewed { sent }),
            Err(CallError::Refused(refusal)) if refusal.code == code::NOT_LOGGED_IN.number => {
                Some(Event::Refused { code: refusal.code })
            }
            // The lease counts what is answered.
            Err(_) => None,
        }
    }

    /// Sends as much at a time as the arbiter reads.
    fn reassert(self: &Rc<Self>, mut words: Vec<Word>) {
        self.unanswered.set(words.iter().filter(|word| matches!(word, Word::Reassert { .. })).count());
        if self.unanswered.get() == 0 {
            return self.step(Event::Reasserted);
        }
        let Some(Conn { link, .. }) = self.conn.borrow().clone() else { return };
        spawn_local(async move {
            while !words.is_empty() {
                link.outbox.below(REASSERT_BYTES).await;
                let mut some: Vec<Word> = words.drain(..words.len().min(cache::RECORDS_MAX)).collect();
                if words::push(&link, &mut some).is_err() {
                    // What is not reasserted would be waited for for ever.
                    link.outbox.abandon();
                    return;
                }
                link.outbox.wake();
            }
        });
    }
}

fn count(how: &'static str) {
    metrics::counter!("linkstead_tables_arbiter_sessions_total", "how" => how).increment(1);
}
