//! Core: a record is asked for: granted at once, or after those who hold it have reduced.

use std::collections::VecDeque;

use base::{Mono, RequestId, Span};

use super::event::{Action, Ask, Denied, Grant, Mode, Seq, SessionId};
use super::holders::{Holder, Holders};
use super::op::{Op, Target, Waiter};
use super::{ACQUIRE, AGAIN, Arbiter, REDUCE};

impl Arbiter {
    pub(super) fn acquire(&mut self, now: Mono, session: SessionId, ask: Ask, actions: &mut Vec<Action>) {
        if !self.sessions.is_living(session) {
            return actions.push(Action::Lost { session });
        }
        if ask.want == Mode::Invalid {
            return self.deny(session, ask.request, Denied::Mode, Span::ZERO, actions);
        }
        if !self.open {
            return self.deny(session, ask.request, Denied::Warming, self.opens.since(now), actions);
        }
        let at = self.keys.enter(ask.key);
        let waiter = Waiter { session, ask, until: now + ACQUIRE };
        let op = self.keys.at(at).op;
        if op != 0 {
            return self.wait(op, waiter, actions);
        }
        self.prune(at);
        // Nobody need reduce for who may not have it.
        if !self.has_room(at, session.slot) {
            self.deny(session, ask.request, Denied::Quota, Span::ZERO, actions);
        } else if !self.serve(at, waiter, actions) {
            self.begin(at, waiter, actions);
        }
        self.forget_if_empty(at);
    }

    /// Behind those who wait for the record already.
    fn wait(&mut self, name: u32, waiter: Waiter, actions: &mut Vec<Action>) {
        let waiting_max = self.settings.waiting_max;
        let Some(op) = self.ops.at_mut(name) else { return };
        let (session, request) = (waiter.session, waiter.ask.request);
        let same =
            op.waiters().find(|other| (other.session, other.ask.request) == (session, request)).copied();
        match same {
            // Said again, since its answer is still to come.
            Some(same) if same.ask == waiter.ask => {}
            Some(_) => self.deny(session, request, Denied::Conflict, Span::ZERO, actions),
            None if op.waiting.len() >= waiting_max => {
                self.deny(session, request, Denied::Busy, AGAIN, actions);
            }
            None => op.waiting.push_back(waiter),
        }
    }

    /// Answers it if nobody stands in the way.
    fn serve(&mut self, at: u32, waiter: Waiter, actions: &mut Vec<Action>) -> bool {
        let Waiter { session, ask, .. } = waiter;
        let slot = session.slot;
        let holders = &self.keys.at(at).holders;
        let mine = holders.get(slot);
        // A provider that does not know of its grant may have let go of it, by a word that was lost or is still on its way: the
        // grant has another number then, so that this word is about one that is over.
        let known = |mine: Holder| {
            let same =
                ask.have == Some(mine.seq()) || base::planted::is("arbiter_grants_twice_by_one_number");
            same.then_some(mine.seq())
        };
        let (mode, seq) = match (ask.want, mine, holders) {
            // What it has is enough.
            (_, Some(mine), Holders::Modify(_)) => (Mode::Modify, known(mine)),
            (Mode::Share, Some(mine), _) => (Mode::Share, known(mine)),
            (Mode::Share, None, Holders::Modify(_)) => return false,
            (Mode::Share, None, _) => (Mode::Share, None),
            (_, _, Holders::None) | (_, Some(_), Holders::One(_)) => (Mode::Modify, None),
            _ => return false,
        };
        let Some(seq) = seq.or_else(|| self.hold(at, slot, mode)) else {
            self.deny(session, ask.request, Denied::Quota, Span::ZERO, actions);
            return true;
        };
        // A reader that was never asked to let go has what the storage has.
        let current = mine.is_some_and(|mine| ask.have == Some(mine.seq()));
        let must_reload = !current && !base::planted::is("arbiter_never_says_reload");
        self.counts.granted += 1;
        let version_min = self.keys.at(at).flushed;
        let evicted = self.sessions.untold(slot);
        let grant = Grant { key: ask.key, mode, seq, must_reload, version_min, evicted };
        actions.push(Action::Grant { session, request: ask.request, grant });
        true
    }

    /// The session holds the record from now on, and nobody stands in its way; `None`: it holds as many as it may.
    pub(super) fn hold(&mut self, at: u32, slot: u16, mode: Mode) -> Option<Seq> {
        if !self.has_room(at, slot) {
            return None;
        }
        let new = self.keys.at(at).holders.get(slot).is_none();
        self.sessions.living_mut(slot)?.held += usize::from(new);
        let seq = self.next_seq();
        let holders = &mut self.keys.at_mut(at).holders;
        match mode {
            Mode::Modify => *holders = Holders::Modify(Holder::new(slot, seq)),
            _ => {
                holders.retain(|holder| holder.slot() != slot);
                holders.share(Holder::new(slot, seq));
            }
        }
        Some(seq)
    }

    /// Whether the session may hold the record beside what it holds.
    fn has_room(&self, at: u32, slot: u16) -> bool {
        let held = self.sessions.living(slot).map_or(0, |session| session.held);
        held < self.settings.held_max || self.keys.at(at).holders.get(slot).is_some()
    }

