//! Core: a provider's session with the arbiter, from its login to the end of its lease.
//!
//! The lease counts from when the last answered renewal was sent; the login counts as one. Without an answer for
//! `self_release` nothing more is committed, after `flush` more everything is dropped. What a welcome means is told by its
//! fence alone, since an answer that says "fresh" may have been lost and the next one says otherwise:
//!
//! | its fence | we hold | and so |
//! |---|---|---|
//! | ours | a session | it goes on: [`Action::Resume`], or [`Action::Reopen`] if reassertions have no answer yet |
//! | of a later life of the arbiter | a session | what is held is held on: [`Action::Reopen`] |
//! | another one of this life | a session | ours is over: [`Action::Lose`], [`Action::Open`] |
//! | the one that we have dropped | nothing | see [`Why::Kept`] |
//! | any other | nothing | [`Action::Open`] |

use base::lease::{BadTerms, Lease, Standing, Terms};
use base::{Epoch, Fence, Mono, Span};
use wire::code;

/// How long a provider that was refused waits at least before it asks again.
const REFUSED_WAIT: Span = Span::secs(2);

/// The arbiter's answer to a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// When the login was sent.
    pub sent: Mono,
    pub fence: Fence,
    pub terms: Terms,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// There is a connection, and its hellos are said.
    Connected,
    Welcome(Welcome),
    /// A login was refused, or the arbiter has said goodbye with this code.
    Refused {
        code: i32,
    },
    /// The renewal that was sent then is answered.
    Renewed {
        sent: Mono,
    },
    /// Each reassertion since the last [`Action::Reopen`] is answered.
    Reasserted,
    /// The connection is over.
    Closed,
    /// The storage refuses what is written under this fence.
    Abandon {
        fence: Fence,
    },
    /// Everything is written, and the provider stops.
    Leave,
    /// Time has passed, see [`Session::next`].
    Tick,
}

/// Why another connection is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Closed,
    /// No renewal was answered in time; perhaps another connection is.
    Silent,
    /// The storage has refused the session.
    Abandoned,
    /// A number of the code registry.
    Refused(i32),
    /// The answer to the login came when the lease that it gave was over.
    Late,
    /// An earlier life of the arbiter answers than one that we have met.
    Outdated,
    /// A lease that can't be kept.
    Terms(BadTermsIn),
    /// The arbiter goes on with a session whose records we have dropped.
    ///
    /// What we had committed may still be on its way to the storage, where only a raised fence stops it. To go on under the
    /// same fence would let it through, and so would a goodbye, which tells the arbiter that nobody need be refused; others
    /// would then load what is written over a moment later. So we stay away until the arbiter has evicted the session: who
    /// is granted a record of it then has its storage refuse it first.
    Kept,
}

/// Which of a welcome's terms is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadTermsIn {
    /// See [`BadTerms`].
    Eviction,
    /// Renewals come at least twice within the time in which one must be answered.
    Renew,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The call that asks for a session.
    Login,
    /// The call that renews the lease.
    Renew,
    Open {
        fence: Fence,
        until: Mono,
    },
    /// The words that come of it are sent, and [`Event::Reasserted`] comes when each is answered. May come again with the
    /// same fence, when the connection was lost before.
    Reopen {
        fence: Fence,
    },
    Resume,
    Extend {
        until: Mono,
    },
    Release,
    Lose,
    /// The connection, if there is one, is cut; another is dialled, not sooner than this.
    Redial {
        after: Span,
        why: Why,
    },
    /// The arbiter is told that everything is written; then this is over.
    Bye,
    /// Nobody need be told; this is over.
    End,
    /// A later start of this node has taken its place: this one is over.
    Outlived,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// No connection.
    Away,
    /// The login has no answer yet.
    Door,
    /// Logged in; the next renewal is sent then.
    Inside { renew: Mono },
}

