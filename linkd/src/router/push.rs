//! Core: what providers send to clients: to those they name, and to everybody in turns.

use std::collections::VecDeque;

use base::{AppVersion, Generation, LinkSid, Mono};
use wire::Level;
use wire::code::{self, Code};
use wire::link::message;

use super::owed::Request;
use super::{Action, Answer, Loss, Router};

/// Session slots that one turn of a broadcast looks at: other traffic goes between.
pub const SLOTS_PER_TURN: usize = 500;

/// What a provider sends, as far as a decision needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    pub level: Level,
    /// Bytes of the client frame.
    pub bytes: usize,
    /// The client's request that it answers: an answer is never shed.
    pub reply: Option<Request>,
}

/// Something for the sessions that `head` names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Send<'a> {
    pub conn: Generation,
    /// 0: nobody waits for the outcome.
    pub call: u64,
    pub head: &'a [u8],
    pub pushed: Pushed,
}

/// Whom a broadcast is from and for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Broadcast {
    pub conn: Generation,
    /// 0: nobody waits for the outcome.
    pub call: u64,
    /// Clients of this main version; 0 is all.
    pub version: AppVersion,
    pub pushed: Pushed,
}

/// A broadcast on its way.
#[derive(Debug)]
struct Under {
    number: u64,
    to: Broadcast,
    /// The next slot to look at.
    slot: usize,
    result: message::BroadcastResult,
}

/// The broadcasts of one worker, in the order they came.
#[derive(Debug, Default)]
pub(super) struct Broadcasts {
    last: u64,
    under: VecDeque<Under>,
}

impl Broadcasts {
    pub fn last(&self) -> u64 {
        self.last
    }
}

impl Router {
    pub(super) fn send(&mut self, now: Mono, send: Send<'_>, actions: &mut Vec<Action>) {
        let Send { conn, call, head, pushed } = send;
        if self.providers.by_conn(conn).is_none_or(|p| !p.announced) {
            actions.push(Action::Dropped(Loss::ConnectionGone));
            return;
        }
        let sids = match wire::link::send_sids(head) {
            Ok(sids) => sids,
            Err(error) => {
                let (code, text) = (&code::LIMIT, error.to_string());
                actions.push(Action::CloseProvider { conn, code, text });
                self.provider_closed(conn, actions);
                return;
            }
        };
        self.sends += 1;
        let mut missed = Vec::new();
        for sid in sids {
            let reached = self.send_to(now, conn, sid, pushed, actions);
            if !reached && call != 0 {
                missed.push(sid.0);
            }
        }
        if call != 0 {
            let answer = Answer::Sent(message::SendResult { missed });
            actions.push(Action::Answer { conn, call, answer });
        }
    }

    /// False: it does not reach this session.
    fn send_to(
        &mut self,
        now: Mono,
        from: Generation,
        sid: LinkSid,
        pushed: Pushed,
        actions: &mut Vec<Action>,
    ) -> bool {
        if !self.broadcasts.under.is_empty() {
            // What was broadcast before comes before.
            self.catch_up(now, sid, actions);
        }
        let Some(session) = self.sessions.get_mut(sid).filter(|s| s.account.is_some()) else {
            actions.push(Action::Dropped(Loss::SessionGone));
            return false;
        };
        if session.sent == self.sends {
            return true;
        }
        session.sent = self.sends;
        if let Some(request) = pushed.reply {
            session.owed.settle(from, request);
        }
        if self.sheds(now, pushed) {
            actions.push(Action::Dropped(Loss::OutShed));
            return false;
        }
        actions.push(Action::Forward { sid });
        true
    }

    /// Judges something that leaves for a client, and counts its bytes if it does.
    fn sheds(&mut self, now: Mono, pushed: Pushed) -> bool {
        let limit = self.rules.out_bytes_per_second;
        if pushed.reply.is_none() && self.line.sheds(now, limit, pushed.level) {
            return true;
        }
        if limit != 0 {
            self.line.sent(now, pushed.bytes);
        }
        false
    }

