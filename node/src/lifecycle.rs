//! Core: the order of a stop. Running, Draining, Closed; each stage has a budget and a fall-back, requests are counted
//! in the same step as the state is looked at, and the final save happens exactly once.
//!
//! | stage | does | at its budget |
//! |---|---|---|
//! | Propagate | readiness is off, everything is still served | ends: that is its purpose |
//! | Close | listeners close; new requests are refused from here on | goes on without waiting |
//! | Drain | requests in flight end | forced: what is left is cut off |
//! | Save | what must outlive the process is saved | reported as failed |
//!
//! A second signal skips what is left of the waits and still saves.

use base::{Mono, Span};

/// How long each stage may take, and the outer limit they must fit in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    pub propagation: Span,
    pub close: Span,
    pub drain: Span,
    pub save: Span,
    /// After this long whoever stops the process kills it.
    pub grace: Span,
}

/// Budgets that don't fit. The operator's to mend: the process does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "stop budgets don't fit: propagation {} + close {} + drain {} + save {} = {sum}, which must be less than grace {}; \
     shorten node.stop or raise node.grace together with the outer limit",
    budgets.propagation, budgets.close, budgets.drain, budgets.save, budgets.grace
)]
pub struct BadBudgets {
    pub budgets: Budgets,
    pub sum: Span,
}

impl Budgets {
    /// Nothing waits: for tests and for processes without anything to drain.
    pub const NONE: Self = Self {
        propagation: Span::ZERO,
        close: Span::secs(1),
        drain: Span::ZERO,
        save: Span::secs(1),
        grace: Span::secs(3),
    };

    pub fn check(&self) -> Result<(), BadBudgets> {
        let sum = self.propagation + self.close + self.drain + self.save;
        if sum < self.grace { Ok(()) } else { Err(BadBudgets { budgets: *self, sum }) }
    }
}

/// What a request meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Requests are taken, also while readiness is already off.
    Running,
    /// New requests are refused, old ones end.
    Draining,
    /// Everything is over.
    Closed,
}

/// The stages of a stop, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Propagate,
    Close,
    Drain,
    Save,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Begin to stop. Again: nothing.
    Stop,
    /// Skip the waits; begins to stop if nobody has.
    Hurry,
    /// A hook has returned. Only [`Stage::Close`] and [`Stage::Save`] have hooks.
    Done { stage: Stage, error: Option<String> },
    /// Time has passed.
    Tick,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Probes say "not ready" from now on.
    ReadinessOff,
    /// Run the hook that closes listeners, then report [`Event::Done`].
    CloseListeners,
    /// Run the hook that saves, then report [`Event::Done`]. Comes exactly once.
    Save,
    /// For the log.
    Started { stage: Stage, budget: Span },
    /// For the log.
    Ended { stage: Stage, took: Span, how: How },
    /// The process may end.
    Exit(Outcome),
}

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Done,
    /// Its budget ran out.
    TimedOut,
    /// A second signal.
    Skipped,
    Failed,
}

/// How the stop ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Requests that were still in flight when the save began.
    pub cut_off: u64,
    /// The save failed or ran out of time.
    pub save_error: Option<String>,
}

/// Numbers that can be read at any time. `started = finished + in_flight`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    pub state: State,
    /// False from the first stop on.
    pub ready: bool,
    pub started: u64,
    pub finished: u64,
    pub in_flight: u64,
    /// Refused because the node was stopping.
    pub rejected: u64,
    /// The drain was cut off with requests in flight.
    pub forced: bool,
}

/// The core.
#[derive(Debug)]
pub struct Lifecycle {
    budgets: Budgets,
    stage: Option<(Stage, Mono)>,
    closed: bool,
    hurry: bool,
    started: u64,
    finished: u64,
    rejected: u64,
    forced: bool,
    outcome: Outcome,
}

impl Lifecycle {
    /// Refuses budgets that don't fit in the grace.
    pub fn new(budgets: Budgets) -> Result<Self, BadBudgets> {
        budgets.check()?;
        let outcome = Outcome::default();
        let (started, finished, rejected) = (0, 0, 0);
        Ok(Self {
            budgets,
            stage: None,
            closed: false,
            hurry: false,
            started,
            finished,
            rejected,
            forced: false,
            outcome,
        })
    }

    /// Counts a request in if it may run; false and counted as rejected when the node is stopping. One step: nobody can
    /// see zero in flight between the look and the count.
    #[must_use]
    pub fn begin(&mut self) -> bool {
        if self.state() != State::Running && !base::planted::is("lifecycle_counts_while_draining") {
            self.rejected += 1;
            return false;
        }
        self.started += 1;
        true
    }

