//! Core: who is admitted under a node id, and under which epoch. The holder of an id keeps it for as long as it answers;
//! its own next session and a newer start need no asking.

use base::lease::Heard;
use base::{Epoch, Generation, Mono, NodeId, Span};
use node::directory::{EXTRA_HOST, EXTRA_ROLE, NODE_SERVICE};
use wire::code;
use wire::directory::{self as msg, from_directory::Kind as From};

use super::catalog::Set;
use super::limits::{self, EPOCH_MAX, PROTO, Refusal};
use super::save::Save;
use super::{Action, Cause, Directory, Last, Node, Probe, Session, Stage, close, refuse};

/// How many node ids that are gone keep their last epoch, for each session that may be; beyond that the oldest start
/// is forgotten, and could come back under the epoch it had.
const EPOCHS_PER_SESSION: usize = 4;
/// Above an epoch that somebody reports, the former life may have given so many that nobody has reported yet.
const UNSEEN: u64 = 1 << 20;

impl Directory {
    pub(super) fn hello(
        &mut self,
        now: Mono,
        session: Generation,
        hello: msg::Hello,
        actions: &mut Vec<Action>,
    ) {
        let node = match limits::hello(&hello, &self.settings.cluster, &self.settings.limits) {
            Ok(node) => node,
            Err(refusal) => {
                refuse(session, &refusal, actions);
                return self.closed(now, session, actions);
            }
        };
        self.learn_epoch(now, hello.epoch.max(hello.epoch_seen_max), actions);
        let claimed = Epoch(hello.epoch);
        let Some(holder) = self.nodes.get(&node) else {
            return self.admit(now, session, node, hello, actions);
        };
        let alive = holder.connected
            && !holder.heard.expired(now)
            && !base::planted::is("directory_admits_duplicates");
        // Its own next session, or a newer start than the one that a directory without memory let in first.
        let newer = claimed.is_given() && claimed >= holder.epoch;
        if newer || !alive {
            return self.admit(now, session, node, hello, actions);
        }
        if holder.probe.is_some() {
            let refusal = duplicate(&node, &holder.host, &hello.host);
            actions.push(Action::Count(Cause::Duplicate));
            close(session, &refusal, actions);
            return self.closed(now, session, actions);
        }
        self.probe(now, session, node, hello, actions);
    }

    /// Somebody has seen this epoch. A directory that forgot, and whose wall clock was set back, may have begun to count
    /// below it: what it gave so far may repeat what it gave in its former life. Whoever has such an epoch is refused and
    /// comes back for a larger one. Once warm, nobody's word ends another node's session.
    fn learn_epoch(&mut self, now: Mono, seen: u64, actions: &mut Vec<Action>) {
        if seen <= self.epoch_max {
            return;
        }
        // Two lives that hear of the same epoch go on from different ones: else both would give the same next.
        let unseen = UNSEEN + self.settings.epoch_start % UNSEEN;
        self.epoch_max = seen.saturating_add(unseen).min(EPOCH_MAX);
        actions.push(Action::save(Save::EpochMax { epoch: self.epoch_max }));
        if self.warm_at.is_none() || base::planted::is("directory_keeps_low_epochs") {
            return;
        }
        let mut doubtful = Vec::new();
        for (node, last) in self.epochs.iter_mut().filter(|(_, last)| last.given_here) {
            last.epoch = self.epoch_max;
            actions.push(Action::save(Save::Epoch { node: node.clone(), epoch: last.epoch }));
            doubtful.push(node.clone());
        }
        for node in doubtful {
            let Some(owner) = self.nodes.owner(&node) else { continue };
            actions.push(Action::Count(Cause::Superseded));
            if self.nodes.get(&node).is_some_and(|holder| holder.connected) {
                let text = format!(
                    "this directory has restarted and gave node {node} an epoch too small; join again"
                );
                close(owner, &Refusal::new(code::STALE_EPOCH, text), actions);
                self.forget_session(owner);
            }
            self.drop_node(now, &node, owner, actions);
            self.admit_waiting(now, &node, actions);
        }
    }

