//! Every order in which a small world of the arbiter and its providers can come to pass: two providers, records, and a
//! crash. The arbiter's core and the core of each record in a cache are those of production; the storage is a number.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use base::{Epoch, Fence, Generation, Mono, NodeId, RequestId, Span};
use global_cache::arbiter::{self, Arbiter, Ask, Event, Key, Seq, SessionId, Settings};
use stateright::{Checker, Model, Property};
use tables::Mode;
use tables::cache::permit::{self, Facts, Permit};

#[derive(Debug, Clone, Copy)]
struct World {
    providers: usize,
    keys: usize,
    /// Questions that each provider asks for each record.
    wants: u8,
    crashes: u8,
}

/// One record of one provider.
#[derive(Debug, Clone, Default)]
struct Cell {
    permit: Permit,
    /// The version in memory.
    version: u64,
    dirty: bool,
    /// A read is on its way: under this grant, and not less than this version.
    loading: Option<(u64, u64)>,
    /// Whoever waits is to change it.
    modify: bool,
    woken: u32,
    wants: u8,
}

#[derive(Debug, Clone)]
struct Provider {
    epoch: u64,
    session: Option<SessionId>,
    fence: Fence,
    cells: Vec<Cell>,
    up: VecDeque<Event>,
    down: VecDeque<arbiter::Action>,
}

#[derive(Debug, Clone)]
struct State {
    /// What the arbiter was told: it is built again for each step.
    told: Vec<Event>,
    image: String,
    providers: Vec<Provider>,
    /// The version of each record in the storage, and the last that was committed and not lost.
    stored: Vec<u64>,
    latest: Vec<u64>,
    /// Below which fence each provider does not write.
    fences: Vec<Fence>,
    /// What a crashed provider has on its way to the storage.
    late: Vec<(usize, usize, u64, Fence)>,
    crashes: u8,
    requests: u64,
    broken: Option<String>,
}

impl State {
    fn print(&self) -> String {
        let Self { image, providers, stored, latest, fences, late, crashes, broken, .. } = self;
        format!("{image} {providers:?} {stored:?} {latest:?} {fences:?} {late:?} {crashes} {broken:?}")
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.print().hash(state);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.print() == other.print()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Want {
        who: usize,
        key: usize,
        modify: bool,
    },
    /// The oldest word reaches the arbiter, or the provider.
    Up(usize),
    Down(usize),
    Load {
        who: usize,
        key: usize,
    },
    /// Whoever waited uses the record, and changes it if he may.
    Use {
        who: usize,
        key: usize,
    },
    Flush {
        who: usize,
        key: usize,
    },
    /// It crashes, and starts again.
    Crash(usize),
    Late(usize),
}

fn node(who: usize) -> NodeId {
    NodeId::new(&format!("p{who}")).expect("a short name")
}

fn who(node: &NodeId) -> usize {
    node.as_str()[1..].parse().expect("a name that node() has made")
}

impl State {
    fn arbiter(&mut self, event: Event) {
        let settings = Settings { grace: Span::ZERO, ..Settings::new(Epoch(1)) };
        let mut core = Arbiter::new(settings, Mono::ZERO);
        for before in &self.told {
            core.step(Mono::ZERO, before.clone(), &mut Vec::new());
        }
        let mut actions = Vec::new();
        core.step(Mono::ZERO, event.clone(), &mut actions);
        core.check();
        self.told.push(event);
        self.image = core.image();
        for action in actions {
            let to = match &action {
                arbiter::Action::Welcome { conn, session, fence, .. } => {
                    let provider = &mut self.providers[conn.0 as usize % 10];
                    (provider.session, provider.fence) = (Some(*session), *fence);
                    continue;
                }
                arbiter::Action::Grant { session, .. }
                | arbiter::Action::Reduce { session, .. }
                | arbiter::Action::Deny { session, .. } => *session,
                _ => continue,
            };
            let to = self.providers.iter_mut().find(|provider| provider.session == Some(to));
            to.into_iter().for_each(|provider| provider.down.push_back(action.clone()));
        }
    }

    fn login(&mut self, who: usize) {
        let epoch = self.providers[who].epoch;
        let conn = Generation(epoch * 10 + who as u64);
        self.arbiter(Event::Login { conn, node: node(who), epoch: Epoch(epoch), storages: Vec::new() });
    }

