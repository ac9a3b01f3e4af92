//! The directory's process: the `Directory` core between its sessions, and as `service_manager::server` does, nothing that
//! it says leaves before what it must remember is on the disk. What comes in meanwhile waits.

mod show;

use std::collections::{BTreeMap, VecDeque};

use base::generation::{Generation, Generations};
use base::{Mono, NodeId, Span};
use service_manager::directory::{Action, Cause, Directory, Event, Limits, Save, Settings};
use wire::directory::to_directory::Kind as To;

use super::env::Env;
use super::invariants::Seen;
use super::member::CLUSTER;
use super::network::{ConnId, Place};
use super::queue::Item;
use super::talk::Talk;

const LIMITS: Limits = Limits {
    sessions: 64,
    subscriptions: 8,
    services: 8,
    name_bytes: 64,
    extra_bytes: 256,
    set_bytes: 4_096,
    // Small, so that lists come in pages.
    page_bytes: 300,
    claims: 64,
    claim_ttl: Span::secs(600),
    id_names: 8,
    offline_ids: 4,
};

#[derive(Debug)]
pub struct DirectoryNode {
    pub me: Place,
    pub core: Directory,
    remembers: bool,
    generations: Generations,
    sessions: BTreeMap<Generation, Session>,
    by_conn: BTreeMap<ConnId, Generation>,
    /// The start of each node that was let in last.
    starts: BTreeMap<NodeId, Place>,
    /// What this turn must save, and what it says after that.
    saves: Vec<Save>,
    said: Vec<Said>,
    /// The turn's saves are being written.
    writing: bool,
    /// Sessions that ended in this turn; what was said of them is still shown.
    ended: Vec<Generation>,
    /// What came in meanwhile.
    waiting: VecDeque<Input>,
}

#[derive(Debug)]
struct Session {
    conn: ConnId,
    start: Option<Place>,
    /// From its hello.
    node: String,
    claimed: u64,
    /// The core has closed it and says so with this turn.
    closed: bool,
    /// That is said; the connection may still say something.
    over: bool,
}

#[derive(Debug)]
enum Input {
    /// With who dialled.
    Opened(ConnId, Option<Place>),
    Message(ConnId, To),
    Gone(ConnId),
    Tick,
}

/// What the core said to one input.
#[derive(Debug)]
struct Said {
    at: Mono,
    actions: Vec<Action>,
    /// Nodes that are here no more since.
    lost: Vec<NodeId>,
    /// The input's session with what it asked.
    asked: Option<(Generation, To)>,
    warm: bool,
}

