//! A provider's process: finds linkds through the directory, keeps one connection to each worker of each, introduces
//! itself, reports its load. Sessions and requests are in `work`, one connection in `link`.

mod link;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use base::{Mono, NodeId, ServerId, Span};
use linkstead::LinkRef;
use linkstead::kicks::{self, Kicks};
use linkstead::linkds::{self, Key, Linkd, Linkds};
use linkstead::load::{self, Load};
use node::directory::Service;
use wire::link::message;

use super::env::Env;
use super::frames::spec;
use super::linkd::{LINKD, MODULES};
use super::member::{Member, News};
use super::network::{ConnId, Place};
use super::plan::{Mood, Offer};
use super::talk::{Ask, Syn, Talk};

pub use link::{Info, Link, Stage};
pub use work::Job;

/// The waits between dials.
const WAIT_MS: (u64, u64) = (100, 2_000);

#[derive(Debug)]
pub struct ProviderNode {
    pub(super) me: Place,
    server: ServerId,
    pub(super) offer: Offer,
    pub member: Member,
    linkds: Linkds,
    diallers: BTreeMap<Key, Dialler>,
    pub links: BTreeMap<ConnId, Link>,
    load: Load,
    pub(super) logins: u64,
    moods: BTreeSet<u8>,
    kicks: Kicks,
    /// The calls that may confirm a kick.
    asked: BTreeMap<(ConnId, u64), LinkRef>,
    node: NodeId,
}

#[derive(Debug)]
struct Dialler {
    slot: usize,
    conn: Option<ConnId>,
    next: Mono,
    wait_ms: u64,
    forgotten: bool,
}

impl ProviderNode {
    pub fn new(me: Place, node: NodeId, server: u32, offer: Offer) -> Self {
        let config =
            linkstead::Config { propose_max_online: 100, max_online_new: 0, ..linkstead::Config::default() };
        Self {
            me,
            server: ServerId(server),
            offer,
            member: Member::new(me, node.clone(), "provider", LINKD),
            linkds: Linkds::default(),
            diallers: BTreeMap::new(),
            links: BTreeMap::new(),
            load: Load::new(&config),
            logins: 0,
            moods: BTreeSet::new(),
            kicks: Kicks::default(),
            asked: BTreeMap::new(),
            node,
        }
    }

    fn has(&self, mood: Mood) -> bool {
        self.moods.contains(&(mood as u8))
    }

    /// A mood begins or ends.
    pub fn set(&mut self, env: &mut Env, mood: Mood, on: bool) {
        let changed = if on { self.moods.insert(mood as u8) } else { self.moods.remove(&(mood as u8)) };
        if !changed {
            return;
        }
        let introduced = |(&conn, link): (&ConnId, &Link)| (link.stage == Stage::Introduced).then_some(conn);
        let conns: Vec<_> = self.links.iter().filter_map(introduced).collect();
        for conn in conns {
            match mood {
                Mood::Overloaded => {}
                Mood::Disabled => self.call(env, conn, Ask::Disable(message::Disable { disabled: on })),
                Mood::Withdrawn => self.serve(env, conn, !on),
            }
        }
        self.report(env);
    }

    /// Says on one connection that its modules are served, or no longer.
    fn serve(&mut self, env: &mut Env, conn: ConnId, on: bool) {
        if on {
            self.call(env, conn, self.bind());
            self.call(env, conn, self.subscribe());
        } else {
            let modules = self.offer.modules.iter().map(|module| module.0).collect();
            self.call(env, conn, Ask::UnBind(message::UnBind { modules, link_sids: Vec::new() }));
        }
    }

    fn announce(&self) -> Ask {
        Ask::Announce(message::Announce {
            server_id: self.server.0,
            app_version: self.offer.version.0,
            disabled: self.has(Mood::Disabled),
            region: String::new(),
            prefix: MODULES.into(),
            authenticator: false,
        })
    }

    fn specs(&self, dynamic: bool) -> Vec<message::Module> {
        let all = self.offer.modules.iter().map(|&module| spec(module));
        all.filter(|spec| spec.dynamic == dynamic).collect()
    }

    fn bind(&self) -> Ask {
        Ask::Bind(message::Bind { modules: self.specs(false), link_sids: Vec::new() })
    }

    fn subscribe(&self) -> Ask {
        Ask::Subscribe(message::Subscribe { modules: self.specs(true) })
    }

    pub fn message(&mut self, env: &mut Env, conn: ConnId, talk: Talk) -> Option<News> {
        if let Talk::From(message) = talk {
            let news = self.member.message(env, conn, message);
            match news {
                Some(News::Epoch) => {
                    let service = |module: &base::ModuleId| Service {
                        name: format!("{MODULES}{module}"),
                        ..Service::default()
                    };
                    let services = self.offer.modules.iter().map(service).collect();
                    self.member.register(env, services);
                }
                Some(News::Listed) => self.listed(env),
                _ => {}
            }
            return news;
        }
        self.heard(env, conn, talk);
        None
    }

