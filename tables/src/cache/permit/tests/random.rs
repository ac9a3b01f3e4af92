//! A record with an arbiter that is as simple as can be: whatever happens, each Reduce is answered once, nothing is answered
//! while it is dirty, and whoever waits is woken or told why not.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Want(bool),
    /// The oldest question is answered.
    Grant(bool),
    Deny,
    /// What is being read has come, or can't be had.
    Loaded(bool),
    Unpin,
    GiveUp,
    Dirty,
    Clean,
    /// The arbiter asks for what it has granted.
    Reduce(bool),
    Wait(u64),
    LetGo,
    /// The session is over.
    Lose,
    /// The arbiter restarts, and lets it hold what it held, or not.
    Restart(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any::<bool>().prop_map(Step::Want),
        6 => any::<bool>().prop_map(Step::Grant),
        1 => Just(Step::Deny),
        6 => prop::bool::weighted(0.9).prop_map(Step::Loaded),
        5 => Just(Step::Unpin),
        1 => Just(Step::GiveUp),
        3 => Just(Step::Dirty),
        3 => Just(Step::Clean),
        4 => any::<bool>().prop_map(Step::Reduce),
        2 => (0..150u64).prop_map(Step::Wait),
        2 => Just(Step::LetGo),
        1 => Just(Step::Lose),
        1 => any::<bool>().prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 0..100)
}

/// The arbiter's side, and the cell's.
#[derive(Debug, Default)]
struct Model {
    world: World,
    /// What the arbiter believes is held, and under which number.
    held: Mode,
    seq: u64,
    seqs: u64,
    requests: u64,
    asked: Vec<(u64, Mode)>,
    loading: Option<u64>,
    waiting: u32,
    woken: u32,
    /// What was asked to be reduced and is not answered.
    reducing: Option<(u64, Mode)>,
}

impl Model {
    fn step(&mut self, event: Event) -> Result<(), TestCaseError> {
        for action in self.world.step(event) {
            match action {
                Action::Ask { request, want, have } => {
                    prop_assert!(have == 0 || have == self.seq, "has {have}, and {} is granted", self.seq);
                    self.asked.push((request, want));
                }
                Action::Load { seq, .. } => self.loading = Some(seq),
                Action::Wake => self.woken += std::mem::take(&mut self.waiting),
                Action::Fail => self.waiting = 0,
                Action::Reduced { seq, to } => {
                    prop_assert!(!self.world.dirty, "reduced while something is not written");
                    prop_assert!(self.world.permit.usable() <= to, "used more than it was reduced to");
                    if let Some((asked, most)) = self.reducing.filter(|(asked, _)| *asked == seq) {
                        prop_assert!(to <= most, "{asked} was to be reduced to {most:?} and is {to:?}");
                        self.reducing = None;
                    }
                    if seq == self.seq {
                        self.held = self.held.min(to);
                    }
                }
                Action::Drop | Action::Flush | Action::LookAt { .. } | Action::Forget => {}
            }
        }
        let permit = &self.world.permit;
        prop_assert!(permit.held() <= self.held, "it believes {:?}, and has {:?}", permit.held(), self.held);
        prop_assert_eq!(permit.waiting, self.waiting);
        Ok(())
    }

    fn play(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Want(modify) => {
                self.requests += 1;
                self.waiting += 1;
                let mode = if modify { Mode::Modify } else { Mode::Share };
                // A cell that may be used as is wanted wakes at once.
                self.step(Event::Want { mode, request: self.requests })
            }
            Step::Grant(reload) => self.grant(reload),
            Step::Deny => {
                let Some((request, _)) = self.asked.pop() else { return Ok(()) };
                self.asked.clear();
                self.step(Event::Denied { request })
            }
            Step::Loaded(well) => {
                let Some(seq) = self.loading.take() else { return Ok(()) };
                self.step(if well { Event::Loaded { seq } } else { Event::NotLoaded { seq } })
            }
            Step::Unpin if self.woken > 0 => {
                self.woken -= 1;
                self.step(Event::Unpinned)
            }
            Step::GiveUp if self.waiting > 0 => {
                self.waiting -= 1;
                self.step(Event::GaveUp)
            }
            Step::Unpin | Step::GiveUp => Ok(()),
            Step::Dirty => {
                self.world.dirty |= self.world.permit.usable() == Mode::Modify;
                Ok(())
            }
            Step::Clean => {
                self.world.dirty = false;
                self.step(Event::Look)
            }
            Step::Reduce(invalid) => {
                let to = if invalid { Mode::Invalid } else { Mode::Share };
                if self.held <= to || self.reducing.is_some() {
                    return Ok(());
                }
                self.reducing = Some((self.seq, to));
                self.step(Event::Reduce { seq: self.seq, to })
            }
            Step::Wait(ms) => {
                self.world.now += Span::millis(ms);
                self.step(Event::Look)
            }
            Step::LetGo => self.step(Event::LetGo),
            Step::Lose => {
                self.world.dirty = false;
                (self.held, self.seq, self.reducing, self.loading) = (Mode::Invalid, 0, None, None);
                self.step(Event::Lost)?;
                self.step(Event::AskAgain)
            }
            Step::Restart(kept) => self.restart(kept),
        }
    }

    fn grant(&mut self, reload: bool) -> Result<(), TestCaseError> {
        let Some((request, want)) = self.asked.pop() else { return Ok(()) };
        self.asked.clear();
        let (before, current) = (self.held, self.seq);
        if want > before {
            self.seqs += 1;
            (self.held, self.seq) = (want, self.seqs);
            if let Some((asked, _)) = &mut self.reducing {
                // Whoever it was reduced for has given up; it is answered under the new number.
                *asked = self.seq;
            }
        }
        let fresh = before == Mode::Invalid || self.world.permit.seq() != current;
        let (mode, seq) = (self.held, self.seq);
        self.step(Event::Granted { request, mode, seq, must_reload: reload || fresh, version_min: 0 })
    }

    fn restart(&mut self, kept: bool) -> Result<(), TestCaseError> {
        let held = if self.world.dirty { Mode::Modify } else { self.world.permit.held() };
        self.seqs = 0;
        let keeps = held > Mode::Invalid && (kept || self.world.dirty);
        (self.held, self.reducing) = (if keeps { held } else { Mode::Invalid }, None);
        self.seqs += u64::from(keeps);
        self.seq = self.seqs;
        self.step(Event::Renumbered { seq: keeps.then_some(self.seq) })?;
        self.step(Event::AskAgain)
    }
}

proptest! {
    /// Holds: I5, I7, I10.
    #[test]
    fn each_reduce_is_answered_once_and_nobody_waits_for_ever(steps in steps()) {
        let mut model = Model::default();
        for step in steps {
            model.play(step)?;
        }
        // Everything that is under way comes, and whoever has a turn ends it.
        for _ in 0..8 {
            model.play(Step::Grant(true))?;
            model.play(Step::Loaded(true))?;
            model.play(Step::Clean)?;
            while model.woken > 0 {
                model.play(Step::Unpin)?;
            }
            model.play(Step::Wait(1_100))?;
        }
        prop_assert_eq!(model.waiting, 0, "{:?}", model);
        prop_assert_eq!(model.reducing, None);
        prop_assert!(!model.world.permit.is_busy(), "{:?}", model);
        prop_assert_eq!(model.world.permit.held(), model.held);
    }
}
