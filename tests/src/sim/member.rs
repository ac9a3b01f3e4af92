//! A node's side of its session with the directory: `node::directory::session` without sockets, around the same
//! `View`. It joins, beats, replays what it offers and follows, and comes back whatever happens.

use base::{Epoch, Mono, NodeId, Retry, Span};
use node::directory::view::{self, View};
use node::directory::{Instance, PROTO, Service};
use wire::Code;
use wire::directory::{self as msg, from_directory::Kind as From, to_directory::Kind as To};

use super::env::Env;
use super::invariants::{Listing, Seen};
use super::network::{ConnId, Place};
use super::talk::{Syn, Talk};
use super::wants::Wants;

/// Everybody's.
pub const CLUSTER: &str = "sim";
/// The directory's slot.
const DIRECTORY: usize = 0;
const ADMISSION: Span = Span::secs(5);
/// A session that lived this long begins the waits anew.
const HELD: Span = Span::secs(1);
const WAIT_MS_MAX: u64 = 2_000;

/// What the node learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It was given an epoch, the first or another one.
    Epoch,
    /// A list that it follows has changed.
    Listed,
    /// It can't join: the process ends.
    Refused,
}

#[derive(Debug)]
pub struct Member {
    me: Place,
    pub node: NodeId,
    role: &'static str,
    pub epoch: Epoch,
    pub view: View,
    wanted: Vec<Service>,
    /// Counts what was wanted; 0 before the first.
    seq: u64,
    pub name: &'static str,
    stage: Stage,
    wait_ms: u64,
    pub wants: Wants,
}

#[derive(Debug)]
enum Stage {
    Waiting { until: Mono },
    Hello { conn: ConnId, until: Mono },
    Admitted { conn: ConnId, since: Mono, ttl: Span, every: Span, heard: Mono, beat: Mono, registered: u64 },
}

impl Member {
    /// Will follow `name`.
    pub fn new(me: Place, node: NodeId, role: &'static str, name: &'static str) -> Self {
        Self {
            me,
            node,
            role,
            epoch: Epoch::NONE,
            view: View::default(),
            wanted: Vec::new(),
            seq: 0,
            name,
            stage: Stage::Waiting { until: Mono::ZERO },
            wait_ms: 100,
            wants: Wants::new(me, role == "provider"),
        }
    }

    /// Replaces what this node offers.
    pub fn register(&mut self, env: &mut Env, services: Vec<Service>) {
        self.wanted = services;
        self.seq += 1;
        self.sync(env);
    }

    /// Offers the same again in another version: a change that everybody who follows is told.
    pub fn renew(&mut self, env: &mut Env) {
        let renew = |service: Service| Service { version: service.version + 1, ..service };
        let services = std::mem::take(&mut self.wanted).into_iter().map(renew).collect();
        self.register(env, services);
    }

    pub fn is_admitted(&self) -> bool {
        matches!(self.stage, Stage::Admitted { .. })
    }

    pub fn tick(&mut self, env: &mut Env) {
        match &mut self.stage {
            Stage::Waiting { until } if env.now >= *until => {
                let conn = env.dial(self.me, DIRECTORY, Syn::Member);
                self.stage = Stage::Hello { conn, until: env.now + ADMISSION };
                let hello = self.hello();
                env.send(self.me, conn, Talk::To(To::Hello(hello)));
            }
            Stage::Hello { until, .. } if env.now >= *until => self.end(env),
            Stage::Admitted { heard, ttl, .. } if env.now.since(*heard) >= *ttl => self.end(env),
            Stage::Admitted { conn, beat, every, .. } if env.now >= *beat => {
                *beat = env.now + *every;
                let conn = *conn;
                env.send(self.me, conn, Talk::To(To::Heartbeat(msg::Heartbeat { seq: 1 })));
            }
            _ => {}
        }
        if let Stage::Admitted { conn, .. } = self.stage {
            for asked in self.wants.tick(env, self.node.as_str(), self.epoch) {
                env.send(self.me, conn, Talk::To(asked));
            }
        }
    }

    /// Asks again for the list that it has.
    pub fn repeat(&mut self, env: &mut Env) {
        if let Stage::Admitted { conn, .. } = self.stage {
            let again = msg::Subscribe { name: self.name.into(), loads: false };
            env.send(self.me, conn, Talk::To(To::Subscribe(again)));
        }
    }

    fn hello(&self) -> msg::Hello {
        msg::Hello {
            cluster: CLUSTER.into(),
            node: self.node.as_str().into(),
            role: self.role.into(),
            host: format!("host-{}", self.me.slot),
            ops_address: String::new(),
            epoch: self.epoch.0,
            epoch_seen_max: self.view.epoch_seen_max().0,
            proto: PROTO,
        }
    }

    /// Whether the connection was this session's.
    pub fn gone(&mut self, env: &mut Env, conn: ConnId) -> bool {
        let mine = self.conn() == Some(conn);
        if mine {
            self.end(env);
        }
        mine
    }

    fn conn(&self) -> Option<ConnId> {
        match self.stage {
            Stage::Waiting { .. } => None,
            Stage::Hello { conn, .. } | Stage::Admitted { conn, .. } => Some(conn),
        }
    }