/// A session whose records are in memory.
#[derive(Debug, Clone, Copy)]
struct Held {
    fence: Fence,
    terms: Terms,
    lease: Lease,
    released: bool,
    /// Commits rest until what was held in an earlier life of the arbiter is answered for.
    reasserting: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Session {
    at: At,
    held: Option<Held>,
    /// The last session that was lost.
    dropped: Option<Fence>,
    /// The latest life of the arbiter that was met.
    newest: Epoch,
    over: bool,
}

impl Default for Session {
    fn default() -> Self {
        Self { at: At::Away, held: None, dropped: None, newest: Epoch::NONE, over: false }
    }
}

impl Session {
    /// The session that is held.
    pub fn fence(&self) -> Option<Fence> {
        self.held.map(|held| held.fence)
    }

    /// When [`Event::Tick`] is due.
    pub fn next(&self) -> Option<Mono> {
        let renew = match self.at {
            At::Inside { renew } => Some(renew),
            _ => None,
        };
        let held = self.held.filter(|_| !self.over);
        let expires = held.map(|held| {
            let release = held.lease.self_release_at();
            if held.released { release + held.terms.flush } else { release }
        });
        [renew.filter(|_| !self.over), expires].into_iter().flatten().min()
    }

    pub fn step(&mut self, now: Mono, event: Event, actions: &mut Vec<Action>) {
        if self.over {
            return;
        }
        // What an answer says that comes too late is not said to a session that is over.
        self.expire(now, actions);
        match event {
            Event::Connected => {
                self.at = At::Door;
                actions.push(Action::Login);
            }
            Event::Welcome(welcome) => self.welcome(now, welcome, actions),
            Event::Refused { code } => self.refused(code, actions),
            Event::Renewed { sent } => self.renewed(now, sent, actions),
            Event::Reasserted => self.reasserted(now, actions),
            Event::Closed => self.redial(Span::ZERO, Why::Closed, actions),
            Event::Abandon { fence } if self.fence() == Some(fence) => {
                self.lose(actions);
                if self.at != At::Door {
                    self.redial(Span::ZERO, Why::Abandoned, actions);
                }
            }
            Event::Leave => {
                self.lose(actions);
                let inside = matches!(self.at, At::Inside { .. });
                actions.push(if inside { Action::Bye } else { Action::End });
                self.over = true;
            }
            Event::Abandon { .. } | Event::Tick => {}
        }
        self.renew(now, actions);
    }

    /// Releases and loses when it is time.
    fn expire(&mut self, now: Mono, actions: &mut Vec<Action>) {
        let Some(held) = &mut self.held else { return };
        match held.lease.standing(now) {
            Standing::Held => {}
            Standing::Releasing if held.released => {}
            Standing::Releasing => {
                held.released = true;
                actions.push(Action::Release);
                self.silent(actions);
            }
            Standing::Lost => {
                self.lose(actions);
                self.silent(actions);
            }
        }
    }

    /// The connection answers nothing. A login that waits for its answer is given its own time.
    fn silent(&mut self, actions: &mut Vec<Action>) {
        if matches!(self.at, At::Inside { .. }) {
            self.redial(Span::ZERO, Why::Silent, actions);
        }
    }

    fn welcome(&mut self, now: Mono, welcome: Welcome, actions: &mut Vec<Action>) {
        if self.at != At::Door {
            return;
        }
        let Welcome { sent, fence, terms } = welcome;
        let lease = Lease::new(terms, sent);
        if let Some(why) = self.unfit(now, &welcome, &lease) {
            // By then an arbiter whose clock is a quarter slow has evicted what this login has renewed.
            let evicted = terms.eviction + Span(terms.eviction.0 / 4);
            let after = if why == Why::Kept { evicted } else { REFUSED_WAIT };
            return self.redial(after, why, actions);
        }
        self.newest = fence.epoch;
        self.at = At::Inside { renew: sent + terms.renew };
        let before = self.held.map(|held| (held.fence, held.reasserting));
        let until = lease.self_release_at();
        let mut held = Held { fence, terms, lease, released: false, reasserting: false };
        match before {
            Some((ours, false)) if ours == fence => {
                actions.extend([Action::Resume, Action::Extend { until }]);
            }
            // Which of them were answered before the connection broke is not known. Said twice they do no harm.
            Some((ours, _)) if ours == fence || ours.epoch < fence.epoch => {
                held.reasserting = true;
                actions.push(Action::Reopen { fence });
            }
            _ => {
                self.lose(actions);
                actions.push(Action::Open { fence, until });
            }
        }
        self.held = Some(held);
    }