    /// The holder of the node id seems alive: it is asked, and the new start waits.
    fn probe(
        &mut self,
        now: Mono,
        candidate: Generation,
        node: NodeId,
        hello: msg::Hello,
        actions: &mut Vec<Action>,
    ) {
        let until = now + self.settings.terms.probe;
        self.probes += 1;
        let nonce = self.probes;
        let Some(owner) = self.nodes.owner(&node) else { return };
        if let Some(holder) = self.nodes.get_mut(&node) {
            holder.probe = Some(Probe { nonce, candidate, until });
            actions.push(Action::send(owner, From::Ping(msg::Ping { nonce })));
        }
        if let Some(session) = self.sessions.get_mut(&candidate) {
            session.stage = Stage::Waiting { node, hello };
        }
    }

    /// The holder has answered: it stays, and the start that asked for its id is refused.
    pub(super) fn answered(&mut self, node: &NodeId, nonce: u64, actions: &mut Vec<Action>) {
        let Some(holder) = self.nodes.get_mut(node) else { return };
        let Some(probe) = holder.probe.take_if(|probe| probe.nonce == nonce) else { return };
        let host = holder.host.clone();
        self.refuse_waiting(node, probe.candidate, &host, actions);
    }

    fn refuse_waiting(
        &mut self,
        node: &NodeId,
        candidate: Generation,
        host: &str,
        actions: &mut Vec<Action>,
    ) {
        let waiting = self.forget_session(candidate).map(|session| session.stage);
        if let Some(Stage::Waiting { hello, .. }) = waiting {
            actions.push(Action::Count(Cause::Duplicate));
            close(candidate, &duplicate(node, host, &hello.host), actions);
        }
    }

    /// Lets the start in that waited for the holder of `node`, now that there is none.
    pub(super) fn admit_waiting(&mut self, now: Mono, node: &NodeId, actions: &mut Vec<Action>) {
        let waits = |session: &Session| matches!(&session.stage, Stage::Waiting { node: wanted, .. } if wanted == node);
        let Some((&candidate, session)) = self.sessions.iter_mut().find(|(_, session)| waits(session)) else {
            return;
        };
        if let Stage::Waiting { node, hello } = std::mem::replace(&mut session.stage, Stage::Silent) {
            self.admit(now, candidate, node, hello, actions);
        }
    }

    /// The node id is this session's from now on.
    fn admit(
        &mut self,
        now: Mono,
        session: Generation,
        node: NodeId,
        hello: msg::Hello,
        actions: &mut Vec<Action>,
    ) {
        let epoch = self.give_epoch(&node, hello.epoch, actions);
        let before = self.nodes.get(&node).map(|holder| holder.epoch);
        let resumed = before == Some(epoch);
        // Who else waits for the id has lost it to this one.
        let loser = self.nodes.get_mut(&node).and_then(|holder| holder.probe.take());
        if let Some(probe) = loser.filter(|probe| probe.candidate != session) {
            self.refuse_waiting(&node, probe.candidate, &hello.host, actions);
        }
        self.supersede(&node, actions);
        let heard = Heard::new(now, self.settings.terms.ttl);
        let host = hello.host.clone();
        self.nodes.insert(node.clone(), session, Node { epoch, host, heard, connected: true, probe: None });
        if let Some(known) = self.sessions.get_mut(&session) {
            known.stage = Stage::Admitted { node: node.clone() };
        }
        let millis = |span: Span| u32::try_from(span.as_millis()).unwrap_or(u32::MAX);
        let welcome = msg::Welcome {
            epoch: epoch.0,
            revision: self.catalog.revision(),
            heartbeat_ms: millis(self.settings.terms.heartbeat),
            ttl_ms: millis(self.settings.terms.ttl),
            warming: self.warm_at.is_some(),
            proto: PROTO,
        };
        actions.push(Action::Count(if resumed { Cause::Resumed } else { Cause::Admitted }));
        actions.push(Action::send(session, From::Welcome(welcome)));
        if let Some(before) = before.filter(|_| !resumed) {
            self.gone_offline(now, &node, before, actions);
            self.loads.node_gone(&node);
            self.reach.node_gone(&node);
        }
        // A start that comes back under its epoch, also after a restart of this directory, keeps its claims.
        if !resumed && epoch.0 != hello.epoch {
            self.claims.node_gone(&node, |save| actions.push(Action::save(save)));
        }
        // A session resumed within the lease keeps what the node offered; a new start begins with nothing.
        let mut set = if resumed { self.catalog.set(&node).cloned().unwrap_or_default() } else { Set::new() };
        set.insert(NODE_SERVICE.to_owned(), node_service(&hello));
        self.catalog.replace(now, &node, epoch, set, actions);
    }

