//! The requests of one session run at a provider one after another in the order they were sent, and their answers come
//! back in that order. Each provider that knows a session is introduced to it first and hears of its end once, last;
//! nothing of a session runs after its end or after it was kicked.
//!
//! Holds: Z-11, Q13, Z-67.

use std::collections::{BTreeMap, BTreeSet};

use base::{Generation, LinkSid};
use linkd::router::Action;
use linkstead::sessions::{self, Dropped};

use super::super::input::Input;
use super::super::network::ConnId;
use super::super::provider::{Info, Job};
use super::{Fed, Invariant, LinkId, RouterId, Saw, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct SessionFifo {
    /// Sessions that routers have introduced.
    introduced: BTreeSet<(RouterId, LinkSid, Generation)>,
    /// Sessions that providers have.
    open: BTreeMap<(LinkId, LinkSid), Queue>,
    /// The last answer that came to a client from a provider's slot.
    answers: BTreeMap<(ConnId, u64), u64>,
}

#[derive(Debug, Default)]
struct Queue {
    running: Option<u64>,
    last: u64,
    kicked: bool,
    broken: bool,
}

impl Invariant for SessionFifo {
    fn name(&self) -> &'static str {
        "session_fifo"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        match seen {
            Seen::Router { at, input, actions } => self.router(*at, input, actions),
            Seen::Sessions { at, fed, actions, .. } => self.sessions(*at, *fed, actions),
            Seen::Client { conn, saw: Saw::Answered { uid, result: 0, by: Some(by) } } => {
                let last = self.answers.insert((*conn, *by), *uid);
                hold(last.is_none_or(|last| last < *uid), || {
                    format!("the answer to {uid} comes after that to {last:?}")
                })
            }
            Seen::Client { conn, saw: Saw::Closed } => {
                self.answers.retain(|(known, _), _| known != conn);
                Ok(())
            }
            Seen::Ended { place } => {
                self.introduced.retain(|(at, ..)| at.place != *place);
                self.open.retain(|(at, _), _| at.place != *place);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl SessionFifo {
    fn router(&mut self, at: RouterId, input: &Input, actions: &[Action]) -> Verdict {
        let mut over = Vec::new();
        if let Input::ClientClosed { sid } = input {
            over.push(*sid);
        }
        if let Input::ProviderClosed { conn } = input {
            self.introduced.retain(|(router, _, to)| (*router, *to) != (at, *conn));
        }
        for action in actions {
            match action {
                Action::Opened { to, opened } => {
                    let sid = LinkSid(opened.link_sid);
                    hold(self.introduced.insert((at, sid, to.conn)), || {
                        format!("{sid} is introduced twice to {}", to.conn)
                    })?;
                }
                Action::Dispatch { to, sid, .. } => {
                    let known = self.introduced.contains(&(at, *sid, to.conn));
                    hold(known, || format!("{} gets a request of {sid}, which it does not know", to.conn))?;
                }
                Action::LinkBroken { to, sid, .. } => {
                    let known = self.introduced.remove(&(at, *sid, to.conn));
                    hold(known, || format!("{} hears of the end of {sid}, which it does not know", to.conn))?;
                }
                Action::CloseProvider { conn, .. } => {
                    self.introduced.retain(|(router, _, to)| (*router, *to) != (at, *conn));
                }
                Action::CloseClient { sid, .. } => over.push(*sid),
                _ => {}
            }
        }
        let untold = self.introduced.iter().find(|(router, sid, _)| *router == at && over.contains(sid));
        hold(untold.is_none(), || format!("nobody is told of this end: {untold:?}"))
    }

    fn sessions(&mut self, at: LinkId, fed: Fed, actions: &[sessions::Action<Info, Job>]) -> Verdict {
        match fed {
            Fed::Opened(sid) if !actions.contains(&sessions::Action::Ignored { sid }) => {
                self.open.insert((at, sid), Queue::default());
            }
            Fed::Opened(sid) => return Err(format!("{sid} is opened and {} has it already", at.conn)),
            Fed::Done(sid) => self.change(at, sid, |queue| queue.running = None),
            Fed::Kicked(sid) => self.change(at, sid, |queue| queue.kicked = true),
            Fed::Broken(sid) => self.change(at, sid, |queue| queue.broken = true),
            Fed::Dispatch(sid, uid) => {
                let broken = self.open.get(&(at, sid)).is_none_or(|queue| queue.broken);
                hold(!broken, || format!("{uid} of {sid} comes after the end of its session"))?;
            }
            Fed::Closed => {}
        }
        actions.iter().try_for_each(|action| self.said(at, action))
    }

    fn change(&mut self, at: LinkId, sid: LinkSid, change: impl FnOnce(&mut Queue)) {
        if let Some(queue) = self.open.get_mut(&(at, sid)) {
            change(queue);
        }
    }

    fn said(&mut self, at: LinkId, action: &sessions::Action<Info, Job>) -> Verdict {
        match action {
            sessions::Action::Run { sid, job, .. } => {
                let uid = job.0.uid;
                let Some(queue) = self.open.get_mut(&(at, *sid)) else {
                    return Err(format!("{uid} of {sid} runs after its session"));
                };
                hold(!queue.kicked, || format!("{uid} of {sid} runs, which was kicked"))?;
                hold(queue.running.is_none(), || {
                    format!("{uid} and {:?} of {sid} run at once", queue.running)
                })?;
                hold(queue.last < uid, || format!("{uid} of {sid} runs after {}", queue.last))?;
                (queue.running, queue.last) = (Some(uid), uid);
                Ok(())
            }
            sessions::Action::Gone { sid, .. } => {
                let Some(queue) = self.open.remove(&(at, *sid)) else {
                    return Err(format!("{sid} is gone from {} twice", at.conn));
                };
                hold(queue.running.is_none(), || format!("{sid} is gone while {:?} runs", queue.running))
            }
            sessions::Action::Drop { sid, why: why @ (Dropped::NotOpen | Dropped::Late), job } => {
                Err(format!("{} of {sid} is dropped: {why:?}", job.0.uid))
            }
            _ => Ok(()),
        }
    }
}
