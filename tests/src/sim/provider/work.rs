//! A provider's requests: what the `Sessions` core says is run takes its time, then its effects leave, the answer
//! last.

use base::{LinkSid, Role, Span, TypeId};
use bytes::Bytes;
use linkstead::sessions::{Action, Event, Refused};
use linkstead::{LinkRef, kicks};
use wire::code;
use wire::link::{UserState, message};
use wire::payload::Head;

use super::super::env::Env;
use super::super::frames::{self, Asked, ROOM, Way, spec};
use super::super::invariants::{Fed, LinkId, Seen};
use super::super::network::ConnId;
use super::super::queue::Item;
use super::super::talk::{Ask, Talk};
use super::{Info, ProviderNode, Stage};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job(pub Asked);

impl ProviderNode {
    pub(super) fn dispatch(
        &mut self,
        env: &mut Env,
        conn: ConnId,
        sid: LinkSid,
        type_id: TypeId,
        payload: &Bytes,
    ) {
        if let Some(asked) = Asked::read(type_id, payload) {
            self.step(env, conn, Event::Dispatch { sid, job: Job(asked), parallel: false });
        }
    }

    /// One step of a connection's sessions, watched and performed.
    pub(super) fn step(&mut self, env: &mut Env, conn: ConnId, event: Event<Info, Job>) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        let fed = match &event {
            Event::Opened { sid, .. } => Fed::Opened(*sid),
            Event::Dispatch { sid, job, .. } => Fed::Dispatch(*sid, job.0.uid),
            Event::Done { sid, .. } => Fed::Done(*sid),
            Event::Kicked { sid } => Fed::Kicked(*sid),
            Event::Broken { sid, .. } => Fed::Broken(*sid),
            Event::Closed { .. } => Fed::Closed,
            Event::Drain => return,
        };
        let mut actions = Vec::new();
        link.sessions.step(env.now, event, &mut actions);
        let ignored = matches!(actions.first(), Some(Action::Ignored { .. }));
        match fed {
            Fed::Opened(sid) if !ignored => {
                link.sids.insert(sid);
            }
            _ => {}
        }
        let at = LinkId { place: self.me, conn };
        let key = link.key.clone();
        env.see(&Seen::Sessions { at, key: &key, fed, actions: &actions });
        link.sessions.check();
        for action in actions {
            self.perform(env, conn, action);
        }
    }

    fn perform(&mut self, env: &mut Env, conn: ConnId, action: Action<Info, Job>) {
        match action {
            Action::Run { sid, job, .. } => {
                let work = match env.rng.below(12) {
                    0 => env.rng.millis(100, 900),
                    1..4 => env.rng.millis(5, 100),
                    _ => Span::micros(env.rng.between(20, 5_000)),
                };
                env.after(work, Item::Worked { at: self.me, conn, sid, job });
            }
            Action::Refuse { sid, job, why } => {
                let code = match why {
                    Refused::Busy => &code::BUSY,
                    Refused::ShuttingDown => &code::SHUTTING_DOWN,
                };
                if job.0.wants_answer {
                    self.to_client(env, conn, sid, job.0.refusal(code.result()));
                }
            }
            Action::Gone { sid, .. } => {
                if let Some(link) = self.links.get_mut(&conn) {
                    link.sids.remove(&sid);
                }
            }
            Action::Drop { .. } | Action::Ignored { .. } | Action::Idle => {}
        }
    }

    fn to_client(&self, env: &mut Env, conn: ConnId, sid: LinkSid, frame: Bytes) {
        let open = self.links.get(&conn).is_some_and(|link| link.stage != Stage::Over);
        if open {
            env.send(self.me, conn, Talk::Send { sids: sid.0.to_le_bytes().to_vec(), frame });
        }
    }

    /// A handler has done its work: effects first, the answer last, then the session's next request.
    pub fn worked(&mut self, env: &mut Env, conn: ConnId, sid: LinkSid, job: Job) {
        if self.links.get(&conn).is_some_and(|link| link.stage != Stage::Over) {
            self.effects(env, conn, sid, &job.0);
        }
        if job.0.wants_answer {
            self.to_client(env, conn, sid, job.0.answer(self.me.slot));
        }
        self.step(env, conn, Event::Done { sid, parallel: false });
    }

    fn effects(&mut self, env: &mut Env, conn: ConnId, sid: LinkSid, asked: &Asked) {
        let push = || frames::whole(frames::PUSH, Head::PROTOCOL, |_| {});
        match env.rng.below(40) {
            0..3 => {
                let role = Some(Role(asked.uid)).filter(|_| !asked.uid.is_multiple_of(3));
                env.send(self.me, conn, Talk::UserState(UserState { link_sid: sid, role }));
            }
            3 if !env.healed => self.kick(env, conn, sid),
            4..7 if asked.way == Way::Room => {
                let bind = message::Bind { modules: vec![spec(ROOM)], link_sids: vec![sid.0] };
                self.call(env, conn, Ask::Bind(bind));
            }
            7..9 if asked.way == Way::Room => {
                let unbind = message::UnBind { modules: vec![ROOM.0], link_sids: vec![sid.0] };
                self.call(env, conn, Ask::UnBind(unbind));
            }
            9 => {
                let version = self.offer.version;
                env.send(self.me, conn, Talk::Broadcast { version, frame: push() });
            }
            10..12 => self.to_client(env, conn, sid, push()),
            _ => {}
        }
    }

    /// Ends a session: nothing more of it runs here, and its linkd is told until it confirms.
    fn kick(&mut self, env: &mut Env, conn: ConnId, sid: LinkSid) {
        let Some(key) = self.links.get(&conn).map(|link| &link.key) else { return };
        let link = LinkRef { linkd: key.node.clone(), epoch: key.epoch, sid };
        env.see(&Seen::Kicked { at: self.me, link: &link });
        self.kicking(env, kicks::Event::Begin(link));
    }

    /// One step of the kicks under way.
    pub(super) fn kicking(&mut self, env: &mut Env, event: kicks::Event<'_>) {
        let mut actions = Vec::new();
        self.kicks.step(env.now, event, &mut actions);
        self.kicks.check();
        for action in actions {
            if let kicks::Action::Ask(link) = action {
                self.ask_to_end(env, link);
            }
        }
    }

    fn ask_to_end(&mut self, env: &mut Env, link: LinkRef) {
        let here = |with: &super::Link| {
            let key = &with.key;
            (&key.node, key.epoch, key.worker) == (&link.linkd, link.epoch, link.sid.worker())
        };
        let reached = self.links.iter().find(|(_, with)| with.stage.is_announced() && here(with));
        let Some(conn) = reached.map(|(&conn, _)| conn) else {
            return self.kicking(env, kicks::Event::Unreachable(link));
        };
        let sid = link.sid;
        self.step(env, conn, Event::Kicked { sid });
        let kick = message::Kick { link_sid: sid.0, code: 7, text: "enough".to_owned(), report_only: false };
        self.call(env, conn, Ask::Kick(kick));
        self.asked.insert((conn, self.last_call(conn)), link);
    }

    /// Done, or nobody to end: both are what was asked for.
    pub(super) fn kick_answered(&mut self, env: &mut Env, conn: ConnId, call: u64) {
        if let Some(link) = self.asked.remove(&(conn, call)) {
            self.kicking(env, kicks::Event::Confirmed(link));
        }
    }

    /// Whoever was asked on this connection answers no more.
    pub(super) fn kicks_unanswered(&mut self, env: &mut Env, conn: ConnId) {
        let unanswered: Vec<_> =
            self.asked.extract_if(.., |(on, _), _| *on == conn).map(|(_, link)| link).collect();
        for link in unanswered {
            self.kicking(env, kicks::Event::Failed(link));
        }
    }
}
