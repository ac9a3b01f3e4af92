//! Ending a session at its linkd: what the core of kicks says, done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::calls::CallError;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use wire::code;
use wire::link::{self, message};

use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::kicks::{Action, Event, Kicks, LEASE};
use crate::links::LinkRef;
use crate::sessions;

/// How long one try waits for its answer.
const TRY: Duration = Duration::from_secs(2);
/// How long a caller waits; the kick goes on without it.
const PATIENCE: Duration = Duration::from_micros(LEASE.0);

/// The kicks of a provider.
pub(crate) struct Kicking {
    state: Mutex<State>,
    /// There is none under way, which is the usual case for whoever asks about a session.
    none: AtomicBool,
}

#[derive(Default)]
struct State {
    core: Kicks,
    /// For each that the core knows.
    orders: BTreeMap<LinkRef, Order>,
}

struct Order {
    kick: message::Kick,
    /// Bounded by the handlers and tasks that wait.
    waiters: Vec<oneshot::Sender<Result<()>>>,
}

impl Kicking {
    pub fn new() -> Self {
        Self { none: AtomicBool::new(true), state: Mutex::default() }
    }

    /// Whether nothing of this session may run here.
    pub fn contains(&self, link: &LinkRef) -> bool {
        !self.none.load(Ordering::Acquire) && self.state.lock().core.contains(link)
    }
}

/// Ends a session, and waits for its linkd.
pub(crate) async fn kick(hub: &Arc<Hub>, link: &LinkRef, code: i32, text: &str) -> Result<()> {
    let (waiter, done) = oneshot::channel();
    let kick = message::Kick { link_sid: link.sid.0, code, text: text.to_owned(), report_only: false };
    let asked = {
        let mut state = hub.kicking.state.lock();
        let order = state.orders.entry(link.clone()).or_insert_with(|| Order { kick, waiters: Vec::new() });
        order.waiters.push(waiter);
        state.step(hub, Event::Begin(link.clone()))
    };
    asked.into_iter().for_each(|(link, kick)| ask(hub, link, kick));
    let late =
        || Error::framework(&code::UNAVAILABLE, format!("{} has not confirmed the kick yet", link.linkd));
    let stopped = || Error::framework(&code::SHUTTING_DOWN, "the provider stopped meanwhile");
    tokio::select! {
        biased;
        done = done => done.unwrap_or_else(|_| Err(stopped())),
        () = hub.goodbye.cancelled() => Err(stopped()),
        () = tokio::time::sleep(PATIENCE) => Err(late()),
    }
}

/// Steps the core and does what it says.
pub(crate) fn step(hub: &Arc<Hub>, event: Event<'_>) {
    let asked = hub.kicking.state.lock().step(hub, event);
    asked.into_iter().for_each(|(link, kick)| ask(hub, link, kick));
}

impl State {
    /// Whom to ask now, outside of the lock.
    fn step(&mut self, hub: &Hub, event: Event<'_>) -> Vec<(LinkRef, message::Kick)> {
        let (mut actions, mut asked) = (Vec::new(), Vec::new());
        self.core.step(hub.clock.now(), event, &mut actions);
        hub.kicking.none.store(self.core.is_empty(), Ordering::Release);
        for action in actions {
            match action {
                Action::Ask(link) => {
                    let kick = self.orders.get(&link).map(|order| order.kick.clone());
                    asked.extend(kick.map(|kick| (link, kick)));
                }
                Action::Done(link) => self.tell(&link, Ok(())),
                Action::Refused(link) => {
                    let text = "too many kicks wait for their linkds";
                    self.tell(&link, Err(Error::framework(&code::BUSY, text)));
                }
            }
        }
        // Who was told already is forgotten by the core without a word.
        if self.orders.len() > self.core.len() {
            self.orders.retain(|link, _| self.core.contains(link));
        }
        debug_assert_eq!(self.orders.len(), self.core.len(), "a kick without words, or words without a kick");
        asked
    }

    fn tell(&mut self, link: &LinkRef, outcome: Result<()>) {
        let Some(order) = self.orders.get_mut(link) else { return };
        for waiter in order.waiters.drain(..) {
            // Who waits no longer needs no answer.
            let _ = waiter.send(outcome.clone());
        }
    }
}

/// One try. The session stops here first.
fn ask(hub: &Arc<Hub>, link: LinkRef, kick: message::Kick) {
    let conn = match hub.conns.find(&link) {
        Ok(conn) => conn,
        Err(Error::Framework { code, .. }) if code.number == code::UNKNOWN_SESSION.number => {
            return step(hub, Event::Confirmed(link));
        }
        Err(_) => return step(hub, Event::Unreachable(link)),
    };
    conn.step(sessions::Event::Kicked { sid: link.sid });
    let hub_ = hub.clone();
    hub.spawn(async move {
        let event = match conn.link.call::<()>(link::KICK, &kick, TRY).await {
            Ok(()) => Event::Confirmed(link),
            // Gone is what was asked for.
            Err(CallError::Refused(refusal)) if refusal.code == code::UNKNOWN_SESSION.number => {
                Event::Confirmed(link)
            }
            Err(_) => Event::Failed(link),
        };
        step(&hub_, event);
    });
}