    fn permit(&mut self, who: usize, key: usize, event: permit::Event) {
        let Some(session) = self.providers[who].session else { return };
        let provider = &mut self.providers[who];
        let cell = &mut provider.cells[key];
        let mut actions = Vec::new();
        cell.permit.step(Facts { now: Mono::ZERO, dirty: cell.dirty }, event, &mut actions);
        for action in actions {
            match action {
                permit::Action::Ask { request, want, have } => {
                    let want =
                        if want == Mode::Modify { arbiter::Mode::Modify } else { arbiter::Mode::Share };
                    let have = Some(have).filter(|seq| *seq > 0).map(Seq);
                    let ask = Ask { request: RequestId(request), key: Key(key as u128), want, have };
                    provider.up.push_back(Event::Acquire { session, ask });
                }
                permit::Action::Load { seq, version_min } => cell.loading = Some((seq, version_min)),
                permit::Action::Reduced { seq, to } => {
                    if cell.dirty {
                        self.broken = Some(format!("I7: p{who} gives {key} up and has not written it"));
                    }
                    let less = to == Mode::Share;
                    let to = if less { arbiter::Mode::Share } else { arbiter::Mode::Invalid };
                    let (key, seq, flushed) = (Key(key as u128), Seq(seq), cell.version);
                    provider.up.push_back(Event::Reduced { session, key, seq, to, flushed });
                }
                permit::Action::Wake => cell.woken = 1,
                _ => {}
            }
        }
    }

    fn down(&mut self, to: usize) {
        match self.providers[to].down.pop_front() {
            Some(arbiter::Action::Grant { request, grant, .. }) => {
                for evicted in &grant.evicted {
                    if let Some(node) = &evicted.node {
                        let fence = &mut self.fences[who(node)];
                        *fence = (*fence).max(evicted.below);
                    }
                }
                let mode = if grant.mode == arbiter::Mode::Modify { Mode::Modify } else { Mode::Share };
                let event = permit::Event::Granted {
                    request: request.0,
                    mode,
                    seq: grant.seq.0,
                    must_reload: grant.must_reload,
                    version_min: grant.version_min,
                };
                self.permit(to, grant.key.0 as usize, event);
            }
            Some(arbiter::Action::Reduce { key, seq, to: mode, .. }) => {
                let mode = if mode == arbiter::Mode::Share { Mode::Share } else { Mode::Invalid };
                self.permit(to, key.0 as usize, permit::Event::Reduce { seq: seq.0, to: mode });
            }
            _ => {}
        }
    }

    fn load(&mut self, who: usize, key: usize) {
        let stored = self.stored[key];
        let cell = &mut self.providers[who].cells[key];
        let Some((seq, least)) = cell.loading.take() else { return };
        if cell.permit.is_loading(seq) {
            cell.version = stored;
            if stored < least {
                self.broken = Some(format!("I8: p{who} reads {stored} of {key}, which was at {least}"));
            }
        }
        self.permit(who, key, permit::Event::Loaded { seq });
    }

    fn used(&mut self, who: usize, key: usize) {
        let latest = self.latest[key];
        let cell = &mut self.providers[who].cells[key];
        cell.woken = 0;
        if cell.permit.usable() > Mode::Invalid && cell.version != latest {
            self.broken = Some(format!("p{who} uses {} of {key}, which is at {latest}", cell.version));
        }
        if cell.modify && cell.permit.usable() == Mode::Modify {
            cell.version += 1;
            cell.dirty = true;
            self.latest[key] = cell.version;
        }
        self.permit(who, key, permit::Event::Unpinned);
    }

    fn write(&mut self, who: usize, key: usize, version: u64, fence: Fence) {
        if !self.fences[who].admits(fence) {
            return;
        }
        if self.latest[key] != version && self.latest[key] != self.stored[key] {
            self.broken = Some(format!("I9: p{who} writes {version} of {key} late"));
        }
        self.stored[key] = version;
        self.latest[key] = self.latest[key].max(version);
    }