    /// Whom a request waits for, and what they are asked.
    fn in_the_way(&self, at: u32, waiter: &Waiter) -> Vec<Target> {
        let to = if waiter.ask.want == Mode::Share { Mode::Share } else { Mode::Invalid };
        let others = self.keys.at(at).holders.as_slice().iter();
        let others = others.filter(|holder| holder.slot() != waiter.session.slot);
        others.map(|&holder| Target { holder, to, again: None }).collect()
    }

    /// Asks those in the way to reduce; the request waits for them.
    fn begin(&mut self, at: u32, serving: Waiter, actions: &mut Vec<Action>) {
        if self.ops.len() >= self.settings.ops_max {
            return self.deny(serving.session, serving.ask.request, Denied::Busy, AGAIN, actions);
        }
        let targets = self.in_the_way(at, &serving);
        for target in &targets {
            self.ask_to_reduce(at, *target, actions);
        }
        if base::planted::is("arbiter_grants_before_reduced") {
            let own = serving.session.slot;
            self.keys.at_mut(at).holders.retain(|holder| holder.slot() == own);
            self.serve(at, serving, actions);
            return;
        }
        let name = self.ops.begin(Op { entry: at, serving, targets, waiting: VecDeque::new() });
        self.keys.at_mut(at).op = name;
    }

    pub(super) fn ask_to_reduce(&mut self, at: u32, target: Target, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.id(target.holder.slot()) else { return };
        self.counts.reduces += 1;
        let (key, seq) = (self.keys.at(at).key(), target.holder.seq());
        actions.push(Action::Reduce { session, key, seq, to: target.to, within: REDUCE });
    }

    /// Goes on with a record after its holders or its waiters have changed: serves in order whoever can be, until one must
    /// wait for holders again or nobody waits.
    pub(super) fn advance(&mut self, at: u32, actions: &mut Vec<Action>) {
        let name = self.keys.at(at).op;
        let Some(mut op) = self.ops.end(name) else { return };
        self.keys.at_mut(at).op = 0;
        loop {
            self.prune(at);
            let there = self.sessions.is_living(op.serving.session);
            if there && !self.serve(at, op.serving, actions) {
                // Those who were asked already are not asked again.
                let targets = self.in_the_way(at, &op.serving);
                let asked =
                    |new: &Target| op.targets.iter().find(|old| (old.holder, old.to) == (new.holder, new.to));
                let targets: Vec<Target> =
                    targets.into_iter().map(|new| asked(&new).copied().unwrap_or(new)).collect();
                for target in &targets {
                    if asked(target).is_none() {
                        self.ask_to_reduce(at, *target, actions);
                    }
                }
                op.targets = targets;
                self.keys.at_mut(at).op = self.ops.begin(op);
                return;
            }
            match op.waiting.pop_front() {
                Some(next) => op.serving = next,
                None => return self.forget_if_empty(at),
            }
        }
    }

    pub(super) fn deny(
        &mut self,
        session: SessionId,
        request: RequestId,
        why: Denied,
        retry_after: Span,
        actions: &mut Vec<Action>,
    ) {
        self.counts.denied += 1;
        actions.push(Action::Deny { session, request, why, retry_after });
    }

    /// Requests whose time is over are denied, and holders that could not reduce before are asked again.
    pub(super) fn wake(&mut self, now: Mono, actions: &mut Vec<Action>) {
        for name in self.ops.names() {
            let Some(op) = self.ops.at_mut(name) else { continue };
            let at = op.entry;
            let due = |target: &&mut Target| target.again.is_some_and(|again| again <= now);
            let again: Vec<Target> = op
                .targets
                .iter_mut()
                .filter(due)
                .map(|target| {
                    target.again = None;
                    *target
                })
                .collect();
            let late = |waiter: &&Waiter| waiter.until <= now;
            let late: Vec<Waiter> = op.waiters().filter(late).copied().collect();
            for target in again {
                self.ask_to_reduce(at, target, actions);
            }
            if !late.is_empty() {
                self.give_up(name, &late, actions);
            }
        }
    }

    /// Denies these, who wait for the record, and goes on with the others.
    fn give_up(&mut self, name: u32, late: &[Waiter], actions: &mut Vec<Action>) {
        for waiter in late {
            self.deny(waiter.session, waiter.ask.request, Denied::Timeout, AGAIN, actions);
        }
        self.leave(name, |waiter| late.iter().any(|late| is_same(late, waiter)), actions);
    }

    /// Takes waiters out of an operation, and goes on with whoever is left.
    pub(super) fn leave(&mut self, name: u32, leaves: impl Fn(&Waiter) -> bool, actions: &mut Vec<Action>) {
        let Some(op) = self.ops.at_mut(name) else { return };
        let at = op.entry;
        op.waiting.retain(|waiter| !leaves(waiter));
        if leaves(&op.serving) {
            match op.waiting.pop_front() {
                Some(next) => op.serving = next,
                None => {
                    self.ops.end(name);
                    self.keys.at_mut(at).op = 0;
                    return self.forget_if_empty(at);
                }
            }
        }
        self.advance(at, actions);
    }
}

fn is_same(one: &Waiter, other: &Waiter) -> bool {
    (one.session, one.ask.request) == (other.session, other.ask.request)
}
