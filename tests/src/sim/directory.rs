//! The directory's process: the `Directory` core between its sessions.

use std::collections::{BTreeMap, BTreeSet};

use base::generation::{Generation, Generations};
use base::{NodeId, Span};
use service_manager::directory::{Action, Directory, Event, Limits, Settings};
use wire::code;
use wire::directory::{from_directory::Kind as From, to_directory::Kind as To};

use super::env::Env;
use super::invariants::Seen;
use super::member::CLUSTER;
use super::network::{ConnId, Place};
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
    me: Place,
    pub core: Directory,
    generations: Generations,
    sessions: BTreeMap<Generation, Session>,
    by_conn: BTreeMap<ConnId, Generation>,
    /// The start of each node that was let in last.
    starts: BTreeMap<NodeId, Place>,
}

#[derive(Debug)]
struct Session {
    conn: ConnId,
    start: Option<Place>,
    /// From its hello.
    node: String,
    claimed: u64,
    /// The core has closed it; the connection may still say something.
    over: bool,
}

impl DirectoryNode {
    /// `wall` stands for the wall clock's microseconds.
    pub fn new(env: &Env, me: Place, wall: u64) -> Self {
        let settings = Settings {
            cluster: CLUSTER.into(),
            terms: env.terms,
            limits: LIMITS,
            epoch_start: wall,
            remembers: false,
        };
        Self {
            me,
            core: Directory::new(settings, env.now),
            generations: Generations::default(),
            sessions: BTreeMap::new(),
            by_conn: BTreeMap::new(),
            starts: BTreeMap::new(),
        }
    }

    pub fn opened(&mut self, env: &mut Env, conn: ConnId) {
        let session = self.generations.begin();
        let start = env.network.peer(conn, 1);
        let known = Session { conn, start, node: String::new(), claimed: 0, over: false };
        self.sessions.insert(session, known);
        self.by_conn.insert(conn, session);
        self.step(env, session, Event::Opened { session, loopback: true });
    }

    pub fn message(&mut self, env: &mut Env, conn: ConnId, message: To) {
        let Some(&session) = self.by_conn.get(&conn) else { return };
        if let (To::Hello(hello), Some(known)) = (&message, self.sessions.get_mut(&session)) {
            (known.node, known.claimed) = (hello.node.clone(), hello.epoch);
        }
        self.step(env, session, Event::Said { session, message });
    }

    pub fn gone(&mut self, env: &mut Env, conn: ConnId) {
        if let Some(session) = self.by_conn.remove(&conn) {
            self.step(env, session, Event::Closed { session });
            self.sessions.remove(&session);
        }
    }

    pub fn tick(&mut self, env: &mut Env) {
        self.step(env, Generation::default(), Event::Tick);
        // Time alone removes only whom it has heard nothing from.
        let listed: BTreeSet<NodeId> = self.core.nodes().into_iter().map(|info| info.node).collect();
        let gone: Vec<_> = self.starts.iter().filter(|(node, _)| !listed.contains(*node)).collect();
        for (node, start) in gone {
            let healthy = env.network.could_speak(*start, env.now);
            env.see(&Seen::Evicted { node: node.as_str(), healthy });
        }
        self.starts.retain(|node, _| listed.contains(node));
    }

    fn step(&mut self, env: &mut Env, session: Generation, event: Event) {
        let over = self.sessions.get(&session).is_some_and(|known| known.over);
        let state = |core: &Directory| format!("{:?} {:?}", core.status(), core.nodes());
        let before = over.then(|| state(&self.core));
        let mut actions = Vec::new();
        self.core.step(env.now, event, &mut actions);
        if let Some(before) = before {
            let changed = before != state(&self.core) || !actions.is_empty();
            env.see(&Seen::Stale { at: self.me, changed });
        }
        self.show_admission(env, &actions);
        self.core.check();
        for action in actions {
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

    /// The core is done with the session. Its connection closes a little later, as a stream does that must first be
    /// written, and what it says until then comes too late.
    fn close(&mut self, env: &mut Env, session: Generation) {
        if let Some(known) = self.sessions.get_mut(&session) {
            known.over = true;
            env.finish(self.me, known.conn);
        }
    }

    /// Tells who watches which start was let in, which one lost its place to it, and who was given up.
    fn show_admission(&mut self, env: &mut Env, actions: &[Action]) {
        let mut loser = None;
        for (session, message) in actions.iter().flat_map(Action::said) {
            let Some(known) = self.sessions.get(&session) else { continue };
            match message {
                From::Refused(refused) if refused.code == code::STALE_EPOCH.number => {
                    self.starts
                        .retain(|node, start| node.as_str() != known.node || Some(*start) != known.start);
                    loser = Some(known);
                }
                From::Welcome(welcome) => {
                    let Some(start) = known.start else { continue };
                    let (node, claimed, epoch) = (&known.node, known.claimed, welcome.epoch);
                    let warming = welcome.warming;
                    self.starts.extend(NodeId::new(node).ok().map(|node| (node, start)));
                    env.see(&Seen::Welcome { node, start, claimed, epoch, warming });
                    let other = |loser: &&Session| loser.node == known.node && loser.start != known.start;
                    if let Some(loser) = loser.take().filter(other) {
                        let healthy = env.network.is_healthy(loser.conn, env.now);
                        env.see(&Seen::Superseded { node, claimed, healthy });
                    }
                }
                _ => {}
            }
        }
    }
}
