//! Random histories against a follower that believes what it is told.

use std::collections::BTreeMap;

use node::directory::Instance;
use node::directory::view::{self, View};
use proptest::prelude::*;

use super::*;

/// What a client believes, fed with what the core sends to one session.
fn feed(view: &mut View, message: &From) -> bool {
    let instances = |list: &[msg::Instance]| list.iter().cloned().filter_map(Instance::from_wire).collect();
    let event = match message.clone() {
        From::Snapshot(s) if s.code == 0 => view::Event::Snapshot {
            name: s.name,
            revision: s.revision,
            warming: s.warming,
            instances: instances(&s.instances),
            more: s.more,
        },
        From::Delta(d) => view::Event::Delta {
            name: d.name,
            previous: d.previous,
            revision: d.revision,
            added: instances(&d.added),
            removed: d.removed.into_iter().map(|key| (key.name, NodeId::new(&key.node).unwrap())).collect(),
        },
        From::Warm(_) => view::Event::Warm,
        _ => return false,
    };
    let mut actions = Vec::new();
    view.step(Mono::ZERO, event, &mut actions);
    view.check();
    actions.iter().any(|action| matches!(action, view::Action::Gap { .. }))
}

#[derive(Debug, Clone)]
enum Step {
    Open(u64),
    Hello { session: u64, node: u8, keep_epoch: bool },
    Register { session: u64, names: Vec<u8> },
    Beat(u64),
    Pong(u64),
    Close(u64),
    Bye(u64),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let session = 1..7u64;
    let step = prop_oneof![
        3 => session.clone().prop_map(Step::Open),
        4 => (session.clone(), 0..3u8, any::<bool>())
            .prop_map(|(session, node, keep_epoch)| Step::Hello { session, node, keep_epoch }),
        3 => (session.clone(), prop::collection::vec(0..4u8, 0..3))
            .prop_map(|(session, names)| Step::Register { session, names }),
        3 => session.clone().prop_map(Step::Beat),
        2 => session.clone().prop_map(Step::Pong),
        2 => session.clone().prop_map(Step::Close),
        1 => session.prop_map(Step::Bye),
        2 => (0..8_000u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..120)
}

/// Session numbers are never used again: `slots` maps the strategy's six to the newest of each.
struct World {
    core: Directory,
    now: Mono,
    slots: BTreeMap<u64, Generation>,
    next: u64,
    epochs: BTreeMap<(Generation, String), u64>,
    node_of: BTreeMap<Generation, String>,
    nonces: BTreeMap<Generation, u64>,
    watcher: View,
}

impl World {
    fn new(warming: Span) -> Self {
        let mut core = Directory::new(settings(warming), Mono::ZERO);
        let mut watcher = View::default();
        watcher.step(Mono::ZERO, view::Event::Follow { name: "/".to_owned() }, &mut Vec::new());
        let mut out = Vec::new();
        for event in ["s99 open", "s99 hello watcher hostW", "s99 follow /"] {
            core.step(Mono::ZERO, event_of(event), &mut out);
        }
        let mut world = Self {
            core,
            now: Mono::ZERO,
            slots: BTreeMap::new(),
            next: 100,
            epochs: BTreeMap::new(),
            node_of: BTreeMap::new(),
            nonces: BTreeMap::new(),
            watcher,
        };
        world.absorb(out);
        world
    }

    fn absorb(&mut self, actions: Vec<Action>) {
        for (session, message) in actions.iter().flat_map(Action::said) {
            match message {
                From::Welcome(welcome) => {
                    let node = self.node_of.get(&session).cloned().unwrap_or_default();
                    self.epochs.insert((session, node), welcome.epoch);
                }
                From::Ping(ping) => {
                    self.nonces.insert(session, ping.nonce);
                }
                _ if session == Generation(99) => {
                    assert!(!feed(&mut self.watcher, message), "a gap in the deltas")
                }
                _ => {}
            }
        }
    }

    fn step(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.core.step(self.now, event, &mut actions);
        self.core.check();
        self.absorb(actions);
    }