    fn crash(&mut self, who: usize) {
        self.crashes -= 1;
        let provider = &mut self.providers[who];
        for (key, cell) in provider.cells.iter_mut().enumerate() {
            if cell.dirty {
                self.late.push((who, key, cell.version, provider.fence));
                self.latest[key] = self.stored[key];
            }
            *cell = Cell { wants: cell.wants, ..Cell::default() };
        }
        provider.epoch += 1;
        provider.up.clear();
        provider.down.clear();
        self.login(who);
    }
}

impl Model for World {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let cell = Cell { wants: self.wants, ..Cell::default() };
        let provider = Provider {
            epoch: 1,
            session: None,
            fence: Fence::default(),
            cells: vec![cell; self.keys],
            up: VecDeque::new(),
            down: VecDeque::new(),
        };
        let mut state = State {
            told: Vec::new(),
            image: String::new(),
            providers: vec![provider; self.providers],
            stored: vec![1; self.keys],
            latest: vec![1; self.keys],
            fences: vec![Fence::default(); self.providers],
            late: Vec::new(),
            crashes: self.crashes,
            requests: 0,
            broken: None,
        };
        (0..self.providers).for_each(|who| state.login(who));
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (who, provider) in state.providers.iter().enumerate() {
            if !provider.up.is_empty() {
                steps.push(Step::Up(who));
            }
            if !provider.down.is_empty() {
                steps.push(Step::Down(who));
            }
            if state.crashes > 0 {
                steps.push(Step::Crash(who));
            }
            for (key, cell) in provider.cells.iter().enumerate() {
                if cell.wants > 0 && !cell.permit.is_busy() && cell.woken == 0 {
                    steps.extend([false, true].map(|modify| Step::Want { who, key, modify }));
                }
                if cell.loading.is_some() {
                    steps.push(Step::Load { who, key });
                }
                if cell.woken > 0 {
                    steps.push(Step::Use { who, key });
                }
                if cell.dirty {
                    steps.push(Step::Flush { who, key });
                }
            }
        }
        steps.extend((0..state.late.len()).map(Step::Late));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Want { who, key, modify } => {
                state.requests += 1;
                let request = state.requests;
                let cell = &mut state.providers[who].cells[key];
                (cell.wants, cell.modify) = (cell.wants - 1, modify);
                let mode = if modify { Mode::Modify } else { Mode::Share };
                state.permit(who, key, permit::Event::Want { mode, request });
            }
            Step::Up(who) => {
                let event = state.providers[who].up.pop_front()?;
                state.arbiter(event);
            }
            Step::Down(who) => state.down(who),
            Step::Load { who, key } => state.load(who, key),
            Step::Use { who, key } => state.used(who, key),
            Step::Flush { who, key } => {
                let provider = &mut state.providers[who];
                let fence = provider.fence;
                let cell = &mut provider.cells[key];
                cell.dirty = false;
                let version = cell.version;
                state.write(who, key, version, fence);
                state.permit(who, key, permit::Event::Look);
            }
            Step::Crash(who) => state.crash(who),
            Step::Late(at) => {
                let (who, key, version, fence) = state.late.remove(at);
                state.write(who, key, version, fence);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I1, I2: who may change a record is alone with it", |_, state: &State| {
                (0..state.stored.len()).all(|key| {
                    let held: Vec<Mode> =
                        state.providers.iter().map(|one| one.cells[key].permit.held()).collect();
                    let holders = held.iter().filter(|held| **held > Mode::Invalid).count();
                    !held.contains(&Mode::Modify) || holders == 1
                })
            }),
            Property::always("I7, I8, I9, and nobody uses what is old", |_, state: &State| {
                state.broken.is_none()
            }),
            Property::sometimes("a change is handed over", |_, state: &State| {
                state.stored.iter().any(|version| *version >= 3)
            }),
        ]
    }
}

fn explore(world: World, at_least: usize) {
    let checker = world.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.unique_state_count() >= at_least, "only {} states", checker.unique_state_count());
}

/// Holds: I1, I2, I5, I7, I8, I9.
#[test]
fn every_order_of_two_providers_and_a_crash_keeps_a_record_whole() {
    explore(World { providers: 2, keys: 1, wants: 2, crashes: 1 }, 30_000);
}

/// Holds: I1, I2, I5, I7, I8.
#[test]
fn every_order_of_three_providers_keeps_a_record_whole() {
    explore(World { providers: 3, keys: 1, wants: 1, crashes: 0 }, 10_000);
}