    /// Takes a broadcast. It goes out in turns, by [`fan_out`](Self::fan_out).
    pub(super) fn broadcast(&mut self, to: Broadcast, actions: &mut Vec<Action>) {
        if self.providers.by_conn(to.conn).is_none_or(|p| !p.announced) {
            actions.push(Action::Dropped(Loss::ConnectionGone));
            return;
        }
        let (bytes_max, running_max) = (self.rules.broadcast_bytes_max, self.rules.broadcasts_max);
        let refused: Option<(&'static Code, String)> = if to.pushed.bytes > bytes_max {
            let text = format!("a broadcast of {} bytes, at most {bytes_max}", to.pushed.bytes);
            Some((&code::LIMIT, text))
        } else if self.broadcasts.under.len() >= running_max {
            Some((&code::BUSY, format!("{running_max} broadcasts are on their way; wait for one to end")))
        } else {
            None
        };
        if let Some((code, text)) = refused {
            actions.push(Action::Dropped(Loss::BroadcastRefused));
            if to.call != 0 {
                let answer = Answer::Refused { code, text };
                actions.push(Action::Answer { conn: to.conn, call: to.call, answer });
            }
            return;
        }
        self.broadcasts.last += 1;
        let (number, result) = (self.broadcasts.last, message::BroadcastResult::default());
        self.broadcasts.under.push_back(Under { number, to, slot: 0, result });
        actions.push(Action::Keep { broadcast: number });
    }

    /// Whether a broadcast waits for its next turn.
    pub fn fans_out(&self) -> bool {
        !self.broadcasts.under.is_empty()
    }

    /// One turn of the oldest broadcast.
    pub(super) fn fan_out(&mut self, now: Mono, actions: &mut Vec<Action>) {
        let Some(oldest) = self.broadcasts.under.front_mut() else { return };
        let end = (oldest.slot + SLOTS_PER_TURN).min(self.sessions.slots());
        let slots = oldest.slot..end;
        oldest.slot = end;
        let sids: Vec<_> = self.sessions.range(slots).map(|session| session.sid).collect();
        for sid in sids {
            self.broadcast_to(now, 0, sid, actions);
        }
        if end == self.sessions.slots() {
            self.broadcast_over(actions);
        }
    }

    fn broadcast_over(&mut self, actions: &mut Vec<Action>) {
        let Some(Under { number, to, result, .. }) = self.broadcasts.under.pop_front() else { return };
        actions.push(Action::Forget { broadcast: number });
        if to.call != 0 {
            let answer = Answer::Broadcast(result);
            actions.push(Action::Answer { conn: to.conn, call: to.call, answer });
        }
    }

    /// Every broadcast on its way that has not reached this session yet, in order.
    fn catch_up(&mut self, now: Mono, sid: LinkSid, actions: &mut Vec<Action>) {
        for index in 0..self.broadcasts.under.len() {
            self.broadcast_to(now, index, sid, actions);
        }
    }

    /// One broadcast to one session, unless it had it.
    fn broadcast_to(&mut self, now: Mono, index: usize, sid: LinkSid, actions: &mut Vec<Action>) {
        let Some(under) = self.broadcasts.under.get(index) else { return };
        let (number, to) = (under.number, under.to);
        let Some(session) = self.sessions.get_mut(sid).filter(|s| s.broadcast < number) else { return };
        session.broadcast = number;
        let meant = to.version.matches(session.app_version) || base::planted::is("broadcast_ignores_version");
        if session.account.is_none() || !meant {
            return;
        }
        let shed = self.sheds(now, to.pushed);
        let Some(under) = self.broadcasts.under.get_mut(index) else { return };
        if shed {
            under.result.shed += 1;
            actions.push(Action::Dropped(Loss::OutShed));
        } else {
            under.result.sent += 1;
            actions.push(Action::ForwardKept { sid, broadcast: number });
        }
    }

    /// A provider is gone: nobody waits for its broadcasts, but who was promised one gets it.
    pub(super) fn forget_broadcasts(&mut self, conn: Generation) {
        for under in self.broadcasts.under.iter_mut().filter(|under| under.to.conn == conn) {
            under.to.call = 0;
        }
    }
}
