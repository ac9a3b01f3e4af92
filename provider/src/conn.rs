//! One connection to one worker of one linkd: its sessions, and what the session core wants done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{LinkSid, Span};
use net::link::Link;
use parking_lot::{Mutex, MutexGuard};
use wire::code;
use wire::link::{self, message};
use wire::node::Meta;

use crate::answer::Answer;
use crate::cx::Cx;
use crate::hub::Hub;
use crate::job::{self, Job};
use crate::kick;
use crate::kicks;
use crate::linkds::Key;
use crate::links::LinkRef;
use crate::load::Report;
use crate::meters::Drop;
use crate::session::Session;
use crate::sessions::{Action, Dropped, Event, Refused, Sessions};
use crate::table::Table;

/// What the session core deals in here.
pub(crate) type ConnEvent = Event<Arc<Session>, Job>;
pub(crate) type ConnAction = Action<Arc<Session>, Job>;

pub(crate) struct Conn {
    pub link: Link,
    pub hub: Arc<Hub>,
    table: Arc<Table>,
    sessions: Mutex<Sessions<Arc<Session>, Job>>,
    /// The worker of the linkd that is at the other end.
    worker: u8,
    /// The linkd knows who we are, and takes what we send.
    announced: AtomicBool,
    /// Announced, bound and subscribed: requests come.
    introduced: AtomicBool,
    load_seq: AtomicU64,
    /// What the linkd knows of whether this provider takes new players; `None` while it is asked.
    pub told_disabled: tokio::sync::Mutex<Option<bool>>,
}

