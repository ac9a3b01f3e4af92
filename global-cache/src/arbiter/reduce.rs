//! Core: holders hold less: asked to, by themselves, or since their session is over. And, after a restart of the arbiter,
//! what they go on holding.

use base::{Mono, Span};

use super::event::{Action, Key, Mode, Seq, SessionId};
use super::holders::Holder;
use super::{AGAIN, Arbiter, REDUCE};

impl Arbiter {
    /// A holder uses the record less now. Only for the grant that it names: a late word about an earlier one changes nothing.
    pub(super) fn reduced(
        &mut self,
        session: SessionId,
        key: Key,
        (seq, to, flushed): (Seq, Mode, u64),
        actions: &mut Vec<Action>,
    ) {
        if !self.sessions.is_living(session) {
            return actions.push(Action::Lost { session });
        }
        let at = self.keys.find(key);
        let current = at.and_then(|at| self.keys.at(at).holders.get(session.slot));
        let known =
            current.is_some_and(|holder| holder.seq() == seq || base::planted::is("arbiter_ignores_seq"));
        let (Some(at), true) = (at, known) else {
            self.counts.late += 1;
            return;
        };
        let entry = self.keys.at_mut(at);
        let before = entry.holders.mode(session.slot);
        if to >= before {
            self.counts.late += 1;
            return;
        }
        if before == Mode::Modify {
            // Who alone could change it knows what is there; a record that was removed begins again at 0.
            entry.flushed = flushed;
        }
        match to {
            Mode::Invalid => {
                entry.holders.retain(|holder| holder.slot() != session.slot);
                self.holds_one_less(session.slot);
            }
            _ => entry.holders.downgrade(),
        }
        let Some(op) = self.ops.at_mut(self.keys.at(at).op) else { return self.forget_if_empty(at) };
        op.targets.retain(|target| target.holder.slot() != session.slot);
        if op.targets.is_empty() {
            self.advance(at, actions);
        }
    }

    /// A holder can't reduce yet; it is asked again.
    pub(super) fn refused(
        &mut self,
        now: Mono,
        session: SessionId,
        key: Key,
        (seq, until): (Seq, Span),
        actions: &mut Vec<Action>,
    ) {
        if !self.sessions.is_living(session) {
            return actions.push(Action::Lost { session });
        }
        let op = self.keys.find(key).map(|at| self.keys.at(at).op);
        let op = op.and_then(|name| self.ops.at_mut(name));
        let asked = Holder::new(session.slot, seq);
        let target = op.and_then(|op| op.targets.iter_mut().find(|target| target.holder == asked));
        match target {
            // Not at once, not later than the requests wait.
            Some(target) => target.again = Some(now + until.clamp(AGAIN, REDUCE)),
            None => self.counts.late += 1,
        }
    }

    /// After a restart a provider goes on with what an earlier life granted, if nobody else does.
    pub(super) fn reassert(&mut self, session: SessionId, key: Key, mode: Mode, actions: &mut Vec<Action>) {
        if !self.sessions.is_living(session) {
            return actions.push(Action::Lost { session });
        }
        let slot = session.slot;
        let at = (!self.open && mode != Mode::Invalid).then(|| self.keys.enter(key));
        let seq = at.and_then(|at| {
            self.prune(at);
            let holders = &self.keys.at(at).holders;
            if holders.mode(slot) != Mode::Invalid {
                // Said again, since its answer was lost.
                return (holders.mode(slot) == mode).then(|| holders.get(slot).map(Holder::seq)).flatten();
            }
            let free = holders.is_empty() || (mode == Mode::Share && holders.modifier().is_none());
            if free { self.hold(at, slot, mode) } else { None }
        });
        if let Some(at) = at {
            self.forget_if_empty(at);
        }
        actions.push(Action::Reasserted { session, key, seq });
    }

    /// Asks a holder again that may have lost what it was asked: its connection is new.
    pub(super) fn remind(&mut self, slot: u16, actions: &mut Vec<Action>) {
        for name in self.ops.names() {
            let Some(op) = self.ops.at_mut(name) else { continue };
            let at = op.entry;
            let target = op.targets.iter_mut().find(|target| target.holder.slot() == slot);
            let target = target.map(|target| {
                target.again = None;
                *target
            });
            if let Some(target) = target {
                self.ask_to_reduce(at, target, actions);
            }
        }
    }

    /// What waits for a session that is over goes on, and what it waits for itself is forgotten.
    pub(super) fn drop_session(&mut self, slot: u16, actions: &mut Vec<Action>) {
        for name in self.ops.names() {
            let Some(op) = self.ops.at(name) else { continue };
            let concerned = op.targets.iter().any(|target| target.holder.slot() == slot)
                || op.waiters().any(|waiter| waiter.session.slot == slot);
            if concerned {
                // Of this slot nobody else can wait: it is not used again before a sweep.
                self.leave(name, |waiter| waiter.session.slot == slot, actions);
            }
        }
    }
}
