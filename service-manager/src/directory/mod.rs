//! Core: who is alive, what they offer, under which epoch. Decides who is admitted under a node id, gives epochs, keeps
//! leases, and tells followers every change once and in order.
//!
//! State of a node belongs to the session that made it (generation) and is removed only by that session, by its lease
//! or by a newer start; a late close of an old session changes nothing.

mod admission;
mod catalog;
mod claims;
mod event;
mod ids;
mod limits;
mod loads;
mod offline;
mod pace;
mod reach;
mod save;

use std::collections::{BTreeMap, BTreeSet};

use base::generation::Owned;
use base::lease::Heard;
use base::{Epoch, Generation, Mono, NodeId, Span};
use node::directory::{NODE_SERVICE, NodeInfo};
use wire::code::{self, Code};
use wire::directory::{self as msg, from_directory::Kind as From, to_directory::Kind as To};

use catalog::{Catalog, Set};
use claims::Claims;
pub use event::{Action, Cause, Event, Settings, Status};
pub use ids::COUNT_MAX as IDS_COUNT_MAX;
use ids::Ids;
pub use limits::{EPOCH_MAX, Limits, PROTO, Refusal, Terms};
use loads::Loads;
use offline::Offline;
pub use reach::DIALLING_MAX;
use reach::Reach;
pub use save::Save;

/// Ticks that come further apart than a lease divided by this mean that the directory itself stood still.
const PAUSES_PER_TTL: u64 = 3;

/// The core.
#[derive(Debug)]
pub struct Directory {
    settings: Settings,
    /// What is not listed may still come back until then.
    warm_at: Option<Mono>,
    sessions: BTreeMap<Generation, Session>,
    /// Each node belongs to the session that speaks for it, or spoke last.
    nodes: Owned<NodeId, Node>,
    catalog: Catalog,
    claims: Claims,
    ids: Ids,
    loads: Loads,
    offline: Offline,
    reach: Reach,
    /// The highest epoch given or heard of.
    epoch_max: u64,
    /// The last epoch of each node id, also of those that are gone.
    epochs: BTreeMap<NodeId, Last>,
    probes: u64,
    /// When time was last seen to pass.
    ticked: Mono,
}

#[derive(Debug)]
struct Session {
    opened: Mono,
    /// It comes from this machine.
    loopback: bool,
    stage: Stage,
    follows: BTreeSet<String>,
}

#[derive(Debug)]
enum Stage {
    /// Has not said hello.
    Silent,
    /// Waits until the holder of its node id has answered or not.
    Waiting {
        node: NodeId,
        hello: msg::Hello,
    },
    Admitted {
        node: NodeId,
    },
}

#[derive(Debug)]
struct Node {
    epoch: Epoch,
    host: String,
    heard: Heard,
    /// Its session is open. A node whose session broke stays until its lease runs out.
    connected: bool,
    probe: Option<Probe>,
}

/// The last epoch of a node id.
#[derive(Debug, Clone, Copy)]
struct Last {
    epoch: u64,
    /// Counted by this life of the directory, not brought by the node.
    given_here: bool,
}

/// Another start asks for the node id.
#[derive(Debug)]
struct Probe {
    nonce: u64,
    candidate: Generation,
    until: Mono,
}

impl Directory {
    pub fn new(settings: Settings, now: Mono) -> Self {
        let warming = settings.terms.warming;
        Self {
            warm_at: (warming.0 > 0).then(|| now + warming),
            epoch_max: settings.epoch_start.min(EPOCH_MAX),
            catalog: Catalog::new(settings.limits.page_bytes),
            settings,
            sessions: BTreeMap::new(),
            nodes: Owned::default(),
            claims: Claims::default(),
            ids: Ids::default(),
            loads: Loads::default(),
            offline: Offline::default(),
            reach: Reach::default(),
            epochs: BTreeMap::new(),
            probes: 0,
            ticked: now,
        }
    }