std::thread_local! {
    /// The generation of the connection whose batch this thread is handling; its reader flushes at the batch's end.
    static BATCH: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl Conn {
    pub fn new(link: Link, worker: u8, hub: Arc<Hub>, table: Arc<Table>) -> Arc<Self> {
        let mut sessions = Sessions::new(hub.config.in_flight_max);
        if hub.draining.load(Ordering::Acquire) {
            sessions.step(hub.clock.now(), Event::Drain, &mut Vec::new());
        }
        Arc::new(Self {
            link,
            hub,
            table,
            sessions: Mutex::new(sessions),
            worker,
            announced: AtomicBool::new(false),
            introduced: AtomicBool::new(false),
            load_seq: AtomicU64::new(0),
            told_disabled: tokio::sync::Mutex::default(),
        })
    }

    pub fn key(&self) -> Key {
        let peer = &self.link.peer;
        Key { node: peer.node.clone(), epoch: peer.epoch, worker: self.worker }
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub fn is_announced(&self) -> bool {
        self.announced.load(Ordering::SeqCst)
    }

    /// The linkd takes what we say from now on, kicks that waited for it first.
    pub fn set_announced(&self) {
        self.announced.store(true, Ordering::SeqCst);
        let peer = &self.link.peer;
        kick::step(&self.hub, kicks::Event::Connected { linkd: &peer.node, epoch: peer.epoch });
    }

    /// A session of the linkd at the other end.
    pub fn link_ref(&self, sid: LinkSid) -> LinkRef {
        LinkRef { linkd: self.link.peer.node.clone(), epoch: self.link.peer.epoch, sid }
    }

    pub fn is_introduced(&self) -> bool {
        self.introduced.load(Ordering::Acquire)
    }

    pub fn set_introduced(&self) {
        self.introduced.store(true, Ordering::Release);
        self.hub.connections_changed();
    }

    pub fn in_flight(&self) -> usize {
        self.sessions.lock().in_flight()
    }

    pub fn is_draining(&self) -> bool {
        self.sessions.lock().is_draining()
    }

    pub fn session_count(&self) -> usize {
        self.sessions.lock().len()
    }

    /// The session that a frame names, or why it gets nothing done.
    pub fn session(&self, sid: LinkSid) -> Result<Arc<Session>, Dropped> {
        self.sessions.lock().state(sid).cloned()
    }

    /// Something was queued: the reader's batch sends it at its end, anyone else has it sent soon.
    pub fn pushed(&self) {
        if BATCH.get() != self.link.generation.0 {
            self.link.outbox.wake();
        }
    }

    /// This thread handles a batch of this connection until [`batch_end`](Self::batch_end).
    pub fn batch_begin(&self) {
        BATCH.set(self.link.generation.0);
    }

    pub fn batch_end(&self) {
        BATCH.set(0);
        self.link.outbox.flush();
    }

    /// The session core, for the reader, which holds it for one decision at a time.
    pub fn sessions(&self) -> MutexGuard<'_, Sessions<Arc<Session>, Job>> {
        self.sessions.lock()
    }

    /// Steps the core, for the reader, which runs what it can itself.
    pub fn step_into(&self, now: base::Mono, event: ConnEvent, actions: &mut Vec<ConnAction>) {
        self.sessions.lock().step(now, event, actions);
    }

    /// Steps the core and does what it wants; requests go to the pool.
    pub fn step(self: &Arc<Self>, event: ConnEvent) {
        let mut actions = Vec::new();
        self.step_into(self.hub.clock.now(), event, &mut actions);
        for action in actions {
            self.perform(action);
        }
    }

    /// Does what the core wants. A request goes to the pool, which then runs whatever of its session waits behind it.
    pub fn perform(self: &Arc<Self>, action: ConnAction) {
        match action {
            Action::Run { sid, job, parallel, waited } => self.hand_over(sid, job, parallel, waited),
            Action::Refuse { sid, job, why } => {
                let code = match why {
                    Refused::Busy => &code::BUSY,
                    Refused::ShuttingDown => &code::SHUTTING_DOWN,
                };
                job.answer.refuse(self, sid, code);
            }
            Action::Drop { why, .. } => self.hub.meters.dropped(why.into()),
            Action::Gone { state, cause, .. } => self.gone(state, cause),
            Action::Ignored { .. } => self.hub.meters.dropped(Drop::Ignored),
            Action::Idle => self.hub.idle.notify_waiters(),
        }
    }

    /// Runs a request on the pool, and then its session's next ones in the same task.
    pub fn hand_over(self: &Arc<Self>, sid: LinkSid, job: Job, parallel: bool, waited: Span) {
        let conn = self.clone();
        let queued = self.hub.clock.now();
        self.hub.spawn(async move {
            let (mut next, mut waited, mut queued) = (Some(job), waited, queued);
            while let Some(job) = next.take() {
                let now = conn.hub.clock.now();
                waited = waited + now.since(queued);
                conn.hub.meters.pooled.add(1);
                conn.hub.gauge.note(now.since(queued));
                conn.hub.meters.wait.record(waited.0 as f64 / 1e6);
                next = conn.run(sid, job, parallel).await;
                (waited, queued) = (Span::ZERO, conn.hub.clock.now());
            }
        });
    }

    /// Runs one request to its end and answers the one that comes next in the same session.
    async fn run(self: &Arc<Self>, sid: LinkSid, job: Job, parallel: bool) -> Option<Job> {
        let Job { work, answer } = job;
        if let Err(text) = job::run(work).await {
            self.broke(sid, answer, &text);
        }
        let mut actions = Vec::new();
        self.step_into(self.hub.clock.now(), Event::Done { sid, parallel }, &mut actions);
        let mut next = None;
        for action in actions {
            match action {
                Action::Run { job, .. } => next = Some(job),
                other => self.perform(other),
            }
        }
        next
    }

    /// A handler panicked: still one answer.
    pub fn broke(self: &Arc<Self>, sid: LinkSid, answer: Answer, text: &str) {
        self.hub.meters.panics.add(1);
        self.hub.meters.errors.add(1);
        let protocol = self.table.get(answer.type_id).map_or("", |entry| entry.protocol.name);
        tracing::error!(protocol, "the handler panicked: {text}");
        answer.fail(self, sid, &code::EXCEPTION);
    }

    /// A session is over and nothing of it runs: nobody finds it any more, then the modules' hooks run.
    fn gone(self: &Arc<Self>, session: Arc<Session>, cause: i32) {
        session.close(cause);
        if self.table.hooks.is_empty() {
            return;
        }
        let conn = self.clone();
        self.hub.spawn(async move {
            for (module, hook) in &conn.table.hooks {
                if let Err(panic) = job::run(hook(Cx::new(session.clone()))).await {
                    conn.hub.meters.panics.add(1);
                    tracing::error!(module, panic, "the hook of an ended session panicked");
                }
            }
        });
    }

    /// The connection is over: every session with it.
    pub fn close(self: &Arc<Self>) {
        let bytes = self.link.outbox.abandon();
        if bytes != 0 {
            tracing::debug!(linkd = %self.link.peer.node, bytes, "unsent bytes dropped with the connection");
        }
        self.step(Event::Closed { cause: code::UNAVAILABLE.number });
        self.hub.connections_changed();
    }

    /// Tells the linkd how loaded this provider is. A full connection is skipped: the next report says more.
    pub fn report(&self, report: &Report) {
        let seq = self.load_seq.fetch_add(1, Ordering::AcqRel) + 1;
        let config = &self.hub.config;
        let load = message::Load {
            seq,
            online: report.online,
            online_new: report.online_new,
            propose_max_online: config.propose_max_online,
            max_online_new: config.max_online_new,
            overload: report.overload,
        };
        if self.link.push_message(&Meta::notice(link::LOAD), &load).is_ok() {
            self.link.outbox.wake();
        }
    }
}

impl From<Dropped> for Drop {
    fn from(why: Dropped) -> Self {
        match why {
            Dropped::NotOpen => Drop::NotOpen,
            Dropped::Late => Drop::Late,
            Dropped::Kicked => Drop::Kicked,
            Dropped::Closed => Drop::LinkClosed,
        }
    }
}