    pub fn gone(&mut self, env: &mut Env, conn: ConnId) {
        if !self.member.gone(env, conn) {
            self.over(env, conn);
        }
    }

    fn listed(&mut self, env: &mut Env) {
        let linkd = |(_, instance): (_, &node::directory::Instance)| {
            let workers = instance.service.extra.get("workers").and_then(|text| text.parse().ok());
            Linkd {
                node: instance.node.clone(),
                epoch: instance.epoch,
                address: instance.service.address.clone(),
                workers: workers.unwrap_or(1),
            }
        };
        let listed: Vec<_> = self.member.view.services(LINKD).iter().map(linkd).collect();
        self.kicking(env, kicks::Event::Listed(&listed));
        self.follow(env, linkds::Event::Listed(listed));
    }

    fn follow(&mut self, env: &mut Env, event: linkds::Event) {
        let mut actions = Vec::new();
        self.linkds.step(event, &mut actions);
        self.linkds.check();
        for action in actions {
            match action {
                linkds::Action::Dial { key, address } => {
                    let slot = address.parse().unwrap_or(usize::MAX);
                    let (conn, next, wait_ms) = (None, env.now, WAIT_MS.0);
                    self.diallers.insert(key, Dialler { slot, conn, next, wait_ms, forgotten: false });
                }
                linkds::Action::Forget { key } => {
                    if let Some(dialler) = self.diallers.get_mut(&key) {
                        dialler.forgotten = true;
                    }
                }
            }
        }
    }

    pub fn tick(&mut self, env: &mut Env) {
        self.member.tick(env);
        let given = self.member.epoch.is_given();
        let due = |(key, dialler): (&Key, &Dialler)| {
            (given && dialler.conn.is_none() && (dialler.forgotten || dialler.next <= env.now))
                .then(|| key.clone())
        };
        let due: Vec<Key> = self.diallers.iter().filter_map(due).collect();
        for key in due {
            self.dial(env, key);
        }
        let conns: Vec<_> = self.links.keys().copied().collect();
        for conn in conns {
            self.watch_link(env, conn);
        }
        self.look(env);
        self.kicking(env, kicks::Event::Tick);
    }

    fn dial(&mut self, env: &mut Env, key: Key) {
        let Some(dialler) = self.diallers.get_mut(&key) else { return };
        if dialler.forgotten {
            self.diallers.remove(&key);
            return self.follow(env, linkds::Event::Ended(key));
        }
        let hello = Syn::Provider { node: self.node.clone(), epoch: self.member.epoch, worker: key.worker };
        let conn = env.dial(self.me, dialler.slot, hello);
        dialler.conn = Some(conn);
        self.links.insert(conn, Link::new(key, env.now));
    }

    /// The dialler waits before it tries again, longer each time until a connection has held.
    fn lost(&mut self, env: &mut Env, conn: ConnId, held: bool) {
        for dialler in self.diallers.values_mut().filter(|dialler| dialler.conn == Some(conn)) {
            dialler.conn = None;
            dialler.wait_ms = if held { WAIT_MS.0 } else { (dialler.wait_ms * 2).min(WAIT_MS.1) };
            let wait: Span = env.rng.millis(dialler.wait_ms / 2, dialler.wait_ms);
            dialler.next = env.now + wait;
        }
    }

    fn look(&mut self, env: &mut Env) {
        let online: usize = self.links.values().map(|link| link.sids.len()).sum();
        let overload = if self.has(Mood::Overloaded) { 2 } else { 0 };
        let sample = load::Sample { online: online as u32, logins: self.logins, overload };
        let mut actions = Vec::new();
        self.load.step(env.now, load::Event::Look(sample), &mut actions);
        self.load.check();
        if !actions.is_empty() {
            self.report(env);
        }
    }

    /// Tells every linkd how loaded this provider is.
    fn report(&mut self, env: &mut Env) {
        let mut report = self.load.last();
        report.overload = if self.has(Mood::Overloaded) { 2 } else { 0 };
        for (&conn, link) in self.links.iter_mut().filter(|(_, link)| link.stage == Stage::Introduced) {
            link.load_seq += 1;
            let load = message::Load {
                seq: link.load_seq,
                online: report.online,
                online_new: report.online_new,
                propose_max_online: 100,
                max_online_new: 0,
                overload: report.overload,
            };
            env.send(self.me, conn, Talk::Load(load));
        }
    }
}
