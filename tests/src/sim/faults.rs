//! The plan's faults, done to the cluster, and the end of all of them.

use base::Span;

use super::cluster::Cluster;
use super::plan::{Fault, Mood, Who};
use super::process::{Node, Slot};
use super::queue::Item;

impl Cluster {
    /// The slot of a part; its twins have others.
    fn slot(&self, who: Who) -> usize {
        self.slots.iter().position(|slot| slot.who == who).unwrap_or(0)
    }

    pub(super) fn begin(&mut self, index: usize) {
        let Some(planned) = self.plan.faults.get(index).cloned() else { return };
        self.env.trace.say(self.env.now, || format!("--- {}", planned.fault));
        match planned.fault {
            Fault::Cut { ends: [a, b], noticed } => self.cut([self.slot(a), self.slot(b)], noticed),
            Fault::Block { from, to, both, span } => {
                let (from, to, until) = (self.slot(from), self.slot(to), self.env.now + span);
                self.env.network.block(from, to, until);
                if both {
                    self.env.network.block(to, from, until);
                }
                self.env.network.disturb(from, until);
                self.env.network.disturb(to, until);
            }
            Fault::Pause { who, span } => {
                let slot = self.slot(who);
                self.env.network.disturb(slot, self.env.now + span);
                if self.slots[slot].node.is_some() {
                    self.slots[slot].paused = true;
                    self.env.after(span, Item::Resume(slot));
                }
            }
            Fault::Crash { who, hard, down, back } => {
                let slot = self.slot(who);
                if who == Who::Directory {
                    self.wall_back = back;
                }
                self.env.network.disturb(slot, self.env.now + down);
                self.stop(slot, hard);
                self.env.after(down, Item::Start(slot));
            }
            Fault::Twin { of, span } => {
                self.slots.push(Slot::new(of, true));
                self.start(self.slots.len() - 1);
                self.env.after(span, Item::Lift(index));
            }
            Fault::Mood { provider, mood, span } => {
                self.set(provider, mood, true);
                self.env.after(span, Item::Lift(index));
            }
            Fault::Clog { linkd, span } => {
                self.clog(linkd, true);
                self.env.after(span, Item::Lift(index));
            }
            Fault::Retire { who, hard } => {
                let slot = self.slot(who);
                self.stop(slot, hard);
                self.slots[slot].retired = true;
            }
            Fault::LoseNotice { to } => {
                for conn in self.env.network.between(self.slot(to), self.slot(Who::Directory)) {
                    self.env.network.lose_notice(conn);
                }
            }
            Fault::DoubleNotice { to } => {
                for conn in self.env.network.between(self.slot(to), self.slot(Who::Directory)) {
                    self.env.network.double_notice(conn);
                }
            }
            Fault::Repeat { who } => {
                let index = self.slot(who);
                let Slot { node, paused, .. } = &mut self.slots[index];
                match node.as_mut().filter(|_| !*paused) {
                    Some(Node::Linkd(node)) => node.member.repeat(&mut self.env),
                    Some(Node::Provider(node)) => node.member.repeat(&mut self.env),
                    _ => {}
                }
            }
        }
    }

    fn cut(&mut self, slots: [usize; 2], noticed: [Option<Span>; 2]) {
        for conn in self.env.network.between(slots[0], slots[1]) {
            self.env.network.cut(conn);
            if slots.contains(&0) {
                // A node that does not know it is cut off from the directory can't speak there.
                self.env.network.disturb(slots[0].max(slots[1]), self.env.now + self.env.terms.ttl);
            }
            for to in 0..2 {
                let Some(place) = self.env.network.end(conn, to) else { continue };
                let notice = noticed[usize::from(place.slot == slots[1])];
                if let Some(span) = notice {
                    self.env.after(span, Item::Gone { conn, to });
                }
            }
        }
    }

    /// Ends what lasts; pauses and crashes end by themselves.
    pub(super) fn lift(&mut self, index: usize) {
        let Some(planned) = self.plan.faults.get(index).cloned() else { return };
        match planned.fault {
            Fault::Mood { provider, mood, .. } => self.set(provider, mood, false),
            Fault::Clog { linkd, .. } => self.clog(linkd, false),
            Fault::Twin { of, .. } => {
                let twin = |slot: &Slot| slot.twin && slot.who == of && slot.node.is_some();
                if let Some(slot) = self.slots.iter().position(twin) {
                    self.stop(slot, false);
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, provider: u8, mood: Mood, on: bool) {
        let slot = self.slot(Who::Provider(provider));
        if let Some(Node::Provider(node)) = &mut self.slots[slot].node {
            node.set(&mut self.env, mood, on);
        }
    }

    fn clog(&mut self, linkd: u8, on: bool) {
        let slot = self.slot(Who::Linkd(linkd));
        if let Some(Node::Linkd(node)) = &mut self.slots[slot].node {
            node.clogged = on;
        }
    }

    /// All faults end: from now on the cluster has to come right by itself.
    pub(super) fn heal(&mut self) {
        self.env.trace.say(self.env.now, || "--- all healed".into());
        self.env.network.heal();
        self.env.healed = true;
        for index in 0..self.slots.len() {
            if self.slots[index].twin {
                self.stop(index, false);
                continue;
            }
            self.resume(index);
            self.start(index);
            let who = self.slots[index].who;
            match &mut self.slots[index].node {
                Some(Node::Provider(node)) => {
                    for mood in [Mood::Overloaded, Mood::Disabled, Mood::Withdrawn] {
                        node.set(&mut self.env, mood, false);
                    }
                    // A lost change is noticed with the next one, so there must be a next one.
                    if who == Who::Provider(0) {
                        node.member.renew(&mut self.env);
                    }
                }
                Some(Node::Linkd(node)) => {
                    node.clogged = false;
                    if who == Who::Linkd(0) {
                        node.member.renew(&mut self.env);
                    }
                }
                Some(Node::Client(node)) => node.heal(),
                _ => {}
            }
        }
    }
}