    fn say(&mut self, slot: u64, message: To) {
        if let Some(&session) = self.slots.get(&slot) {
            self.step(Event::Said { session, message });
        }
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Open(slot) => {
                if let Some(old) = self.slots.get(slot).copied() {
                    self.step(Event::Closed { session: old });
                }
                self.next += 1;
                self.slots.insert(*slot, Generation(self.next));
                self.step(Event::Opened { session: Generation(self.next), loopback: true });
            }
            Step::Hello { session, node, keep_epoch } => {
                let node = format!("node-{node}");
                if let Some(generation) = self.slots.get(session) {
                    self.node_of.insert(*generation, node.clone());
                }
                let known =
                    self.epochs.iter().filter(|((_, name), _)| *name == node).map(|(_, epoch)| *epoch).max();
                let epoch = if *keep_epoch { known.unwrap_or(0) } else { 0 };
                self.say(*session, hello(&node, &format!("host{session}"), epoch, 0));
            }
            Step::Register { session, names } => {
                let services = names.iter().map(|name| service(&format!("m/{name}"))).collect();
                self.say(*session, To::Register(msg::Register { seq: 1, services }));
            }
            Step::Beat(slot) => self.say(*slot, To::Heartbeat(msg::Heartbeat { seq: 1 })),
            Step::Pong(slot) => {
                let nonce = self.slots.get(slot).and_then(|session| self.nonces.get(session)).copied();
                self.say(*slot, To::Pong(msg::Pong { nonce: nonce.unwrap_or(0) }));
            }
            Step::Bye(slot) => self.say(*slot, To::Bye(msg::Bye {})),
            Step::Close(slot) => {
                if let Some(session) = self.slots.remove(slot) {
                    self.step(Event::Closed { session });
                }
            }
            Step::Wait(ms) => {
                let mut actions = Vec::new();
                pass(&mut self.core, &mut self.now, Span::millis(*ms), &mut actions);
                self.core.check();
                self.absorb(actions);
                let beat = Event::Said {
                    session: Generation(99),
                    message: To::Heartbeat(msg::Heartbeat { seq: 1 }),
                };
                self.step(beat);
            }
        }
    }
}

fn event_of(line: &str) -> Event {
    event(&line.split_whitespace().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever happens, whoever follows everything by deltas believes a tick later what the directory lists, nobody holds a
    /// node id beside another, and once all is silent nothing is listed.
    ///
    /// Holds: Z-22, Z-24.
    #[test]
    fn a_follower_always_believes_what_is_listed(steps in steps(), warming in prop_oneof![Just(0u64), Just(15)]) {
        let mut world = World::new(Span::secs(warming));
        for step in &steps {
            world.play(step);
            // What comes too fast is told with the next tick.
            world.step(Event::Tick);
            let nodes = node::directory::by_node(&world.watcher.services("/"));
            prop_assert_eq!(nodes, world.core.nodes());
        }
        for _ in 0..3 {
            world.play(&Step::Wait(7_999));
        }
        let left: Vec<String> = world.core.nodes().iter().map(|node| node.node.to_string()).collect();
        prop_assert_eq!(left, ["watcher"]);
    }

    /// Each start of a node gets a larger epoch than every start of it before, however close together.
    ///
    /// Holds: H-09.
    #[test]
    fn epochs_only_grow(starts in prop::collection::vec((0..3u8, any::<bool>(), 0..2u64), 1..40)) {
        let mut core = Directory::new(settings(Span::ZERO), Mono::ZERO);
        let mut last: BTreeMap<u8, u64> = BTreeMap::new();
        for (at, (node, says_bye, micros)) in starts.into_iter().enumerate() {
            let session = Generation(at as u64 + 1);
            let mut actions = Vec::new();
            let now = Mono(micros);
            core.step(now, Event::Opened { session, loopback: true }, &mut actions);
            core.step(now, Event::Said { session, message: hello(&format!("n{node}"), "h", 0, 0) }, &mut actions);
            let epoch = actions.iter().find_map(|action| match action {
                Action::Send { message: From::Welcome(welcome), .. } => Some(welcome.epoch),
                _ => None,
            });
            let epoch = epoch.expect("the holder is closed, so a start is admitted at once");
            prop_assert!(epoch > last.insert(node, epoch).unwrap_or(100));
            if says_bye {
                core.step(now, Event::Said { session, message: To::Bye(msg::Bye {}) }, &mut actions);
            }
            core.step(now, Event::Closed { session }, &mut actions);
            core.check();
        }
    }
}
