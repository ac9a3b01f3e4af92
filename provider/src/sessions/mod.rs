//! Core: in which order the requests of one linkd connection's sessions run, and that nothing runs after an end.
//!
//! Each session is one queue. Its requests run one after another, `parallel` ones overlap, and the end of the session
//! comes after everything that stood before it. The payload of a request is the shell's business.

use std::collections::VecDeque;

use base::{LinkSid, Mono, Span};
use slab::Slab;

mod index;
#[cfg(test)]
mod tests;

use index::Index;

/// What happened. `S` is what the shell keeps of a session, `J` is one request.
#[derive(Debug)]
pub enum Event<S, J> {
    /// A session may send requests from now on.
    Opened { sid: LinkSid, state: S },
    /// A request came.
    Dispatch { sid: LinkSid, job: J, parallel: bool },
    /// A request that was told to run has ended. Said exactly once for each.
    Done { sid: LinkSid, parallel: bool },
    /// The session is being kicked: what waits is dropped, what comes is refused. What runs may end.
    Kicked { sid: LinkSid },
    /// The linkd says that the session is over.
    Broken { sid: LinkSid, cause: i32 },
    /// This provider is stopping: what is here may end, nothing new is taken.
    Drain,
    /// The connection is gone, and with it every session.
    Closed { cause: i32 },
}

/// What the shell does about it, in this order.
#[derive(Debug, PartialEq, Eq)]
pub enum Action<S, J> {
    /// Run it, then say `Done`.
    Run { sid: LinkSid, job: J, parallel: bool, waited: Span },
    /// Answer the request with this, and count it.
    Refuse { sid: LinkSid, job: J, why: Refused },
    /// Count it; nobody can be answered.
    Drop { sid: LinkSid, job: J, why: Dropped },
    /// The session is over and nothing of it runs or waits. Said exactly once for each `Opened`.
    Gone { sid: LinkSid, state: S, cause: i32 },
    /// The peer said something that changes nothing: a second `Opened`, or the end of an unknown session.
    Ignored { sid: LinkSid },
    /// Draining, and the last request has ended.
    Idle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// As many requests of the session as allowed are here already.
    Busy,
    ShuttingDown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// No `Opened` came for this session, or it is gone.
    NotOpen,
    /// It came after the session's end.
    Late,
    /// It waited or came while the session was being kicked.
    Kicked,
    /// It waited when the connection broke.
    Closed,
}

/// The sessions of one linkd connection.
#[derive(Debug)]
pub struct Sessions<S, J> {
    index: Index,
    slots: Slab<Session<S, J>>,
    /// Requests of one session that may run and wait together.
    in_flight_max: usize,
    /// Running and waiting, of all sessions.
    in_flight: usize,
    draining: bool,
    closed: bool,
}

#[derive(Debug)]
struct Session<S, J> {
    sid: LinkSid,
    state: S,
    waiting: VecDeque<(Mono, J)>,
    /// One that is not parallel runs.
    running: bool,
    /// Parallel ones that run.
    overlapping: usize,
    kicked: bool,
    /// Why it is over, once it is.
    end: Option<i32>,
}

impl<S, J> Session<S, J> {
    fn in_flight(&self) -> usize {
        self.waiting.len() + usize::from(self.running) + self.overlapping
    }
}

impl<S, J> Sessions<S, J> {
    /// `in_flight_max`: requests of one session that may run and wait together; at least 1.
    pub fn new(in_flight_max: usize) -> Self {
        Self {
            index: Index::default(),
            slots: Slab::new(),
            in_flight_max: in_flight_max.max(1),
            in_flight: 0,
            draining: false,
            closed: false,
        }
    }