    fn unfit(&self, now: Mono, welcome: &Welcome, lease: &Lease) -> Option<Why> {
        let Welcome { fence, terms, .. } = welcome;
        // How long a message may take, the arbiter has reckoned with; what is left must hold whatever that is.
        let bad: Option<BadTerms> = terms.check(Span::ZERO, Span::ZERO).err();
        if bad.is_some() {
            return Some(Why::Terms(BadTermsIn::Eviction));
        }
        if terms.renew == Span::ZERO || terms.renew.times(2) > terms.self_release {
            return Some(Why::Terms(BadTermsIn::Renew));
        }
        if fence.epoch < self.newest {
            return Some(Why::Outdated);
        }
        if self.dropped == Some(*fence) {
            return Some(Why::Kept);
        }
        (lease.standing(now) != Standing::Held).then_some(Why::Late)
    }

    fn refused(&mut self, code: i32, actions: &mut Vec<Action>) {
        if code == code::STALE_EPOCH.number {
            self.lose(actions);
            self.over = true;
            return actions.push(Action::Outlived);
        }
        if code == code::NOT_LOGGED_IN.number {
            self.lose(actions);
        }
        // A goodbye to who was inside is no refusal: an arbiter that restarts is to be found again within the lease.
        let after = if self.at == At::Door { REFUSED_WAIT } else { Span::ZERO };
        self.redial(after, Why::Refused(code), actions);
    }

    fn renewed(&mut self, now: Mono, sent: Mono, actions: &mut Vec<Action>) {
        let (Some(held), At::Inside { .. }) = (&mut self.held, self.at) else { return };
        let before = held.lease.self_release_at();
        held.lease.renewed(sent);
        let until = held.lease.self_release_at();
        if until > before && held.lease.standing(now) == Standing::Held {
            held.released = false;
            if !held.reasserting {
                actions.push(Action::Extend { until });
            }
        }
    }

    fn reasserted(&mut self, now: Mono, actions: &mut Vec<Action>) {
        let (Some(held), At::Inside { .. }) = (&mut self.held, self.at) else { return };
        let rested = std::mem::replace(&mut held.reasserting, false);
        if rested && held.lease.standing(now) == Standing::Held {
            actions.push(Action::Extend { until: held.lease.self_release_at() });
        }
    }

    fn renew(&mut self, now: Mono, actions: &mut Vec<Action>) {
        let (Some(held), At::Inside { renew }) = (&self.held, &mut self.at) else { return };
        if *renew <= now && !self.over {
            *renew = now + held.terms.renew;
            actions.push(Action::Renew);
        }
    }

    fn lose(&mut self, actions: &mut Vec<Action>) {
        if let Some(held) = self.held.take() {
            self.dropped = Some(held.fence);
            actions.push(Action::Lose);
        }
    }

    fn redial(&mut self, after: Span, why: Why, actions: &mut Vec<Action>) {
        if self.at != At::Away {
            self.at = At::Away;
            actions.push(Action::Redial { after, why });
        }
    }

    /// What it promises itself.
    pub fn check(&self) {
        let inside = matches!(self.at, At::Inside { .. });
        assert!(self.over || !inside || self.held.is_some(), "who is inside has a session");
        assert!(
            self.held.is_none_or(|held| self.dropped != Some(held.fence)),
            "what was dropped is not held"
        );
        assert!(self.held.is_none_or(|held| held.fence.epoch <= self.newest), "no earlier life is believed");
    }
}

#[cfg(test)]
mod tests;
