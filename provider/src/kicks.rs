//! Core: sessions that are being kicked. A kick is repeated until its linkd has confirmed it or that start of the linkd
//! can hold no sessions any more. Until then, and if the linkd comes back after all, nothing of the session runs here.
//!
//! That another start of a linkd is known means that the one before has lost its name, which it may not have heard yet:
//! its sessions count as ended, and still none of those that were kicked begins anything over a connection to it.

use std::collections::BTreeMap;
use std::mem;

use base::{Epoch, Mono, NodeId, Span};

use crate::linkds::Linkd;
use crate::links::LinkRef;

/// Kicks that may wait for their linkds; the next one is refused.
pub const KICKS_MAX: usize = 65_536;
/// A linkd that the directory does not list and that was not reached for this long has no sessions; one that has another
/// start, and was not reached for this long, is dialled by nobody any more.
pub const LEASE: Span = Span::secs(15);
/// The waits between two tries, doubled each time.
const AGAIN_FIRST: Span = Span::millis(50);
const AGAIN_MAX: Span = Span::secs(1);

#[derive(Debug)]
pub enum Event<'a> {
    /// End this session.
    Begin(LinkRef),
    /// Its linkd says that it is ended, or that there is no such session.
    Confirmed(LinkRef),
    /// Its linkd was asked and did not answer.
    Failed(LinkRef),
    /// There is no connection to its linkd.
    Unreachable(LinkRef),
    /// All linkds that are known now.
    Listed(&'a [Linkd]),
    /// A connection to this start of a linkd takes calls.
    Connected {
        linkd: &'a NodeId,
        epoch: Epoch,
    },
    Tick,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Tell its linkd, and say what came of it.
    Ask(LinkRef),
    /// It is ended, or gone with its linkd.
    Done(LinkRef),
    /// Too many are under way; nothing was done.
    Refused(LinkRef),
}

#[derive(Debug, Clone)]
struct Kick {
    /// When to ask; `None` while an answer is awaited.
    next: Option<Mono>,
    wait: Span,
    /// Since when its linkd is neither listed nor reached.
    missing: Option<Mono>,
    /// Taken for done since its linkd's lease is over, or since that has another start. Remembered, since that linkd may
    /// only have been cut off.
    over: bool,
    /// Its linkd has another start.
    outlived: bool,
}

/// The kicks under way.
#[derive(Debug, Default)]
pub struct Kicks {
    kicks: BTreeMap<LinkRef, Kick>,
    listed: BTreeMap<NodeId, Epoch>,
}

impl Kicks {
    pub fn step(&mut self, now: Mono, event: Event<'_>, actions: &mut Vec<Action>) {
        match event {
            Event::Begin(link) => self.begin(link, actions),
            Event::Confirmed(link) => self.end(link, actions),
            Event::Failed(link) => self.failed(now, &link, true),
            Event::Unreachable(link) => self.failed(now, &link, false),
            Event::Listed(linkds) => {
                self.listed.clear();
                for Linkd { node, epoch, .. } in linkds {
                    let newest = self.listed.entry(node.clone()).or_default();
                    *newest = (*newest).max(*epoch);
                }
                for Linkd { node, epoch, .. } in linkds {
                    self.outlive(node, *epoch, actions);
                }
            }
            Event::Connected { linkd, epoch } => {
                self.outlive(linkd, epoch, actions);
                let here = |link: &LinkRef| link.linkd == *linkd && link.epoch == epoch;
                for (link, kick) in
                    self.kicks.iter_mut().filter(|(link, kick)| here(link) && kick.next.is_some())
                {
                    (kick.next, kick.missing) = (None, None);
                    actions.push(Action::Ask(link.clone()));
                }
            }
            Event::Tick => self.tick(now, actions),
        }
    }

    /// Whether nothing of this session may run.
    pub fn contains(&self, link: &LinkRef) -> bool {
        self.kicks.contains_key(link) && !base::planted::is("kicked_session_returns")
    }

    pub fn is_empty(&self) -> bool {
        self.kicks.is_empty()
    }

    pub fn len(&self) -> usize {
        self.kicks.len()
    }

    fn begin(&mut self, link: LinkRef, actions: &mut Vec<Action>) {
        if self.kicks.len() >= KICKS_MAX && !self.kicks.contains_key(&link) {
            let over = self.kicks.iter().find(|(_, kick)| kick.over).map(|(link, _)| link.clone());
            let Some(over) = over else { return actions.push(Action::Refused(link)) };
            self.kicks.remove(&over);
        }
        let outlived = self.listed.get(&link.linkd).is_some_and(|epoch| *epoch > link.epoch);
        let kick = Kick { next: None, wait: AGAIN_FIRST, missing: None, over: outlived, outlived };
        self.kicks.insert(link.clone(), kick);
        actions.extend(outlived.then(|| Action::Done(link.clone())));
        actions.push(Action::Ask(link));
    }

    fn end(&mut self, link: LinkRef, actions: &mut Vec<Action>) {
        if self.kicks.remove(&link).is_some_and(|kick| !kick.over) {
            actions.push(Action::Done(link));
        }
    }

    fn failed(&mut self, now: Mono, link: &LinkRef, reached: bool) {
        if base::planted::is("kick_not_repeated") {
            self.kicks.remove(link);
        }
        let listed = self.listed.contains_key(&link.linkd);
        let Some(kick) = self.kicks.get_mut(link) else { return };
        kick.next = Some(now + kick.wait);
        kick.wait = kick.wait.times(2).min(AGAIN_MAX);
        let there = reached || (listed && !kick.outlived);
        kick.missing = if there { None } else { kick.missing.or(Some(now)) };
    }

    /// This start of the linkd is known: the sessions of an earlier one are gone.
    fn outlive(&mut self, node: &NodeId, epoch: Epoch, actions: &mut Vec<Action>) {
        let old = |link: &LinkRef| link.linkd == *node && link.epoch < epoch;
        for (link, kick) in self.kicks.iter_mut().filter(|(link, kick)| old(link) && !kick.outlived) {
            kick.outlived = true;
            if !mem::replace(&mut kick.over, true) {
                actions.push(Action::Done(link.clone()));
            }
        }
    }

    fn tick(&mut self, now: Mono, actions: &mut Vec<Action>) {
        let missing = |kick: &Kick| kick.missing.is_some_and(|since| now.since(since) >= LEASE);
        self.kicks.retain(|_, kick| !(kick.outlived && missing(kick)));
        for (link, kick) in &mut self.kicks {
            if !kick.over && missing(kick) {
                kick.over = true;
                actions.push(Action::Done(link.clone()));
            }
            if kick.next.is_some_and(|next| next <= now) {
                kick.next = None;
                actions.push(Action::Ask(link.clone()));
            }
        }
    }

    /// What always holds between two steps.
    pub fn check(&self) {
        assert!(self.kicks.len() <= KICKS_MAX, "kicks are bounded");
        for (link, kick) in &self.kicks {
            let newer = self.listed.get(&link.linkd).is_some_and(|epoch| *epoch > link.epoch);
            assert!(!newer || kick.outlived, "{link} is kicked at a start of its linkd that is over");
            assert!(!kick.outlived || kick.over, "{link} waits for a start of its linkd that is over");
            assert!(kick.wait <= AGAIN_MAX, "{link} waits too long");
        }
    }
}

#[cfg(test)]
mod tests;
