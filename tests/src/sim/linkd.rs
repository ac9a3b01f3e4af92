//! A linkd's process: one `Router` per worker between clients and providers. It does what `linkd::worker` does with
//! sockets: opens its ports when it has an epoch, greets, performs actions, notices silence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::generation::{Generation, Generations};
use base::{LinkSid, ModuleId, Mono, NodeId, Span};
use linkd::router::{Action, Judge, Rate, Router, Rules};
use node::directory::Service;
use wire::link::UserState;

use super::env::Env;
use super::frames;
use super::input::Input;
use super::invariants::{RouterId, Seen};
use super::member::{Member, News};
use super::network::{ConnId, Place};
use super::talk::{Syn, Talk};

/// The names under which providers offer modules.
pub const MODULES: &str = "module/";
/// The name under which linkds are found.
pub const LINKD: &str = "linkd";
/// How long a provider has to close after it was told goodbye.
const FAREWELL: Span = Span::secs(2);

#[derive(Debug)]
pub struct LinkdNode {
    pub(super) me: Place,
    node: NodeId,
    pub member: Member,
    open: bool,
    pub workers: Vec<Worker>,
    pub(super) conns: BTreeMap<ConnId, Role>,
    generations: Generations,
    /// Its outboxes to providers are full now and then.
    pub clogged: bool,
}

#[derive(Debug)]
pub struct Worker {
    pub router: Router,
    pub(super) providers: BTreeMap<Generation, ConnId>,
    pub(super) clients: BTreeMap<LinkSid, ConnId>,
    /// The frames of broadcasts on their way.
    pub(super) kept: BTreeMap<u64, bytes::Bytes>,
}

/// Who is at the other end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Client { worker: usize, sid: LinkSid },
    Provider { worker: usize, conn: Generation, leaving: Option<Mono> },
}

impl LinkdNode {
    pub fn new(me: Place, node: NodeId, workers: u8) -> Self {
        let rules = |worker| Rules {
            worker,
            region: String::new(),
            narrow: linkd::router::Narrow::default(),
            sessions_max: 64,
            auth_timeout: Span::secs(10),
            idle_timeout: Span::secs(12),
            judge: Judge::Nobody,
            owed_max: 64,
            unauthed_frames_max: 2,
            frames: Rate::OFF,
            bytes: Rate::OFF,
            out_bytes_per_second: 0,
            broadcasts_max: 16,
            broadcast_bytes_max: 64 * 1024,
            seed: base::hash::parts([node.as_str().as_bytes(), &[worker]]),
        };
        let worker = |index| Worker {
            router: Router::new(rules(index)),
            providers: BTreeMap::new(),
            clients: BTreeMap::new(),
            kept: BTreeMap::new(),
        };
        Self {
            me,
            member: Member::new(me, node.clone(), "linkd", MODULES),
            workers: (0..workers).map(worker).collect(),
            node,
            open: false,
            conns: BTreeMap::new(),
            generations: Generations::default(),
            clogged: false,
        }
    }

    pub fn name(&self) -> &NodeId {
        &self.node
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Every session that is open here.
    pub fn sids(&self) -> impl Iterator<Item = LinkSid> + '_ {
        self.workers.iter().flat_map(|worker| worker.clients.keys().copied())
    }

    pub fn opened(&mut self, env: &mut Env, conn: ConnId, syn: Syn) {
        match syn {
            Syn::Client => self.client_opened(env, conn),
            Syn::Provider { node, epoch, worker } if usize::from(worker) < self.workers.len() => {
                let (worker, generation) = (usize::from(worker), self.generations.begin());
                self.member.met(env, epoch);
                env.send(self.me, conn, Talk::Hello { node: self.node.clone(), epoch: self.member.epoch });
                self.conns.insert(conn, Role::Provider { worker, conn: generation, leaving: None });
                // Known before the step, so that what the step says to it is sent.
                self.workers[worker].providers.insert(generation, conn);
                self.feed(env, worker, Input::ProviderOpened { conn: generation, node, epoch });
            }
            Syn::Provider { .. } | Syn::Member => env.close(self.me, conn),
        }
    }

    fn client_opened(&mut self, env: &mut Env, conn: ConnId) {
        let sessions = |worker: &usize| self.workers[*worker].clients.len();
        let worker = (0..self.workers.len()).min_by_key(sessions).unwrap_or(0);
        let slot = env.network.peer(conn, 1).map_or(0, |place| place.slot);
        let addr = ([10, 0, 0, slot as u8], 5_000).into();
        let before = self.conns.len();
        self.feed(env, worker, Input::ClientOpened { token: conn.0, addr, since: env.now });
        if self.conns.len() == before {
            env.close(self.me, conn);
        } else {
            env.send(self.me, conn, Talk::Frame(own(wire::handshake::server_hello)));
        }
    }

    pub fn message(&mut self, env: &mut Env, conn: ConnId, talk: Talk) -> Option<News> {
        if let Talk::From(message) = talk {
            let news = self.member.message(env, conn, message);
            self.learn(env, news);
            return news;
        }
        match *self.conns.get(&conn)? {
            Role::Client { worker, sid } => {
                if let Talk::Frame(bytes) = talk {
                    self.feed(env, worker, Input::Frame { sid, said: frames::said(&bytes), bytes });
                }
            }
            Role::Provider { worker, conn, .. } => {
                if let Some(input) = input(conn, talk) {
                    self.feed(env, worker, input);
                }
            }
        }
        None
    }

