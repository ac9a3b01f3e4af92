//! One connection of a provider to a linkd's worker: hello, Announce, Bind, Subscribe, each answered before the next,
//! and the calls in between.

use std::collections::BTreeSet;

use base::{Epoch, LinkSid, Mono, NodeId, Span};
use linkd::router::Answer;
use linkstead::linkds::Key;
use linkstead::sessions::{Event, Sessions};
use linkstead::{LinkRef, kicks};
use wire::code;

use super::super::env::Env;
use super::super::network::ConnId;
use super::super::plan::Mood;
use super::super::talk::{Ask, Talk};
use super::ProviderNode;
use super::work::Job;

/// How long each step of an introduction may take.
const STEP: Span = Span::secs(5);
/// Requests of one session at this provider; few, so that the bound is met.
pub const IN_FLIGHT_MAX: usize = 4;

/// How far an introduction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Hello,
    Announce,
    Bind,
    Subscribe,
    Introduced,
    /// The connection is over; requests that run may end.
    Over,
}

impl Stage {
    /// The linkd knows who we are and takes calls.
    pub fn is_announced(self) -> bool {
        matches!(self, Stage::Bind | Stage::Subscribe | Stage::Introduced)
    }
}

/// What is kept of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    pub account: String,
}

#[derive(Debug)]
pub struct Link {
    pub key: Key,
    pub stage: Stage,
    /// The present step must be answered by then.
    until: Mono,
    /// The step was refused and is tried again then.
    again: Option<Mono>,
    /// The call of the present step.
    step: u64,
    calls: u64,
    pub sessions: Sessions<Info, Job>,
    /// Sessions that were opened and are not gone.
    pub sids: BTreeSet<LinkSid>,
    pub load_seq: u64,
}

impl Link {
    pub fn new(key: Key, now: Mono) -> Self {
        Self {
            key,
            stage: Stage::Hello,
            until: now + STEP,
            again: None,
            step: 0,
            calls: 0,
            sessions: Sessions::new(IN_FLIGHT_MAX),
            sids: BTreeSet::new(),
            load_seq: 0,
        }
    }
}

impl ProviderNode {
    pub(super) fn heard(&mut self, env: &mut Env, conn: ConnId, talk: Talk) {
        let Some(link) = self.links.get(&conn).filter(|link| link.stage != Stage::Over) else { return };
        match talk {
            Talk::Hello { node, epoch } if link.stage == Stage::Hello => self.hello(env, conn, &node, epoch),
            Talk::Reply { call, answer } => self.replied(env, conn, call, &answer),
            Talk::Goodbye => {
                let unwanted = matches!(link.stage, Stage::Hello | Stage::Announce);
                env.close(self.me, conn);
                self.over(env, conn);
                // As `linkstead` does: another start of this node has been here.
                if unwanted {
                    env.ended.push(self.me);
                }
            }
            Talk::Opened(opened) => {
                let (sid, state) = (LinkSid(opened.link_sid), Info { account: opened.account });
                self.logins += 1;
                let link = LinkRef { linkd: link.key.node.clone(), epoch: link.key.epoch, sid };
                self.step(env, conn, Event::Opened { sid, state });
                if self.kicks.contains(&link) {
                    self.step(env, conn, Event::Kicked { sid });
                }
            }
            Talk::Dispatch { sid, type_id, payload } => self.dispatch(env, conn, sid, type_id, &payload),
            Talk::LinkBroken(broken) => {
                self.step(env, conn, Event::Broken { sid: broken.link_sid, cause: broken.cause });
            }
            _ => {}
        }
    }

    fn hello(&mut self, env: &mut Env, conn: ConnId, node: &NodeId, epoch: Epoch) {
        self.member.met(env, epoch);
        let expected =
            self.links.get(&conn).is_some_and(|link| link.key.node == *node && link.key.epoch == epoch);
        if expected {
            return self.begin(env, conn, Stage::Announce);
        }
        env.close(self.me, conn);
        self.over(env, conn);
    }

    /// Begins a step of the introduction.
    fn begin(&mut self, env: &mut Env, conn: ConnId, stage: Stage) {
        let ask = match stage {
            Stage::Announce => self.announce(),
            Stage::Bind => self.bind(),
            Stage::Subscribe => self.subscribe(),
            _ => return self.introduced(env, conn),
        };
        self.call(env, conn, ask);
        if let Some(link) = self.links.get_mut(&conn) {
            (link.stage, link.until, link.again, link.step) = (stage, env.now + STEP, None, link.calls);
        }
        if stage == Stage::Bind {
            self.connected(env, conn);
        }
    }

    /// The linkd takes calls from now on: kicks that waited for it come first.
    fn connected(&mut self, env: &mut Env, conn: ConnId) {
        let Some(key) = self.links.get(&conn).map(|link| link.key.clone()) else { return };
        self.kicking(env, kicks::Event::Connected { linkd: &key.node, epoch: key.epoch });
    }

    fn introduced(&mut self, env: &mut Env, conn: ConnId) {
        if let Some(link) = self.links.get_mut(&conn) {
            link.stage = Stage::Introduced;
        }
        if self.has(Mood::Withdrawn) {
            self.serve(env, conn, false);
        }
        self.report(env);
    }

    pub(super) fn call(&mut self, env: &mut Env, conn: ConnId, ask: Ask) {
        if let Some(link) = self.links.get_mut(&conn) {
            link.calls += 1;
            env.send(self.me, conn, Talk::Call { call: link.calls, ask });
        }
    }

    /// The number of the last call on this connection.
    pub(super) fn last_call(&self, conn: ConnId) -> u64 {
        self.links.get(&conn).map_or(0, |link| link.calls)
    }

    fn replied(&mut self, env: &mut Env, conn: ConnId, call: u64, answer: &Answer) {
        self.kick_answered(env, conn, call);
        let Some(link) = self.links.get_mut(&conn) else { return };
        if link.step != call {
            return;
        }
        let next = match link.stage {
            Stage::Announce => Stage::Bind,
            Stage::Bind => Stage::Subscribe,
            Stage::Subscribe => Stage::Introduced,
            _ => return,
        };
        match answer {
            Answer::Refused { .. } => link.again = Some(env.now + env.rng.millis(250, 1_000)),
            _ => self.begin(env, conn, next),
        }
    }

    /// Steps that take too long, refused steps, and silence.
    pub(super) fn watch_link(&mut self, env: &mut Env, conn: ConnId) {
        let Some(link) = self.links.get(&conn) else { return };
        let (stage, again) = (link.stage, link.again);
        match stage {
            Stage::Over if link.sessions.in_flight() == 0 => {
                self.links.remove(&conn);
            }
            Stage::Over => {}
            _ => {
                let silent = env.silence(self.me, conn).is_none_or(|silent| silent >= env.beat.times(2));
                let late = stage != Stage::Introduced && again.is_none() && env.now >= link.until;
                if silent || late {
                    env.close(self.me, conn);
                    self.over(env, conn);
                } else if again.is_some_and(|at| env.now >= at) {
                    self.begin(env, conn, stage);
                }
            }
        }
    }

    /// The connection is over, and every session on it.
    pub(super) fn over(&mut self, env: &mut Env, conn: ConnId) {
        let Some(link) = self.links.get_mut(&conn).filter(|link| link.stage != Stage::Over) else { return };
        let held = link.stage == Stage::Introduced;
        link.stage = Stage::Over;
        self.step(env, conn, Event::Closed { cause: code::UNAVAILABLE.number });
        self.lost(env, conn, held);
        self.kicks_unanswered(env, conn);
    }
}
