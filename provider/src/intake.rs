//! The hot path: a request is found, decoded where it was received, and run to its end in the reader, as long as the
//! batch has not used up its time. What doesn't end at once goes to the pool.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::{Account, AppVersion, LinkSid, Mono, Role, Span, TypeId};
use net::link::{Closed, Handler};
use prost::Message;
use wire::code::{self, Code};
use wire::link::{self, BadHead, Dispatch, LinkBroken, UserState, message};
use wire::node::Frame;
use wire::payload;

use crate::answer::Answer;
use crate::auth;
use crate::conn::{Conn, ConnAction, ConnEvent};
use crate::cx::Cx;
use crate::job::{self, Job};
use crate::meters::Drop;
use crate::session::{Opened, Session};
use crate::sessions::{Action, Dropped, Event};

/// A batch that has used this much runs nothing more itself: others wait behind it.
const INLINE_BUDGET: Span = Span::micros(200);

/// Requests between two looks at the clock: a look costs about a tenth of a small request.
const REQUESTS_PER_CLOCK: u32 = 8;

/// Why a request is not run.
enum Unfit {
    NoSession(Dropped),
    /// The code for who asks; the cause to count when nobody does.
    Refused(&'static Code, Option<Drop>),
}

/// Receives the frames of one linkd connection.
pub(crate) struct Intake {
    conn: Arc<Conn>,
    /// When the batch began; `None` between batches.
    batch: Option<Mono>,
    /// Read before the batch, after every few requests of it and after one that waits, which is often enough.
    now: Mono,
    /// Requests run since the clock was read.
    unclocked: u32,
    /// Counted here and added up at the batch's end.
    requests: u64,
    inline: u64,
    actions: Vec<ConnAction>,
}

impl Handler for Intake {
    fn around<R>(&mut self, batch: impl FnOnce(&mut Self) -> R) -> R {
        let conn = self.conn.clone();
        // Whatever a handler spawns or waits for belongs to the pool, where it would go on.
        let _pool = conn.hub.pool().enter();
        batch(self)
    }

    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        if self.batch.is_none() {
            self.now = self.conn.hub.clock.now();
            self.batch = Some(self.now);
            self.conn.batch_begin();
        }
        match frame.meta.kind {
            link::DISPATCH => self.dispatch(frame),
            link::OPENED => self.opened(frame.body),
            link::USER_STATE => self.user_state(frame.head),
            link::LINK_BROKEN => self.broken(frame.head),
            link::AUTHENTICATE => {
                auth::authenticate(&self.conn.hub, &self.conn.link, &frame);
                Ok(())
            }
            kind => Err(refused(format!("kind {} does not belong on a provider's connection", kind.0))),
        }
    }

    fn batch_end(&mut self) {
        let Some(began) = self.batch.take() else { return };
        self.count();
        self.conn.batch_end();
        // What ran here kept everything behind it waiting.
        self.conn.hub.gauge.note(self.now.since(began));
    }
}

impl Intake {
    pub fn new(conn: Arc<Conn>) -> Self {
        Self { conn, batch: None, now: Mono::ZERO, unclocked: 0, requests: 0, inline: 0, actions: Vec::new() }
    }

    /// Before anything is sent: whoever has an answer finds it counted.
    fn count(&mut self) {
        let meters = &self.conn.hub.meters;
        meters.requests.add(std::mem::take(&mut self.requests));
        meters.inline.add(std::mem::take(&mut self.inline));
    }

    fn dispatch(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        let Dispatch { link_sid, type_id } = Dispatch::decode(frame.head).map_err(bad_head)?;
        self.requests += 1;
        let hub = &self.conn.hub;
        let Ok((head, body)) = payload::decode(frame.body) else {
            hub.meters.dropped(Drop::BadPayload);
            return Ok(());
        };
        let Some(answer) = Answer::to(type_id, head) else {
            hub.meters.dropped(Drop::Response);
            return Ok(());
        };
        let mut actions = std::mem::take(&mut self.actions);
        let admitted = self.admit(link_sid, type_id, answer, body, &mut actions);
        self.perform(&mut actions);
        self.actions = actions;
        match admitted {
            Ok(()) => {}
            Err(Unfit::NoSession(why)) => self.conn.hub.meters.dropped(why.into()),
            Err(Unfit::Refused(code, drop)) => {
                if let (None, Some(drop)) = (answer.request, drop) {
                    self.conn.hub.meters.dropped(drop);
                }
                answer.refuse(&self.conn, link_sid, code);
            }
        }
        Ok(())
    }

