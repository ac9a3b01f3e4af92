//! Core: what a provider may do with one record, from the first question to the arbiter until it is let go.
//!
//! ```text
//!          want           granted          loaded
//! nothing ------> asked ----------> loading ------> held <---- pinned while who waited for it has its turn
//!    ^                                                |
//!    +----- reduced (when all is in the storage) <----+ asked to reduce
//! ```
//!
//! Who waits is counted and not named; the cell keeps them.

use base::{Mono, Span};

use crate::arbiter::Mode;

/// How long those who waited for a record keep it, at most, from the moment at which they have it.
pub const PIN: Span = Span::millis(100);
/// And how long it may take to load it before that.
pub const PIN_LOADING: Span = Span::secs(1);

/// What happens to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Somebody waits to use it like this. `request`: for the question, if there must be one.
    Want {
        mode: Mode,
        request: u64,
    },
    /// One of those who wait no longer does.
    GaveUp,
    Granted {
        request: u64,
        mode: Mode,
        seq: u64,
        must_reload: bool,
        version_min: u64,
    },
    Denied {
        request: u64,
    },
    /// What [`Action::Load`] asked for is in memory.
    Loaded {
        seq: u64,
    },
    /// It can't be had now.
    NotLoaded {
        seq: u64,
    },
    /// The arbiter asks for it.
    Reduce {
        seq: u64,
        to: Mode,
    },
    /// One of those who waited for it has had its turn.
    Unpinned,
    /// What was committed in it may have become durable, or time has passed.
    Look,
    /// After a restart of the arbiter: the new number of what is held; `None`: it is not held.
    Renumbered {
        seq: Option<u64>,
    },
    /// Whatever was asked and not answered is asked again.
    AskAgain,
    /// The session is over, and with it all that was held.
    Lost,
    /// It has not been used for long.
    LetGo,
}

/// What the cell knows beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub now: Mono,
    /// Something that was committed in it is not durable yet.
    pub dirty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Ask {
        request: u64,
        want: Mode,
        have: u64,
    },
    /// Read it from the storage, and not less than this version.
    Load {
        seq: u64,
        version_min: u64,
    },
    /// What is in memory is no longer true.
    Drop,
    /// Everybody who waits looks again.
    Wake,
    /// Everybody who waits hears why not.
    Fail,
    /// What was committed in it is to be durable soon.
    Flush,
    /// Look again then.
    LookAt {
        at: Mono,
    },
    /// Tell the arbiter.
    Reduced {
        seq: u64,
        to: Mode,
    },
    /// Nothing is held and nothing is waited for: it may leave memory.
    Forget,
}

/// What is being done about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Doing {
    #[default]
    Nothing,
    Asked {
        request: u64,
        want: Mode,
    },
    Loading,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Permit {
    mode: Mode,
    /// What is in memory is what the grant says.
    loaded: bool,
    doing: Doing,
    /// The arbiter asks for it, and it has not been told yet.
    reduce: Option<Mode>,
    /// Of the grant; 0: none.
    seq: u64,
    version_min: u64,
    /// The most that somebody who waits wants.
    want: Mode,
    waiting: u32,
    pins: u32,
    pinned_until: Mono,
}

impl Permit {
    /// A record that only this provider has: it may always be used.
    pub fn own() -> Self {
        Self { mode: Mode::Modify, loaded: true, ..Self::default() }
    }

    /// What may be done with what is in memory.
    pub fn usable(&self) -> Mode {
        if self.loaded { self.mode } else { Mode::Invalid }
    }