    /// What the shell keeps of a session that may send requests, or why none of it runs.
    pub fn state(&self, sid: LinkSid) -> Result<&S, Dropped> {
        let slot = self.index.get(sid).ok_or(Dropped::NotOpen)?;
        match &self.slots[slot] {
            session if session.end.is_some() => Err(Dropped::Late),
            session if session.kicked => Err(Dropped::Kicked),
            session => Ok(&session.state),
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Nothing new is taken.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Requests that run or wait.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub fn step(&mut self, now: Mono, event: Event<S, J>, actions: &mut Vec<Action<S, J>>) {
        match event {
            Event::Opened { sid, state } => self.opened(sid, state, actions),
            Event::Dispatch { sid, job, parallel } => self.dispatch(now, sid, job, parallel, actions),
            Event::Done { sid, parallel } => self.done(now, sid, parallel, actions),
            Event::Kicked { sid } => self.kicked(sid, actions),
            Event::Broken { sid, cause } => self.broken(sid, cause, actions),
            Event::Drain => self.drain(actions),
            Event::Closed { cause } => self.close(cause, actions),
        }
    }

    fn opened(&mut self, sid: LinkSid, state: S, actions: &mut Vec<Action<S, J>>) {
        if self.closed || self.index.get(sid).is_some() {
            return actions.push(Action::Ignored { sid });
        }
        let (waiting, running, overlapping) = (VecDeque::new(), false, 0);
        let session = Session { sid, state, waiting, running, overlapping, kicked: false, end: None };
        let slot = self.slots.insert(session);
        self.index.insert(sid, slot);
    }

    fn dispatch(&mut self, now: Mono, sid: LinkSid, job: J, parallel: bool, actions: &mut Vec<Action<S, J>>) {
        let Some(slot) = self.index.get(sid) else {
            return actions.push(Action::Drop { sid, job, why: Dropped::NotOpen });
        };
        let session = &mut self.slots[slot];
        if session.end.is_some() && !base::planted::is("late_dispatch_runs") {
            return actions.push(Action::Drop { sid, job, why: Dropped::Late });
        }
        if session.kicked && !base::planted::is("kicked_session_executes") {
            return actions.push(Action::Drop { sid, job, why: Dropped::Kicked });
        }
        if self.draining {
            return actions.push(Action::Refuse { sid, job, why: Refused::ShuttingDown });
        }
        if session.in_flight() >= self.in_flight_max && !base::planted::is("in_flight_unbounded") {
            return actions.push(Action::Refuse { sid, job, why: Refused::Busy });
        }
        self.in_flight += 1;
        if parallel {
            session.overlapping += 1;
        } else if session.running && !base::planted::is("session_requests_overlap") {
            return session.waiting.push_back((now, job));
        } else {
            session.running = true;
        }
        actions.push(Action::Run { sid, job, parallel, waited: Span::ZERO });
    }

    fn done(&mut self, now: Mono, sid: LinkSid, parallel: bool, actions: &mut Vec<Action<S, J>>) {
        // A session stays until its last request is done, so an unknown one is a mistake of the shell.
        let Some(slot) = self.index.get(sid) else {
            debug_assert!(false, "done without a session");
            return;
        };
        let session = &mut self.slots[slot];
        self.in_flight = self.in_flight.saturating_sub(1);
        if parallel {
            session.overlapping = session.overlapping.saturating_sub(1);
        } else {
            session.running = false;
            if let Some((since, job)) = session.waiting.pop_front() {
                session.running = true;
                actions.push(Action::Run { sid, job, parallel: false, waited: now.since(since) });
            }
        }
        self.settle(slot, actions);
        self.say_idle(actions);
    }

    fn kicked(&mut self, sid: LinkSid, actions: &mut Vec<Action<S, J>>) {
        let Some(slot) = self.index.get(sid) else { return };
        let session = &mut self.slots[slot];
        session.kicked = true;
        if base::planted::is("kicked_session_executes") {
            return;
        }
        self.drop_waiting(slot, Dropped::Kicked, actions);
        self.say_idle(actions);
    }

    fn broken(&mut self, sid: LinkSid, cause: i32, actions: &mut Vec<Action<S, J>>) {
        let Some(slot) = self.index.get(sid) else {
            return actions.push(Action::Ignored { sid });
        };
        let session = &mut self.slots[slot];
        if session.end.is_some() {
            return actions.push(Action::Ignored { sid });
        }
        session.end = Some(cause);
        if base::planted::is("link_broken_overtakes") {
            self.index.remove(sid);
            let session = self.slots.remove(slot);
            self.in_flight -= session.in_flight();
            return actions.push(Action::Gone { sid, state: session.state, cause });
        }
        self.settle(slot, actions);
    }

    fn drain(&mut self, actions: &mut Vec<Action<S, J>>) {
        self.draining = true;
        self.say_idle(actions);
    }

    /// What waits has not begun, so another provider may take the session over without executing anything twice.
    fn close(&mut self, cause: i32, actions: &mut Vec<Action<S, J>>) {
        self.closed = true;
        let slots: Vec<usize> = self.slots.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.drop_waiting(slot, Dropped::Closed, actions);
            self.slots[slot].end.get_or_insert(cause);
            self.settle(slot, actions);
        }
        self.say_idle(actions);
    }

    fn drop_waiting(&mut self, slot: usize, why: Dropped, actions: &mut Vec<Action<S, J>>) {
        let session = &mut self.slots[slot];
        self.in_flight -= session.waiting.len();
        for (_, job) in session.waiting.drain(..) {
            actions.push(Action::Drop { sid: session.sid, job, why });
        }
    }

    /// Lets a session go that is over and has nothing left.
    fn settle(&mut self, slot: usize, actions: &mut Vec<Action<S, J>>) {
        let session = &self.slots[slot];
        let Some(cause) = session.end.filter(|_| session.in_flight() == 0) else { return };
        let Session { sid, state, .. } = self.slots.remove(slot);
        self.index.remove(sid);
        actions.push(Action::Gone { sid, state, cause });
    }

    fn say_idle(&self, actions: &mut Vec<Action<S, J>>) {
        if self.draining && self.in_flight == 0 {
            actions.push(Action::Idle);
        }
    }

    /// What always holds between two steps.
    pub fn check(&self) {
        assert_eq!(self.index.len(), self.slots.len(), "each session has one slot");
        let in_flight: usize = self.slots.iter().map(|(_, session)| session.in_flight()).sum();
        assert_eq!(self.in_flight, in_flight, "the sum is the sum");
        for (slot, session) in &self.slots {
            let sid = session.sid;
            assert_eq!(self.index.get(sid), Some(slot), "{sid} is found");
            assert!(session.in_flight() <= self.in_flight_max, "{sid} keeps its bound");
            assert!(session.running || session.waiting.is_empty(), "{sid} waits only for a running request");
            assert!(session.end.is_none() || session.in_flight() > 0, "{sid} is over and must be gone");
            assert!(!self.closed || session.end.is_some(), "{sid} outlives its connection");
            assert!(!session.kicked || session.waiting.is_empty(), "{sid} is kicked and runs no more");
        }
    }
}