impl DirectoryNode {
    /// `wall` stands for the wall clock's microseconds.
    pub fn new(env: &mut Env, me: Place, wall: u64, remembers: bool) -> Self {
        let saved = if remembers { env.disk.read() } else { Vec::new() };
        let epoch_start = if saved.is_empty() { wall } else { 0 };
        if remembers && saved.is_empty() {
            env.disk.write(vec![Save::EpochMax { epoch: wall }]);
        }
        let (cluster, terms) = (CLUSTER.into(), env.terms);
        let settings = Settings { cluster, terms, limits: LIMITS, epoch_start, remembers };
        let mut core = Directory::new(settings, env.now);
        core.restore(env.now, saved);
        core.check();
        Self {
            me,
            core,
            remembers,
            generations: Generations::default(),
            sessions: BTreeMap::new(),
            by_conn: BTreeMap::new(),
            starts: BTreeMap::new(),
            saves: Vec::new(),
            said: Vec::new(),
            writing: false,
            ended: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    pub fn opened(&mut self, env: &mut Env, conn: ConnId) {
        let start = env.network.peer(conn, 1);
        self.take(env, Input::Opened(conn, start));
    }

    pub fn message(&mut self, env: &mut Env, conn: ConnId, message: To) {
        self.take(env, Input::Message(conn, message));
    }

    pub fn gone(&mut self, env: &mut Env, conn: ConnId) {
        self.take(env, Input::Gone(conn));
    }

    pub fn tick(&mut self, env: &mut Env) {
        self.take(env, Input::Tick);
    }

    fn take(&mut self, env: &mut Env, input: Input) {
        self.waiting.push_back(input);
        if !self.writing {
            self.turn(env);
        }
    }

    /// Everything that waits shares one write.
    fn turn(&mut self, env: &mut Env) {
        while let Some(input) = self.waiting.pop_front() {
            self.happen(env, input);
        }
        if self.saves.is_empty() {
            return self.speak(env);
        }
        self.writing = true;
        let slow = env.rng.one_in(40);
        let span = if slow { env.rng.millis(10, 120) } else { Span::micros(env.rng.between(300, 6_000)) };
        env.after(span, Item::Saved(self.me));
    }

    /// The turn is on the disk.
    pub fn saved(&mut self, env: &mut Env) {
        self.writing = false;
        env.disk.write(std::mem::take(&mut self.saves));
        self.speak(env);
        self.turn(env);
    }

    /// The process ends while its last turn is being written: that may have reached the disk or not, and is never said.
    pub fn crash(&mut self, env: &mut Env) {
        if !self.saves.is_empty() && env.rng.one_in(2) {
            env.disk.write(std::mem::take(&mut self.saves));
        }
    }

    fn happen(&mut self, env: &mut Env, input: Input) {
        match input {
            Input::Opened(conn, start) => {
                let session = self.generations.begin();
                let node = String::new();
                let known = Session { conn, start, node, claimed: 0, closed: false, over: false };
                self.sessions.insert(session, known);
                self.by_conn.insert(conn, session);
                self.step(env, session, Event::Opened { session, loopback: true });
            }
            Input::Message(conn, message) => {
                let Some(&session) = self.by_conn.get(&conn) else { return };
                if let (To::Hello(hello), Some(known)) = (&message, self.sessions.get_mut(&session)) {
                    (known.node, known.claimed) = (hello.node.clone(), hello.epoch);
                    let epoch = hello.epoch.max(hello.epoch_seen_max);
                    env.see(&Seen::Met { at: self.me, epoch });
                }
                self.step(env, session, Event::Said { session, message });
            }
            Input::Gone(conn) => {
                if let Some(session) = self.by_conn.remove(&conn) {
                    self.step(env, session, Event::Closed { session });
                    self.ended.push(session);
                }
            }
            Input::Tick => self.step(env, Generation::default(), Event::Tick),
        }
    }

    fn step(&mut self, env: &mut Env, session: Generation, event: Event) {
        let over = self.sessions.get(&session).is_some_and(|known| known.over);
        let state = |core: &Directory| format!("{:?} {:?}", core.status(), core.nodes());
        let before = over.then(|| state(&self.core));
        let (tick, warming) = (event == Event::Tick, self.core.status().warming);
        let asked = self.asks(session, &event);
        let mut actions = Vec::new();
        self.core.step(env.now, event, &mut actions);
        if let Some(before) = before {
            let changed = before != state(&self.core) || !actions.is_empty();
            env.see(&Seen::Stale { at: self.me, changed });
        }
        self.core.check();
        let ends = |action: &Action| {
            matches!(action, Action::Count(Cause::Expired | Cause::Superseded | Cause::Left))
        };
        let mut lost = Vec::new();
        if tick || actions.iter().any(ends) {
            lost = self.look_for_lost(env, tick);
        }
        for action in &actions {
            match action {
                Action::Save(save) => self.saves.push(save.clone()),
                Action::Close { session } => {
                    if let Some(known) = self.sessions.get_mut(session) {
                        known.closed = true;
                    }
                }
                _ => {}
            }
        }
        let warm = warming && !self.core.status().warming;
        self.said.push(Said { at: env.now, actions, lost, asked, warm });
    }

    /// Says what the turn has saved.
    fn speak(&mut self, env: &mut Env) {
        for said in std::mem::take(&mut self.said) {
            self.show(env, &said);
            for action in said.actions {
                for (session, message) in action.said() {
                    if let Some(known) = self.sessions.get(&session) {
                        env.send(self.me, known.conn, Talk::From(message.clone()));
                    }
                }
                if let Action::Close { session } = action {
                    self.close(env, session);
                }
            }
        }
        for session in std::mem::take(&mut self.ended) {
            self.sessions.remove(&session);
        }
    }

    /// The core is done with the session. Its connection closes a little later, as a stream does that must first be
    /// written, and what it says until then comes too late.
    fn close(&mut self, env: &mut Env, session: Generation) {
        if let Some(known) = self.sessions.get_mut(&session) {
            known.over = true;
            env.finish(self.me, known.conn);
        }
    }
}