    /// What the arbiter has granted.
    pub fn held(&self) -> Mode {
        self.mode
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Somebody waits for it or has yet to have a turn, or something is being done.
    pub fn is_busy(&self) -> bool {
        self.doing != Doing::Nothing || self.reduce.is_some() || self.waiting > 0 || self.pins > 0
    }

    /// What is read under this grant is waited for.
    pub fn is_loading(&self, seq: u64) -> bool {
        self.doing == Doing::Loading && self.is_of(seq)
    }

    /// What is said is about the present grant.
    fn is_of(&self, seq: u64) -> bool {
        seq == self.seq || base::planted::is("cache_ignores_seq")
    }

    /// The question that has no answer yet.
    pub fn asked(&self) -> Option<u64> {
        match self.doing {
            Doing::Asked { request, .. } => Some(request),
            _ => None,
        }
    }

    pub fn step(&mut self, facts: Facts, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Want { mode, request } => self.want(mode, request, actions),
            Event::GaveUp => {
                self.waiting = self.waiting.saturating_sub(1);
                if self.waiting == 0 {
                    self.want = Mode::Invalid;
                }
            }
            Event::Granted { request, mode, seq, must_reload, version_min } => {
                self.granted(facts, request, (mode, seq, must_reload, version_min), actions);
            }
            Event::Denied { request } => {
                if self.asked() == Some(request) {
                    self.doing = Doing::Nothing;
                    self.nobody_waits();
                    actions.push(Action::Fail);
                }
            }
            Event::Loaded { seq } => self.loaded(facts, seq, actions),
            Event::NotLoaded { seq } => {
                if self.is_loading(seq) {
                    self.doing = Doing::Nothing;
                    self.nobody_waits();
                    actions.push(Action::Fail);
                    self.try_reduce(facts, actions);
                }
            }
            Event::Reduce { seq, to } => self.asked_to_reduce(facts, seq, to, actions),
            Event::Unpinned => {
                self.pins = self.pins.saturating_sub(1);
                self.try_reduce(facts, actions);
            }
            Event::Look => self.try_reduce(facts, actions),
            Event::Renumbered { seq: Some(seq) } => {
                self.seq = seq;
                if self.doing == Doing::Loading {
                    // The answer to the load that is under way is about a number that is no more.
                    self.load(actions);
                }
            }
            Event::Renumbered { seq: None } => {
                self.release(actions);
                // The next number is of another life of the arbiter, which begins to count anew.
                (self.seq, self.version_min, self.reduce) = (0, 0, None);
                self.ask_for_who_waits(actions);
            }
            Event::AskAgain => {
                if let Doing::Asked { request, want } = self.doing {
                    actions.push(Action::Ask { request, want, have: self.have() });
                }
            }
            Event::Lost => self.lost(actions),
            Event::LetGo => self.let_go(facts, actions),
        }
        self.check();
    }

    fn want(&mut self, mode: Mode, request: u64, actions: &mut Vec<Action>) {
        if self.usable() >= mode && self.reduce.is_none() {
            // It came in between.
            self.waiting += 1;
            return self.wake(actions);
        }
        self.waiting += 1;
        self.want = self.want.max(mode);
        match self.doing {
            Doing::Nothing if self.reduce.is_some() => {}
            Doing::Nothing if self.mode >= mode => self.load(actions),
            Doing::Nothing => {
                self.doing = Doing::Asked { request, want: mode };
                actions.push(Action::Ask { request, want: mode, have: self.have() });
            }
            // What is under way may be enough; if not, it is asked again.
            Doing::Asked { .. } | Doing::Loading => {}
        }
    }

    fn have(&self) -> u64 {
        if self.loaded { self.seq } else { 0 }
    }

    fn load(&mut self, actions: &mut Vec<Action>) {
        self.doing = Doing::Loading;
        actions.push(Action::Load { seq: self.seq, version_min: self.version_min });
    }

    fn granted(
        &mut self,
        facts: Facts,
        request: u64,
        (mode, seq, must_reload, version_min): (Mode, u64, bool, u64),
        actions: &mut Vec<Action>,
    ) {
        // Said twice, or about a grant that was let go since.
        if self.asked() != Some(request) || seq < self.seq {
            return;
        }
        (self.mode, self.seq, self.version_min) = (mode, seq, version_min);
        self.doing = Doing::Nothing;
        let stale = must_reload && !base::planted::is("cache_keeps_stale_copies");
        if stale || !self.loaded {
            if std::mem::take(&mut self.loaded) {
                actions.push(Action::Drop);
            }
            self.pin_for(facts.now, PIN_LOADING);
            self.load(actions);
        } else {
            self.wake_pinned(facts, actions);
        }
    }

