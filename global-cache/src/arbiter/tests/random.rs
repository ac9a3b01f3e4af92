//! Random histories: what providers believe never contradicts, whatever is lost, doubled or late.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Acquire {
        who: usize,
        key: u64,
        modify: bool,
    },
    /// Delivers the oldest word to this provider; `keep`: and leaves it there to come again.
    Hear {
        who: usize,
        keep: bool,
    },
    /// Loses it.
    Lose {
        who: usize,
    },
    Release {
        who: usize,
        key: u64,
    },
    /// A stale word about an earlier grant.
    Stale {
        who: usize,
        key: u64,
        back: u64,
    },
    Login {
        who: usize,
        later: bool,
    },
    Bye {
        who: usize,
    },
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0..3usize;
    let key = 0..2u64;
    let step = prop_oneof![
        6 => (who.clone(), key.clone(), any::<bool>()).prop_map(|(who, key, modify)| Step::Acquire { who, key, modify }),
        8 => (who.clone(), prop::bool::weighted(0.1)).prop_map(|(who, keep)| Step::Hear { who, keep }),
        1 => who.clone().prop_map(|who| Step::Lose { who }),
        2 => (who.clone(), key.clone()).prop_map(|(who, key)| Step::Release { who, key }),
        2 => (who.clone(), key, 1..4u64).prop_map(|(who, key, back)| Step::Stale { who, key, back }),
        1 => (who.clone(), any::<bool>()).prop_map(|(who, later)| Step::Login { who, later }),
        1 => who.prop_map(|who| Step::Bye { who }),
        2 => (0..4_000u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..120)
}

/// A provider as simple as can be: it believes each grant it hears and obeys each Reduce at once.
#[derive(Debug, Default)]
struct Provider {
    session: Option<SessionId>,
    epoch: u64,
    sent: Mono,
    believes: BTreeMap<u64, (Mode, Seq)>,
    inbox: Vec<Action>,
    requests: u64,
    open: BTreeMap<u64, Mono>,
}

struct World {
    arbiter: Arbiter,
    now: Mono,
    providers: Vec<Provider>,
    conns: u64,
}

impl World {
    fn new() -> Self {
        let settings = Settings { waiting_max: 8, sessions_max: 200, ..settings() };
        let (arbiter, providers) = (Arbiter::new(settings, Mono::ZERO), Vec::new());
        let mut world = Self { arbiter, now: Mono::ZERO, providers, conns: 0 };
        for who in 0..3 {
            world.providers.push(Provider { epoch: 1, ..Provider::default() });
            world.login(who);
        }
        world
    }

    fn login(&mut self, who: usize) {
        self.conns += 1;
        let node = NodeId::new(&format!("p{who}")).unwrap();
        let (conn, epoch) = (Generation(self.conns), Epoch(self.providers[who].epoch));
        self.step(Event::Login { conn, node, epoch, storages: Vec::new() });
    }

    fn step(&mut self, event: Event) {
        let mut actions = Vec::new();
        let login = match &event {
            Event::Login { node, .. } => node.as_str()[1..].parse::<usize>().ok(),
            _ => None,
        };
        self.arbiter.step(self.now, event, &mut actions);
        self.arbiter.check();
        for action in actions {
            let session = match &action {
                Action::Grant { session, .. }
                | Action::Deny { session, .. }
                | Action::Reduce { session, .. }
                | Action::Lost { session }
                | Action::Renewed { session }
                | Action::Reasserted { session, .. } => *session,
                Action::Welcome { session, fresh, .. } => {
                    let provider = &mut self.providers[login.unwrap()];
                    provider.sent = self.now;
                    if *fresh {
                        // What was believed before is void for who logs in anew.
                        let (epoch, requests) = (provider.epoch, provider.requests);
                        *provider = Provider { epoch, requests, sent: self.now, ..Provider::default() };
                    }
                    provider.session = Some(*session);
                    continue;
                }
                Action::Close { .. } => continue,
                Action::Refuse { .. } => panic!("{action:?}"),
            };
            if let Action::Deny { request, .. } | Action::Grant { request, .. } = &action
                && let Some(provider) = self.providers.iter_mut().find(|p| p.session == Some(session))
            {
                provider.open.remove(&request.0);
            }
            if let Some(provider) = self.providers.iter_mut().find(|p| p.session == Some(session)) {
                provider.inbox.push(action);
            }
        }
    }