    /// The session is over; another is begun after a wait.
    fn end(&mut self, env: &mut Env) {
        if let Some(conn) = self.conn() {
            env.close(self.me, conn);
        }
        if matches!(self.stage, Stage::Admitted { since, .. } if env.now.since(since) >= HELD) {
            self.wait_ms = 100;
        }
        let wait = env.rng.millis(self.wait_ms / 2, self.wait_ms);
        self.wait_ms = (self.wait_ms * 2).min(WAIT_MS_MAX);
        self.stage = Stage::Waiting { until: env.now + wait };
    }

    pub fn message(&mut self, env: &mut Env, conn: ConnId, message: From) -> Option<News> {
        if self.conn() != Some(conn) {
            return None;
        }
        if let Stage::Admitted { heard, .. } = &mut self.stage {
            *heard = env.now;
        }
        match (message, &self.stage) {
            (From::Welcome(welcome), Stage::Hello { .. }) => Some(self.admitted(env, conn, &welcome)),
            (From::Refused(refused), _) => self.refused(env, &refused),
            (_, Stage::Hello { .. }) => {
                self.end(env);
                None
            }
            (message, _) => self.take(env, conn, message),
        }
    }

    fn admitted(&mut self, env: &mut Env, conn: ConnId, welcome: &msg::Welcome) -> News {
        let span = |ms: u32| Span::millis(ms.into());
        let (ttl, every, now) = (span(welcome.ttl_ms), span(welcome.heartbeat_ms), env.now);
        let another = self.epoch.0 != welcome.epoch;
        self.epoch = Epoch(welcome.epoch);
        env.see(&Seen::Met { at: self.me, epoch: welcome.epoch });
        self.stage =
            Stage::Admitted { conn, since: now, ttl, every, heard: now, beat: now + every, registered: 0 };
        self.sync(env);
        self.feed(env, view::Event::Connected);
        self.feed(env, view::Event::Follow { name: self.name.into() });
        for said in self.wants.open(now, another) {
            env.send(self.me, conn, Talk::To(said));
        }
        News::Epoch
    }

    fn refused(&mut self, env: &mut Env, refused: &msg::Refused) -> Option<News> {
        let code = Code::find(refused.code);
        let hopeless = code.is_some_and(|code| {
            code.number == wire::code::DUPLICATE_NODE.number || code.retry == Retry::Never
        });
        self.end(env);
        (hopeless && !self.epoch.is_given()).then_some(News::Refused)
    }

    fn take(&mut self, env: &mut Env, conn: ConnId, message: From) -> Option<News> {
        let event = match message {
            From::Snapshot(snapshot) => {
                let msg::Snapshot { name, revision, warming, more, instances, .. } = snapshot;
                let instances = instances.into_iter().filter_map(Instance::from_wire).collect();
                view::Event::Snapshot { name, revision, warming, instances, more }
            }
            From::Delta(delta) => {
                let msg::Delta { name, previous, revision, added, removed } = delta;
                let added = added.into_iter().filter_map(Instance::from_wire).collect();
                let key = |key: msg::Key| Some((key.name, NodeId::new(&key.node).ok()?));
                view::Event::Delta {
                    name,
                    previous,
                    revision,
                    added,
                    removed: removed.into_iter().filter_map(key).collect(),
                }
            }
            From::Warm(_) => view::Event::Warm,
            From::Ping(ping) => {
                env.send(self.me, conn, Talk::To(To::Pong(msg::Pong { nonce: ping.nonce })));
                return None;
            }
            other => {
                if let Some(answer) = self.wants.message(env, other) {
                    env.send(self.me, conn, Talk::To(answer));
                }
                return None;
            }
        };
        self.feed(env, event)
    }

    /// A peer said hello under this epoch.
    pub fn met(&mut self, env: &mut Env, epoch: Epoch) {
        self.view.step(env.now, view::Event::Met { epoch }, &mut Vec::new());
        env.see(&Seen::Met { at: self.me, epoch: epoch.0 });
    }

    /// Sends what this node offers if the session does not know it.
    fn sync(&mut self, env: &mut Env) {
        if let Stage::Admitted { conn, registered, .. } = &mut self.stage
            && self.seq > *registered
        {
            *registered = self.seq;
            let services = self.wanted.iter().map(Into::into).collect();
            let register = msg::Register { seq: self.seq, services };
            env.send(self.me, *conn, Talk::To(To::Register(register)));
        }
    }

    fn feed(&mut self, env: &mut Env, event: view::Event) -> Option<News> {
        let listing = match &event {
            view::Event::Snapshot { warming, .. } => Listing::Snapshot { warming: *warming },
            view::Event::Delta { .. } => Listing::Delta,
            view::Event::Warm => Listing::Warm,
            view::Event::Follow { .. } | view::Event::Connected | view::Event::Met { .. } => Listing::Session,
        };
        let mut actions = Vec::new();
        self.view.step(env.now, event, &mut actions);
        let epoch = self.view.epoch_seen_max().0;
        env.see(&Seen::Met { at: self.me, epoch });
        env.see(&Seen::View { at: self.me, listing, actions: &actions });
        self.view.check();
        let mut news = None;
        for action in actions {
            match action {
                view::Action::Subscribe { name } => {
                    if let Some(conn) = self.conn() {
                        env.send(
                            self.me,
                            conn,
                            Talk::To(To::Subscribe(msg::Subscribe { name, loads: false })),
                        );
                    }
                }
                view::Action::Changed { .. } => news = Some(News::Listed),
                view::Action::Gap { .. } => env.watch.tally.gaps += 1,
            }
        }
        news
    }
}