    pub fn step(&mut self, now: Mono, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Opened { session, loopback } => self.opened(now, session, loopback, actions),
            Event::Said { session, message } => self.said(now, session, message, actions),
            Event::Closed { session } => self.closed(now, session, actions),
            Event::Dialled { node, name, address, failed } => {
                self.dialled(now, &node, (&name, &address), failed, actions);
            }
            Event::Tick => self.tick(now, actions),
        }
        if !self.settings.remembers {
            actions.retain(|action| !matches!(action, Action::Save(_)));
        }
    }

    pub fn status(&self) -> Status {
        Status {
            revision: self.catalog.revision(),
            warming: self.warm_at.is_some(),
            nodes: self.nodes.len(),
            sessions: self.sessions.len(),
            services: self.catalog.services(),
            claims: self.claims.len(),
            unreachable: self.reach.unreachable(),
            left: self.offline.left(),
            epoch_max: Epoch(self.epoch_max),
        }
    }

    /// Every node with what it offers, for operators.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        self.catalog.nodes()
    }

    fn opened(&mut self, now: Mono, session: Generation, loopback: bool, actions: &mut Vec<Action>) {
        if self.sessions.len() >= self.settings.limits.sessions {
            let text = format!("this directory holds {} sessions", self.settings.limits.sessions);
            refuse(session, &Refusal::new(code::LIMIT, text), actions);
            return;
        }
        let (stage, follows) = (Stage::Silent, BTreeSet::new());
        self.sessions.insert(session, Session { opened: now, loopback, stage, follows });
    }

    fn said(&mut self, now: Mono, session: Generation, message: To, actions: &mut Vec<Action>) {
        // A session that was closed here may still be speaking.
        let Some(known) = self.sessions.get(&session) else { return };
        let node = match (&known.stage, message) {
            (Stage::Silent, To::Hello(hello)) => return self.hello(now, session, hello, actions),
            (Stage::Waiting { .. } | Stage::Silent, To::Bye(_)) => {
                actions.push(Action::Close { session });
                return self.closed(now, session, actions);
            }
            (Stage::Admitted { .. }, To::Hello(_)) | (Stage::Silent | Stage::Waiting { .. }, _) => {
                let refusal = Refusal::new(code::PROTOCOL_ORDER, "hello comes first, once");
                refuse(session, &refusal, actions);
                return self.closed(now, session, actions);
            }
            (Stage::Admitted { node }, message) => (node.clone(), message),
        };
        self.served(now, session, node, actions);
    }

    /// A message of an admitted session. Whatever it says, the node is alive.
    fn served(
        &mut self,
        now: Mono,
        session: Generation,
        (node, message): (NodeId, To),
        actions: &mut Vec<Action>,
    ) {
        if let Some(alive) = self.nodes.get_mut(&node) {
            alive.heard.renew(now);
        }
        match message {
            To::Register(register) => self.register(now, session, &node, register, actions),
            To::Subscribe(subscribe) => self.subscribe(session, subscribe, actions),
            To::Unsubscribe(unsubscribe) => {
                self.catalog.unfollow(session, &unsubscribe.name);
                self.loads.unobserve(session, &unsubscribe.name);
                if let Some(known) = self.sessions.get_mut(&session) {
                    known.follows.remove(&unsubscribe.name);
                }
            }
            To::Heartbeat(beat) => actions.push(Action::send(session, From::Heartbeat(beat))),
            To::Pong(pong) => self.answered(&node, pong.nonce, actions),
            To::Claim(claim) => self.claim(now, session, &node, claim, actions),
            To::Load(load) => self.loaded(session, &node, load),
            To::OfflineIds(ids) => self.name_offline(now, session, &node, ids, actions),
            To::OfflineTaken(answer) => self.offline_answered(now, &node, answer, actions),
            To::AllocateIds(wanted) => self.allocate(session, &node, &wanted, actions),
            To::Bye(_) => {
                actions.push(Action::Count(Cause::Left));
                actions.push(Action::Close { session });
                self.forget_session(session);
                self.drop_node(now, &node, session, actions);
                self.admit_waiting(now, &node, actions);
            }
            To::Hello(_) => {}
        }
    }

    fn register(
        &mut self,
        now: Mono,
        session: Generation,
        node: &NodeId,
        register: msg::Register,
        actions: &mut Vec<Action>,
    ) {
        let seq = register.seq;
        let mut answer = msg::Registered { seq, ..Default::default() };
        // Whose node it is comes before what is said of it.
        let checked = match self.nodes.owner(node) == Some(session) {
            true => limits::set(register.services, &self.settings.limits),
            false => Err(Refusal::new(code::STALE_EPOCH, "another session speaks for this node")),
        };
        match checked {
            Ok(mut set) => {
                let own = self.catalog.set(node).and_then(|old| old.get(NODE_SERVICE)).cloned();
                set.extend(own.map(|service| (NODE_SERVICE.to_owned(), service)));
                let epoch = self.nodes.get(node).map(|node| node.epoch).unwrap_or_default();
                self.catalog.replace(now, node, epoch, set, actions);
                self.loads.offers_changed(node);
                self.try_addresses(now, node, actions);
            }
            Err(refusal) => {
                actions.push(Action::Count(Cause::Refused));
                answer.code = refusal.code.number;
                answer.text = refusal.text;
            }
        }
        answer.revision = self.catalog.revision();
        actions.push(Action::send(session, From::Registered(answer)));
    }

    fn claim(
        &mut self,
        now: Mono,
        session: Generation,
        node: &NodeId,
        claim: msg::Claim,
        actions: &mut Vec<Action>,
    ) {
        // What a session says that lost its node to another one counts no more.
        let forgot = self.warm_at.is_some()
            && !self.settings.remembers
            && !base::planted::is("claims_given_while_warming");
        let claimed = match self.nodes.owner(node) == Some(session) {
            true => self.claims.claim(now, node, &claim, forgot, &self.settings.limits),
            false => Err(Refusal::new(code::STALE_EPOCH, "another session speaks for this node")),
        };
        let mut answer = msg::Claimed { seq: claim.seq, ..Default::default() };
        match claimed {
            Ok(save) => actions.extend(save.map(Action::save)),
            Err(refusal) => {
                let taken = refusal.code == code::TAKEN;
                actions.push(Action::Count(if taken { Cause::Taken } else { Cause::Refused }));
                answer.code = refusal.code.number;
                answer.retry_after_ms = refusal.retry_after_ms();
                answer.text = refusal.text;
            }
        }
        // A node replays without counting on answers, and could not read them while it does.
        if answer.code != 0 || !claim.replay {
            actions.push(Action::send(session, From::Claimed(answer)));
        }
    }

    fn allocate(
        &mut self,
        session: Generation,
        node: &NodeId,
        wanted: &msg::AllocateIds,
        actions: &mut Vec<Action>,
    ) {
        let allocated = match self.nodes.owner(node) == Some(session) {
            _ if !self.settings.remembers => {
                let text = "this directory keeps nothing on a disk, so it could give ids twice; \
                            set service_manager.store";
                Err(Refusal::new(code::NO_STORE, text))
            }
            true => self.ids.allocate(&wanted.name, wanted.count, &self.settings.limits),
            false => Err(Refusal::new(code::STALE_EPOCH, "another session speaks for this node")),
        };
        let mut answer = msg::AllocatedIds { seq: wanted.seq, ..Default::default() };
        match allocated {
            Ok(first) => {
                let (name, next) = (wanted.name.clone(), self.ids.next(&wanted.name));
                actions.push(Action::save(Save::Ids { name, next }));
                answer.first = first;
            }
            Err(refusal) => {
                actions.push(Action::Count(Cause::Refused));
                answer.code = refusal.code.number;
                answer.text = refusal.text;
            }
        }
        actions.push(Action::send(session, From::AllocatedIds(answer)));
    }

    fn subscribe(&mut self, session: Generation, wanted: msg::Subscribe, actions: &mut Vec<Action>) {
        let msg::Subscribe { name, loads } = wanted;
        let limits = &self.settings.limits;
        let Some(known) = self.sessions.get_mut(&session) else { return };
        let mut allowed = limits::pattern(&name, limits);
        if known.follows.len() >= limits.subscriptions && !known.follows.contains(&name) {
            let text = format!("a session follows at most {} names", limits.subscriptions);
            allowed = Err(Refusal::new(code::LIMIT, text));
        }
        match allowed {
            Ok(()) => {
                self.catalog.follow(session, &name, self.warm_at.is_some(), actions);
                known.follows.insert(name.clone());
                match loads {
                    true => self.observe(session, &name, actions),
                    false => self.loads.unobserve(session, &name),
                }
            }
            Err(Refusal { code: Code { number, .. }, text, .. }) => {
                actions.push(Action::Count(Cause::Refused));
                let refused = msg::Snapshot { name, code: number, text, ..Default::default() };
                actions.push(Action::send(session, From::Snapshot(refused)));
            }
        }
    }

    /// A session is gone. The node it spoke for stays until its lease runs out, unless another start waits for the id.
    fn closed(&mut self, now: Mono, session: Generation, actions: &mut Vec<Action>) {
        let Some(known) = self.forget_session(session) else { return };
        match known.stage {
            Stage::Silent => {}
            Stage::Waiting { node, .. } => {
                if let Some(holder) = self.nodes.get_mut(&node) {
                    holder.probe.take_if(|probe| probe.candidate == session);
                }
            }
            Stage::Admitted { node } => {
                let owns =
                    self.nodes.owner(&node) == Some(session) || base::planted::is("directory_closes_by_key");
                if let Some(holder) = self.nodes.get_mut(&node).filter(|_| owns) {
                    holder.connected = false;
                    if holder.probe.is_some() {
                        self.admit_waiting(now, &node, actions);
                    }
                }
            }
        }
    }

    fn forget_session(&mut self, session: Generation) -> Option<Session> {
        let known = self.sessions.remove(&session)?;
        for name in &known.follows {
            self.catalog.unfollow(session, name);
        }
        self.loads.session_gone(session);
        Some(known)
    }

    /// Removes a node and what it offers, if `owner` still speaks for it.
    fn drop_node(&mut self, now: Mono, node: &NodeId, owner: Generation, actions: &mut Vec<Action>) {
        if let Some(gone) = self.nodes.remove(node, owner) {
            self.gone_offline(now, node, gone.epoch, actions);
            self.loads.node_gone(node);
            self.reach.node_gone(node);
            self.claims.node_gone(node, |save| actions.push(Action::save(save)));
            self.catalog.replace(now, node, Epoch::NONE, Set::new(), actions);
        }
    }

    fn tick(&mut self, now: Mono, actions: &mut Vec<Action>) {
        self.excuse(now);
        // Before Warm is said, and loads: they are about what is known to be listed.
        self.catalog.tick(now, actions);
        self.claims.tick(now, |save| actions.push(Action::save(save)));
        self.spread_loads(actions);
        self.hand_over(now, actions);
        self.dial_due(now, actions);
        let hello = self.settings.terms.hello;
        let mute =
            |session: &Session| matches!(session.stage, Stage::Silent) && now.since(session.opened) >= hello;
        let late: Vec<Generation> =
            self.sessions.iter().filter(|(_, session)| mute(session)).map(|(&session, _)| session).collect();
        for session in late {
            refuse(session, &Refusal::new(code::TIMEOUT, format!("no hello within {hello}")), actions);
            self.forget_session(session);
        }
        let expired: Vec<(NodeId, Generation)> = self
            .nodes
            .iter()
            .filter(|(_, _, node)| node.heard.expired(now))
            .map(|(node, owner, _)| (node.clone(), owner))
            .collect();
        for (node, owner) in expired {
            self.expire(now, &node, owner, actions);
        }
        let silent: Vec<NodeId> = self
            .nodes
            .iter()
            .filter(|(_, _, node)| node.probe.as_ref().is_some_and(|probe| now >= probe.until))
            .map(|(node, ..)| node.clone())
            .collect();
        for node in silent {
            self.admit_waiting(now, &node, actions);
        }
        if self.warm_at.is_some_and(|at| now >= at) {
            self.warm_at = None;
            // Who has not come back since the restart is gone, and what ends with it too.
            let absent = self.claims.owners().filter(|node| self.nodes.get(node).is_none());
            for node in absent.cloned().collect::<Vec<_>>() {
                self.claims.node_gone(&node, |save| actions.push(Action::save(save)));
            }
            let warm = msg::Warm { revision: self.catalog.revision() };
            let admitted = |session: &Session| matches!(session.stage, Stage::Admitted { .. });
            let sessions = self.sessions.iter().filter(|(_, session)| admitted(session));
            let sessions: Vec<_> = sessions.map(|(&session, _)| session).collect();
            if !sessions.is_empty() {
                actions.push(Action::SendAll { sessions, message: From::Warm(warm) });
            }
        }
    }

    /// A directory that was itself paused has heard nobody, and blames nobody: all leases and probes begin anew, and so
    /// does the time in which those may come back who were there before it started.
    fn excuse(&mut self, now: Mono) {
        let terms = self.settings.terms;
        let paused = now.since(self.ticked) >= Span(terms.ttl.0 / PAUSES_PER_TTL);
        self.ticked = now;
        if !paused || base::planted::is("directory_blames_after_a_pause") {
            return;
        }
        self.warm_at = self.warm_at.map(|_| now + terms.warming);
        let all: Vec<NodeId> = self.nodes.iter().map(|(node, ..)| node.clone()).collect();
        for node in all {
            if let Some(node) = self.nodes.get_mut(&node) {
                node.heard.renew(now);
                if let Some(probe) = &mut node.probe {
                    probe.until = now + terms.probe;
                }
            }
        }
    }

    fn expire(&mut self, now: Mono, node: &NodeId, owner: Generation, actions: &mut Vec<Action>) {
        actions.push(Action::Count(Cause::Expired));
        if self.sessions.contains_key(&owner) {
            let text = format!("nothing was heard from node {node} for {}", self.settings.terms.ttl);
            close(owner, &Refusal::new(code::TIMEOUT, text), actions);
            self.forget_session(owner);
        }
        self.drop_node(now, node, owner, actions);
        self.admit_waiting(now, node, actions);
    }

    /// Asserts what always holds.
    pub fn check(&self) {
        self.catalog.check();
        self.claims.check(&self.settings.limits);
        let is_node = |node: &NodeId| self.nodes.get(node).is_some();
        self.loads.check(is_node);
        self.offline.check(is_node);
        self.reach.check();
        let mut speaking = 0;
        for (node, owner, state) in self.nodes.iter() {
            assert!(
                state.epoch.is_given() && state.epoch.0 <= self.epoch_max,
                "{node} has an epoch nobody gave"
            );
            assert_eq!(
                self.epochs.get(node).map(|last| last.epoch),
                Some(state.epoch.0),
                "{node}: its last epoch is not remembered"
            );
            let listed = self.catalog.set(node).is_some_and(|set| set.contains_key(NODE_SERVICE));
            assert!(listed, "{node} is admitted but not listed");
            let speaks =
                |session: &Session| matches!(&session.stage, Stage::Admitted { node: own } if own == node);
            let session = self.sessions.get(&owner);
            assert_eq!(
                state.connected,
                session.is_some_and(speaks),
                "{node}: connected without its session, or not"
            );
            speaking += usize::from(state.connected);
            if let Some(probe) = &state.probe {
                let waits = |session: &Session| matches!(&session.stage, Stage::Waiting { node: id, .. } if id == node);
                assert!(
                    self.sessions.get(&probe.candidate).is_some_and(waits),
                    "{node}: nobody waits for its probe"
                );
            }
        }
        let admitted = |session: &&Session| matches!(session.stage, Stage::Admitted { .. });
        let all = self.sessions.values().filter(admitted).count();
        assert_eq!(all, speaking, "two sessions speak for one node");
        for (&session, known) in &self.sessions {
            if let Stage::Waiting { node, .. } = &known.stage {
                let probe = self.nodes.get(node).and_then(|holder| holder.probe.as_ref());
                let asked = probe.is_some_and(|probe| probe.candidate == session);
                assert!(asked, "{session} waits for {node} and nobody was asked");
            }
            let told = known.follows.iter().all(|name| self.catalog.follows(session, name));
            assert!(self.loads.observes(session).all(|name| known.follows.contains(name)));
            assert!(told && known.follows.len() <= self.settings.limits.subscriptions);
        }
        assert!(self.sessions.len() <= self.settings.limits.sessions);
    }
}

fn refuse(session: Generation, refusal: &Refusal, actions: &mut Vec<Action>) {
    actions.push(Action::Count(Cause::Refused));
    close(session, refusal, actions);
}

fn close(session: Generation, refusal: &Refusal, actions: &mut Vec<Action>) {
    actions.push(Action::send(session, From::Refused(refusal.message())));
    actions.push(Action::Close { session });
}

#[cfg(test)]
mod tests;