    fn hear(&mut self, who: usize, action: Action) {
        let provider = &mut self.providers[who];
        match action {
            Action::Grant { session, grant, .. } if provider.session == Some(session) => {
                let known = provider.believes.entry(grant.key.0 as u64).or_insert((Mode::Invalid, Seq(0)));
                // A grant that is not newer than what it knows says nothing.
                if grant.seq > known.1 {
                    *known = (grant.mode, grant.seq);
                }
            }
            Action::Reduce { session, key, seq, to, .. } if provider.session == Some(session) => {
                let known = provider.believes.entry(key.0 as u64).or_insert((Mode::Invalid, Seq(0)));
                // One that it has not heard of yet counts as had and given up.
                if seq >= known.1 {
                    *known = (to.min(if seq == known.1 { known.0 } else { to }), seq);
                    self.step(Event::Reduced { session, key, seq, to, flushed: 0 });
                }
            }
            Action::Lost { session } if provider.session == Some(session) => {
                provider.session = None;
                provider.believes.clear();
            }
            _ => {}
        }
    }

    fn acquire(&mut self, who: usize, number: u64, modify: bool) {
        let provider = &mut self.providers[who];
        let Some(session) = provider.session else { return };
        provider.requests += 1;
        provider.open.insert(provider.requests, self.now);
        let want = if modify { Mode::Modify } else { Mode::Share };
        let have = provider.believes.get(&number).filter(|known| known.0 > Mode::Invalid).map(|k| k.1);
        let request = RequestId(provider.requests);
        self.step(Event::Acquire { session, ask: Ask { request, key: key(number), want, have } });
    }

    fn play(&mut self, step: &Step) {
        match *step {
            Step::Acquire { who, key, modify } => self.acquire(who, key, modify),
            Step::Hear { who, keep } => {
                let inbox = &mut self.providers[who].inbox;
                if inbox.is_empty() {
                    return;
                }
                let action = if keep { inbox[0].clone() } else { inbox.remove(0) };
                self.hear(who, action);
            }
            Step::Lose { who } => {
                let inbox = &mut self.providers[who].inbox;
                if !inbox.is_empty() {
                    inbox.remove(0);
                }
            }
            Step::Release { who, key: number } => {
                let provider = &mut self.providers[who];
                let (Some(session), Some(known)) = (provider.session, provider.believes.get_mut(&number))
                else {
                    return;
                };
                if known.0 > Mode::Invalid {
                    known.0 = Mode::Invalid;
                    let seq = known.1;
                    self.step(Event::Release { session, key: key(number), seq, flushed: 0 });
                }
            }
            Step::Stale { who, key: number, back } => {
                let provider = &self.providers[who];
                let (Some(session), Some(known)) = (provider.session, provider.believes.get(&number)) else {
                    return;
                };
                let seq = Seq(known.1.0.saturating_sub(back));
                self.step(Event::Release { session, key: key(number), seq, flushed: 0 });
                self.step(Event::Reduced { session, key: key(number), seq, to: Mode::Share, flushed: 0 });
            }
            Step::Login { who, later } => {
                self.providers[who].epoch += u64::from(later);
                self.login(who);
            }
            Step::Bye { who } => {
                if let Some(session) = self.providers[who].session.take() {
                    self.providers[who].believes.clear();
                    self.step(Event::Bye { session });
                    self.login(who);
                }
            }
            Step::Wait(ms) => {
                for _ in 0..ms.div_ceil(100) {
                    self.now += Span::millis(100);
                    for who in 0..3 {
                        if let Some(session) = self.providers[who].session {
                            self.step(Event::Renew { session });
                        }
                    }
                    self.step(Event::Tick);
                }
            }
        }
    }

    /// Whoever may change a record is alone with it.
    fn agree(&self) -> Result<(), TestCaseError> {
        for number in 0..2 {
            let holds = |provider: &&Provider| {
                provider.believes.get(&number).is_some_and(|known| known.0 > Mode::Invalid)
            };
            let holders: Vec<Mode> =
                self.providers.iter().filter(holds).map(|provider| provider.believes[&number].0).collect();
            let modify = holders.contains(&Mode::Modify);
            prop_assert!(!modify || holders.len() == 1, "record {number} is held as {holders:?}");
        }
        for provider in self.providers.iter().filter(|provider| provider.session.is_some()) {
            for (request, since) in &provider.open {
                let waited = self.now.since(*since);
                prop_assert!(waited <= ACQUIRE + Span::millis(100), "request {request} waits for {waited}");
            }
        }
        Ok(())
    }
}

proptest! {
    /// Holds: Z-48, Z-54, I1, I2, I5, I10, I12, A25, A30.
    #[test]
    fn providers_never_hold_what_excludes_each_other(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.play(step);
            world.agree()?;
        }
        // Everything comes to rest, and what nobody holds is forgotten.
        for who in 0..3 {
            world.play(&Step::Bye { who });
        }
        world.play(&Step::Wait(4_000));
        prop_assert_eq!(world.arbiter.status().keys, 0);
    }
}