    /// The epoch this start already has, unless that was given away or never was; else the next.
    fn give_epoch(&mut self, node: &NodeId, claimed: u64, actions: &mut Vec<Action>) -> Epoch {
        let last = self.epochs.get(node).map_or(0, |last| last.epoch);
        let known = claimed > 0 && claimed >= last;
        let epoch = if known {
            claimed
        } else if base::planted::is("directory_repeats_epochs") {
            self.epoch_max.max(1)
        } else {
            self.epoch_max + 1
        };
        self.epoch_max = self.epoch_max.max(epoch);
        // An epoch that comes back is as trustworthy as it was when it was given.
        let given_here = match self.epochs.get(node) {
            Some(before) if before.epoch == epoch => before.given_here,
            _ => !known,
        };
        if last != epoch {
            actions.push(Action::save(Save::Epoch { node: node.clone(), epoch }));
        }
        self.epochs.insert(node.clone(), Last { epoch, given_here });
        if self.epochs.len() > self.settings.limits.sessions * EPOCHS_PER_SESSION {
            let gone = self.epochs.iter().filter(|(node, _)| self.nodes.get(node).is_none());
            if let Some(oldest) = gone.min_by_key(|(_, last)| last.epoch).map(|(node, _)| node.clone()) {
                self.epochs.remove(&oldest);
                actions.push(Action::save(Save::ForgetEpoch { node: oldest }));
                actions.push(Action::save(Save::EpochMax { epoch: self.epoch_max }));
            }
        }
        Epoch(epoch)
    }

    /// Closes the session that held `node`, because another takes its place.
    fn supersede(&mut self, node: &NodeId, actions: &mut Vec<Action>) {
        let Some(owner) = self.nodes.owner(node) else { return };
        if self.nodes.get(node).is_some_and(|holder| holder.connected) {
            actions.push(Action::Count(Cause::Superseded));
            let text = format!("another session of node {node} has taken this one's place");
            close(owner, &Refusal::new(code::STALE_EPOCH, text), actions);
            if !base::planted::is("directory_closes_by_key") {
                self.forget_session(owner);
            }
        }
    }
}

/// What the directory lists of a node itself.
fn node_service(hello: &msg::Hello) -> msg::Service {
    let extra = |key: &str, value: &str| msg::Extra { key: key.to_owned(), value: value.to_owned() };
    msg::Service {
        name: NODE_SERVICE.to_owned(),
        address: hello.ops_address.clone(),
        extra: vec![extra(EXTRA_HOST, &hello.host), extra(EXTRA_ROLE, &hello.role)],
        ..Default::default()
    }
}

fn duplicate(node: &NodeId, first: &str, second: &str) -> Refusal {
    let text = format!("node {node} is alive on {first}; a second start on {second} is refused");
    Refusal { code: code::DUPLICATE_NODE, text, other_host: first.to_owned() }
}