    fn learn(&mut self, env: &mut Env, news: Option<News>) {
        match news {
            Some(News::Epoch) => {
                self.open = true;
                let workers = ("workers".to_owned(), self.workers.len().to_string());
                let service = Service {
                    name: LINKD.into(),
                    address: self.me.slot.to_string(),
                    extra: BTreeMap::from([workers]),
                    ..Service::default()
                };
                self.member.register(env, vec![service]);
            }
            Some(News::Listed) => {
                let id = |name: &str| name.strip_prefix(MODULES)?.parse().ok().map(ModuleId);
                let listed = self.member.view.services(MODULES);
                let modules: BTreeSet<_> = listed.keys().filter_map(|(name, _)| id(name)).collect();
                let modules = Arc::new(modules);
                for worker in 0..self.workers.len() {
                    self.feed(env, worker, Input::Registered { modules: modules.clone() });
                }
            }
            Some(News::Refused) | None => {}
        }
    }

    pub fn gone(&mut self, env: &mut Env, conn: ConnId) {
        if self.member.gone(env, conn) {
            return;
        }
        match self.conns.remove(&conn) {
            Some(Role::Client { worker, sid }) => {
                self.workers[worker].clients.remove(&sid);
                self.feed(env, worker, Input::ClientClosed { sid });
            }
            Some(Role::Provider { worker, conn, .. }) => {
                self.feed(env, worker, Input::ProviderClosed { conn });
                self.workers[worker].providers.remove(&conn);
            }
            None => {}
        }
    }

    pub fn tick(&mut self, env: &mut Env) {
        self.member.tick(env);
        let conns: Vec<_> = self.conns.iter().map(|(&conn, &role)| (conn, role)).collect();
        for (conn, role) in conns {
            let Role::Provider { leaving, .. } = role else { continue };
            let silent = env.silence(self.me, conn).is_none_or(|silent| silent >= env.beat.times(2));
            if silent || leaving.is_some_and(|until| env.now >= until) {
                env.close(self.me, conn);
                self.gone(env, conn);
            }
        }
        for worker in 0..self.workers.len() {
            self.feed(env, worker, Input::Tick);
            // A broadcast takes its turn only now, so that what is sent meanwhile must not overtake it.
            while self.workers[worker].router.fans_out() {
                self.feed(env, worker, Input::FanOut);
            }
        }
    }

    /// One step of a router, watched and performed.
    fn feed(&mut self, env: &mut Env, worker: usize, input: Input) {
        let Some(event) = input.event() else { return };
        let stale = input.conn().is_some_and(|conn| !self.workers[worker].is_heard(conn));
        let router = &mut self.workers[worker].router;
        let state = |router: &Router| format!("{:?}", router.summary());
        let before = stale.then(|| state(router));
        let mut actions = Vec::new();
        router.step(env.now, event, &mut actions);
        let at = RouterId { place: self.me, worker };
        if let Some(before) = before {
            let acted = actions.iter().any(|action| !matches!(action, Action::Dropped(_)));
            env.see(&Seen::Stale { at: self.me, changed: acted || before != state(router) });
        }
        env.see(&Seen::Router { at, input: &input, actions: &actions });
        self.workers[worker].router.check();
        self.perform(env, worker, &input, actions);
    }

    /// Performs, and gives the router back what could not be sent.
    fn perform(&mut self, env: &mut Env, worker: usize, input: &Input, actions: Vec<Action>) {
        let mut not_sent = None;
        for action in actions {
            if env.trace.is_on() {
                env.trace.say(env.now, || format!("{}/{worker} {}", self.node, show(&action)));
            }
            match action {
                Action::Dispatch { to, sid, .. } if self.clogged && env.rng.one_in(3) => {
                    not_sent = Some((to, sid))
                }
                Action::CloseProvider { conn, .. } => self.part(env, worker, conn),
                other => self.do_one(env, worker, input, other),
            }
        }
        if let (Some((to, sid)), Input::Frame { bytes, .. }) = (not_sent, input) {
            self.feed(env, worker, Input::NotSent { to, sid, bytes: bytes.clone() });
        }
    }

    /// Says goodbye. The connection is read until the provider closes it.
    fn part(&mut self, env: &mut Env, worker: usize, gone: Generation) {
        let Some(conn) = self.workers[worker].providers.remove(&gone) else { return };
        env.send(self.me, conn, Talk::Goodbye);
        env.finish(self.me, conn);
        let leaving = Some(env.now + FAREWELL);
        self.conns.insert(conn, Role::Provider { worker, conn: gone, leaving });
    }
}

impl Worker {
    /// Whether this connection still speaks for its node.
    fn is_heard(&self, conn: Generation) -> bool {
        self.providers.contains_key(&conn)
    }
}

/// A frame of linkd's own.
pub(super) fn own(write: impl FnOnce(&mut bytes::BytesMut)) -> bytes::Bytes {
    let mut out = bytes::BytesMut::new();
    write(&mut out);
    out.freeze()
}

fn input(conn: Generation, talk: Talk) -> Option<Input> {
    Some(match talk {
        Talk::Call { call, ask } => Input::Call { conn, call, ask },
        Talk::Load(load) => Input::Loaded { conn, load },
        Talk::Send { sids, frame } => Input::Send { conn, sids, frame },
        Talk::Broadcast { version, frame } => Input::Broadcast { conn, version, frame },
        Talk::UserState(UserState { link_sid: sid, role }) => Input::UserState { conn, sid, role },
        _ => return None,
    })
}

fn show(action: &Action) -> String {
    match action {
        Action::Opened { to, opened } => format!("opened {} to {}", LinkSid(opened.link_sid), to.conn),
        Action::Dispatch { to, sid, type_id, .. } => format!("dispatch {sid} {type_id} to {}", to.conn),
        Action::Forward { sid } => format!("forward {sid}"),
        other => format!("{other:?}"),
    }
}