    /// Looks the session up, builds the work and has the core queue it, all under one lock.
    fn admit(
        &self,
        sid: LinkSid,
        type_id: TypeId,
        answer: Answer,
        body: &[u8],
        actions: &mut Vec<ConnAction>,
    ) -> Result<(), Unfit> {
        let mut sessions = self.conn.sessions();
        let session = sessions.state(sid).map_err(Unfit::NoSession)?;
        let entry = self.conn.table().get(type_id);
        let entry = entry.ok_or(Unfit::Refused(&code::UNKNOWN_PROTOCOL, Some(Drop::UnknownNotify)))?;
        if !self.conn.hub.gauge.pressure().admits(entry.protocol.level) {
            return Err(Unfit::Refused(&code::BUSY, None));
        }
        let unreadable = |_| Unfit::Refused(&code::DECODE_ERROR, Some(Drop::BadNotify));
        let work = (entry.start)(Cx::new(session.clone()), answer, body).map_err(unreadable)?;
        let parallel = entry.protocol.parallel;
        sessions.step(self.now, Event::Dispatch { sid, job: Job { work, answer }, parallel }, actions);
        Ok(())
    }

    /// Steps the core and does what it wants; requests run here while there is time.
    fn step(&mut self, event: ConnEvent) {
        let mut actions = std::mem::take(&mut self.actions);
        self.conn.step_into(self.now, event, &mut actions);
        self.perform(&mut actions);
        self.actions = actions;
    }

    fn perform(&mut self, actions: &mut Vec<ConnAction>) {
        for action in actions.drain(..) {
            match action {
                Action::Run { sid, job, parallel, waited } => self.run(sid, job, parallel, waited),
                other => self.conn.perform(other),
            }
        }
    }

    fn run(&mut self, sid: LinkSid, mut job: Job, parallel: bool, waited: Span) {
        let used = self.batch.map_or(Span::ZERO, |began| self.now.since(began));
        if used >= INLINE_BUDGET {
            return self.conn.hand_over(sid, job, parallel, waited);
        }
        let polled = job::poll(&mut job.work, &mut Context::from_waker(Waker::noop()));
        self.unclocked += 1;
        if self.unclocked >= REQUESTS_PER_CLOCK || polled.is_pending() {
            self.unclocked = 0;
            self.now = self.conn.hub.clock.now();
            self.count();
            self.conn.link.outbox.flush_early();
        }
        match polled {
            // The pool polls it again, and that registers the waker which counts.
            Poll::Pending => return self.conn.hand_over(sid, job, parallel, waited),
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(text)) => self.conn.broke(sid, job.answer, &text),
        }
        self.inline += 1;
        self.step(Event::Done { sid, parallel });
    }

    fn opened(&mut self, body: &[u8]) -> Result<(), Closed> {
        let bad = |why: String| refused(format!("an Opened can't be read: {why}"));
        let opened = message::Opened::decode(body).map_err(|error| bad(error.to_string()))?;
        let account = Account::new(&opened.account).map_err(|error| bad(error.to_string()))?;
        let sid = LinkSid(opened.link_sid);
        if !matches!(self.conn.session(sid), Err(Dropped::NotOpen)) {
            self.conn.hub.meters.dropped(Drop::Ignored);
            return Ok(());
        }
        let opened = Opened {
            sid,
            account,
            role: opened.role.map(Role),
            client_addr: opened.client_addr,
            app_version: AppVersion(opened.app_version),
        };
        let state = Session::open(self.conn.clone(), opened);
        self.step(Event::Opened { sid, state });
        if self.conn.hub.kicking.contains(&self.conn.link_ref(sid)) {
            self.step(Event::Kicked { sid });
        }
        Ok(())
    }

    fn user_state(&mut self, head: &[u8]) -> Result<(), Closed> {
        let UserState { link_sid, role } = UserState::decode(head).map_err(bad_head)?;
        match self.conn.session(link_sid) {
            Ok(session) => session.role_changed(role),
            Err(why) => self.conn.hub.meters.dropped(why.into()),
        }
        Ok(())
    }

    fn broken(&mut self, head: &[u8]) -> Result<(), Closed> {
        let LinkBroken { link_sid, cause } = LinkBroken::decode(head).map_err(bad_head)?;
        self.step(Event::Broken { sid: link_sid, cause });
        Ok(())
    }
}

fn bad_head(bad: BadHead) -> Closed {
    refused(bad.to_string())
}

fn refused(text: String) -> Closed {
    Closed::Refused { code: &code::BAD_MESSAGE, text }
}