    /// A request that was counted in has ended, whatever became of it.
    pub fn end(&mut self, now: Mono, actions: &mut Vec<Action>) {
        assert!(self.finished < self.started, "a request ended that never began");
        self.finished += 1;
        self.advance(now, actions);
    }

    pub fn step(&mut self, now: Mono, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Stop => self.stop(now, actions),
            Event::Hurry => {
                self.hurry = true;
                self.stop(now, actions);
                self.advance(now, actions);
            }
            Event::Done { stage, error } => {
                // A hook that returns after its budget changes nothing.
                if self.stage.is_some_and(|(current, _)| current == stage) {
                    let how = if error.is_some() { How::Failed } else { How::Done };
                    if stage == Stage::Save {
                        self.outcome.save_error = error;
                    }
                    self.leave(now, how, actions);
                    self.advance(now, actions);
                }
            }
            Event::Tick => self.advance(now, actions),
        }
    }

    pub fn state(&self) -> State {
        match self.stage {
            _ if self.closed => State::Closed,
            None | Some((Stage::Propagate, _)) => State::Running,
            Some(_) => State::Draining,
        }
    }

    pub fn statistics(&self) -> Statistics {
        Statistics {
            state: self.state(),
            ready: self.stage.is_none() && !self.closed,
            started: self.started,
            finished: self.finished,
            in_flight: self.in_flight(),
            rejected: self.rejected,
            forced: self.forced,
        }
    }

    /// When [`Event::Tick`] is due next; `None` while nothing waits for time.
    pub fn due(&self) -> Option<Mono> {
        self.stage.map(|(stage, since)| since + self.budget(stage))
    }

    fn in_flight(&self) -> u64 {
        self.started - self.finished
    }

    fn budget(&self, stage: Stage) -> Span {
        match stage {
            Stage::Propagate => self.budgets.propagation,
            Stage::Close => self.budgets.close,
            Stage::Drain => self.budgets.drain,
            Stage::Save => self.budgets.save,
        }
    }

    fn stop(&mut self, now: Mono, actions: &mut Vec<Action>) {
        if self.stage.is_none() && !self.closed {
            actions.push(Action::ReadinessOff);
            self.enter(now, Stage::Propagate, actions);
            self.advance(now, actions);
        }
    }

    /// Leaves stages for as long as something lets them be left.
    fn advance(&mut self, now: Mono, actions: &mut Vec<Action>) {
        while let Some((stage, since)) = self.stage {
            let late = now.since(since) >= self.budget(stage);
            let how = match stage {
                Stage::Propagate if late => How::Done,
                Stage::Drain if self.in_flight() == 0 => How::Done,
                // Save is never skipped: it is what the waits are for.
                Stage::Propagate | Stage::Close | Stage::Drain if self.hurry => How::Skipped,
                Stage::Close | Stage::Drain | Stage::Save if late => How::TimedOut,
                _ => return,
            };
            if stage == Stage::Drain {
                self.outcome.cut_off = self.in_flight();
                self.forced = self.in_flight() > 0;
            }
            if stage == Stage::Save {
                self.outcome.save_error = Some(format!("not finished within {}", self.budgets.save));
            }
            self.leave(now, how, actions);
        }
    }

    fn leave(&mut self, now: Mono, how: How, actions: &mut Vec<Action>) {
        let Some((stage, since)) = self.stage.take() else { return };
        actions.push(Action::Ended { stage, took: now.since(since), how });
        match stage {
            Stage::Propagate => self.enter(now, Stage::Close, actions),
            Stage::Close => self.enter(now, Stage::Drain, actions),
            Stage::Drain if self.hurry && base::planted::is("lifecycle_hurry_skips_save") => {
                self.closed = true;
                actions.push(Action::Exit(self.outcome.clone()));
            }
            Stage::Drain => self.enter(now, Stage::Save, actions),
            Stage::Save => {
                self.closed = true;
                actions.push(Action::Exit(self.outcome.clone()));
            }
        }
    }

    fn enter(&mut self, now: Mono, stage: Stage, actions: &mut Vec<Action>) {
        self.stage = Some((stage, now));
        actions.push(Action::Started { stage, budget: self.budget(stage) });
        match stage {
            Stage::Close => actions.push(Action::CloseListeners),
            Stage::Save => actions.push(Action::Save),
            Stage::Propagate | Stage::Drain => {}
        }
    }

    /// Asserts what always holds.
    pub fn check(&self) {
        assert!(self.finished <= self.started, "more requests ended than began");
        assert!(!(self.closed && self.stage.is_some()), "closed and in a stage");
        let drained = self.closed || self.stage.is_some_and(|(stage, _)| stage == Stage::Save);
        assert!(!drained || self.forced || self.in_flight() == 0, "saving with requests in flight, unforced");
    }
}

#[cfg(test)]
mod tests;