    fn loaded(&mut self, facts: Facts, seq: u64, actions: &mut Vec<Action>) {
        if !self.is_loading(seq) {
            return;
        }
        self.doing = Doing::Nothing;
        self.loaded = true;
        self.wake_pinned(facts, actions);
        self.try_reduce(facts, actions);
    }

    /// Who waited has a turn before it is reduced again.
    fn wake_pinned(&mut self, facts: Facts, actions: &mut Vec<Action>) {
        self.pin_for(facts.now, PIN);
        self.wake(actions);
    }

    fn pin_for(&mut self, now: Mono, span: Span) {
        self.pinned_until = now + span;
    }

    fn wake(&mut self, actions: &mut Vec<Action>) {
        self.pins += self.waiting;
        self.nobody_waits();
        actions.push(Action::Wake);
    }

    fn nobody_waits(&mut self) {
        self.waiting = 0;
        self.want = Mode::Invalid;
    }

    fn asked_to_reduce(&mut self, facts: Facts, seq: u64, to: Mode, actions: &mut Vec<Action>) {
        if seq < self.seq {
            // About a grant that was let go, or that a later one has replaced.
            return;
        }
        if self.mode <= to && self.reduce.is_none() {
            // It was said already, and lost on its way; or the grant was, and nothing was ever done under it.
            actions.push(Action::Reduced { seq, to: self.mode });
            return;
        }
        self.seq = seq;
        self.reduce = Some(self.reduce.map_or(to, |before| before.min(to)));
        self.try_reduce(facts, actions);
    }

    /// Reduces if it is asked for and nobody has a turn: no more is committed from then on, and the arbiter hears of it when
    /// what was committed is durable.
    fn try_reduce(&mut self, facts: Facts, actions: &mut Vec<Action>) {
        let Some(to) = self.reduce else { return };
        if self.mode > to {
            let turn = self.pins > 0 || (self.doing == Doing::Loading && self.waiting > 0);
            if turn && facts.now < self.pinned_until {
                actions.push(Action::LookAt { at: self.pinned_until });
                return;
            }
            self.mode = to;
            if self.doing == Doing::Loading && to == Mode::Invalid {
                self.doing = Doing::Nothing;
            }
        }
        if facts.dirty && !base::planted::is("cache_reduces_before_the_flush") {
            actions.push(Action::Flush);
            return;
        }
        self.reduce = None;
        if to == Mode::Invalid {
            self.release(actions);
        }
        actions.push(Action::Reduced { seq: self.seq, to });
        self.ask_for_who_waits(actions);
    }

    /// Those who wait were not served by what was just done.
    fn ask_for_who_waits(&mut self, actions: &mut Vec<Action>) {
        if self.waiting > 0 && self.doing == Doing::Nothing {
            // They look, and ask for themselves.
            self.wake(actions);
        }
    }

    fn release(&mut self, actions: &mut Vec<Action>) {
        self.mode = Mode::Invalid;
        if self.doing == Doing::Loading {
            self.doing = Doing::Nothing;
        }
        if std::mem::take(&mut self.loaded) {
            actions.push(Action::Drop);
        }
    }

    fn lost(&mut self, actions: &mut Vec<Action>) {
        let asked = self.doing;
        self.release(actions);
        (self.seq, self.version_min, self.reduce) = (0, 0, None);
        if let Doing::Asked { .. } = asked {
            // It is asked again in the next session.
            self.doing = asked;
        } else {
            self.ask_for_who_waits(actions);
        }
    }

    fn let_go(&mut self, facts: Facts, actions: &mut Vec<Action>) {
        if self.is_busy() || facts.dirty {
            return;
        }
        let (held, seq) = (self.mode, self.seq);
        self.release(actions);
        if held > Mode::Invalid {
            actions.push(Action::Reduced { seq, to: Mode::Invalid });
        }
        actions.push(Action::Forget);
    }

    fn check(&self) {
        debug_assert!(self.mode > Mode::Invalid || !matches!(self.doing, Doing::Loading));
        debug_assert!(self.waiting > 0 || self.want == Mode::Invalid);
        debug_assert!(!matches!(self.doing, Doing::Asked { want: Mode::Invalid, .. }));
    }
}

#[cfg(test)]
mod tests;
