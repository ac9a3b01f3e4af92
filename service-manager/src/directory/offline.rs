//! Core: who goes on with what a node left behind. A node names ids under which it has something running, such as timers.
//! When it is gone for good, nodes that name the same id are asked one after another until one takes over.

use std::collections::{BTreeMap, BTreeSet};

use base::{Epoch, Generation, Mono, NodeId, Span};
use wire::code;
use wire::directory::{self as msg, from_directory::Kind as From};

use super::limits::Refusal;
use super::save::Save;
use super::{Action, Cause, Directory, refuse};

/// How long a node that was asked has to answer.
const ANSWER: Span = Span::secs(10);
/// When all have been asked, how long until the first is asked again.
const AGAIN: Span = Span::secs(5);

/// A node that is gone, and an id that it named.
type Key = (NodeId, String);

#[derive(Debug, Default)]
pub(super) struct Offline {
    /// What nodes that are here have named.
    named: BTreeMap<NodeId, BTreeSet<String>>,
    left: BTreeMap<Key, Left>,
    /// What each open question is about.
    questions: BTreeMap<u64, Key>,
    seq: u64,
}

#[derive(Debug)]
struct Left {
    epoch: Epoch,
    /// When something is done next: the node is gone for good, or who was asked has not answered.
    due: Mono,
    /// Who was asked last, with the question's number.
    asked: Option<(NodeId, u64)>,
}

impl Offline {
    pub fn names(&self, node: &NodeId) -> impl Iterator<Item = &String> {
        self.named.get(node).into_iter().flatten()
    }

    fn left_by<'a>(&'a self, node: &'a NodeId) -> impl Iterator<Item = (&'a String, &'a Left)> {
        let left = self.left.range((node.clone(), String::new())..);
        left.take_while(move |((gone, _), _)| gone == node).map(|((_, id), left)| (id, left))
    }

    fn forget(&mut self, key: &Key) {
        let asked = self.left.remove(key).and_then(|left| left.asked);
        if let Some((_, seq)) = asked {
            self.questions.remove(&seq);
        }
    }

    /// Takes back what a node had named before this directory restarted. Until it is here again it may be gone.
    pub fn restore(&mut self, node: &NodeId, epoch: Epoch, ids: Vec<String>, due: Mono) {
        for id in ids {
            self.left.insert((node.clone(), id), Left { epoch, due, asked: None });
        }
    }

    pub fn check(&self, is_node: impl Fn(&NodeId) -> bool) {
        assert!(self.named.keys().all(&is_node), "a node that is gone names ids");
        assert!(self.named.values().all(|ids| !ids.is_empty()), "a node that names nothing is kept");
        let asked = self.left.iter().filter_map(|(key, left)| Some((left.asked.as_ref()?.1, key)));
        let asked: BTreeMap<u64, &Key> = asked.collect();
        assert!(
            asked.into_iter().eq(self.questions.iter().map(|(seq, key)| (*seq, key))),
            "a question is lost"
        );
    }

    pub fn left(&self) -> usize {
        self.left.len()
    }
}

impl Directory {
    /// The node's whole set, replaced. What an earlier start of it left behind is its own again.
    pub(super) fn name_offline(
        &mut self,
        now: Mono,
        session: Generation,
        node: &NodeId,
        ids: msg::OfflineIds,
        actions: &mut Vec<Action>,
    ) {
        if self.nodes.owner(node) != Some(session) {
            return;
        }
        let limits = &self.settings.limits;
        let odd =
            |id: &String| id.is_empty() || id.len() > limits.name_bytes || id.contains(char::is_control);
        if ids.ids.len() > limits.offline_ids || ids.ids.iter().any(odd) {
            let (most, bytes) = (limits.offline_ids, limits.name_bytes);
            let text = format!("a node names up to {most} offline ids of 1 to {bytes} bytes");
            refuse(session, &Refusal::new(code::LIMIT, text), actions);
            return self.closed(now, session, actions);
        }
        let ids: BTreeSet<String> = ids.ids.into_iter().collect();
        let epoch = self.nodes.get(node).map(|node| node.epoch);
        // This start has left nothing yet, and takes up what an earlier one did if it names it.
        let own = self.offline.left_by(node);
        let own = own.filter(|(id, left)| Some(left.epoch) == epoch || ids.contains(*id));
        let own: Vec<Key> = own.map(|(id, _)| (node.clone(), id.clone())).collect();
        own.iter().for_each(|key| self.offline.forget(key));
        let before = match ids.is_empty() {
            true => self.offline.named.remove(node),
            false => self.offline.named.insert(node.clone(), ids),
        };
        if before.as_ref() != self.offline.named.get(node) || !own.is_empty() {
            self.save_offline(node, actions);
        }
    }

    /// What is on the disk of a node: what it names now and what it has left behind.
    fn save_offline(&self, node: &NodeId, actions: &mut Vec<Action>) {
        let left = self.offline.left_by(node).map(|(id, _)| id);
        let ids: BTreeSet<String> = self.offline.names(node).chain(left).cloned().collect();
        actions.push(Action::save(Save::Offline { node: node.clone(), ids: ids.into_iter().collect() }));
    }

    /// The node is gone; it may come back until `offline_linger` is over.
    pub(super) fn gone_offline(&mut self, now: Mono, node: &NodeId, epoch: Epoch, actions: &mut Vec<Action>) {
        let linger = self.settings.terms.offline_linger;
        let due = if base::planted::is("directory_hands_over_at_once") { now } else { now + linger };
        // What this start named before a restart of this directory, and had no time to name again, is gone only now.
        for (_, left) in
            self.offline.left.iter_mut().filter(|((of, _), left)| of == node && left.epoch == epoch)
        {
            left.due = due;
        }
        let limits = &self.settings.limits;
        let left_max = limits.sessions.saturating_mul(limits.offline_ids);
        for id in self.offline.named.remove(node).unwrap_or_default() {
            let key = (node.clone(), id);
            if self.offline.left.len() >= left_max && !self.offline.left.contains_key(&key) {
                actions.push(Action::Count(Cause::LeftLost));
                continue;
            }
            self.offline.forget(&key);
            self.offline.left.insert(key, Left { epoch, due, asked: None });
        }
    }

    /// Asks for whatever waits long enough.
    pub(super) fn hand_over(&mut self, now: Mono, actions: &mut Vec<Action>) {
        let due = self.offline.left.iter().filter(|(_, left)| left.due <= now);
        for key in due.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.ask_next(now, key, actions);
        }
    }

    /// Asks the node after the one that was asked last; when all have been, waits and begins again.
    fn ask_next(&mut self, now: Mono, key: Key, actions: &mut Vec<Action>) {
        let Offline { named, left, questions, seq } = &mut self.offline;
        let Some(waiting) = left.get_mut(&key) else { return };
        // The start that was gone is back, has this running and is about to name it again.
        let back = self.nodes.get(&key.0).is_some_and(|node| node.epoch == waiting.epoch);
        let last = waiting.asked.take().map(|(node, seq)| {
            questions.remove(&seq);
            node
        });
        if back && !base::planted::is("directory_hands_over_at_once") {
            waiting.due = now + self.settings.terms.offline_linger;
            return;
        }
        let after = |node: &&NodeId| last.as_ref().is_none_or(|last| *node > last);
        let able = named.iter().filter(|(_, ids)| ids.contains(&key.1)).map(|(node, _)| node);
        let mut able = able.filter(after).filter(|node| self.nodes.get(node).is_some_and(|n| n.connected));
        let next = able.next().and_then(|node| Some((node.clone(), self.nodes.owner(node)?)));
        let Some((node, session)) = next else {
            waiting.due = now + AGAIN;
            return;
        };
        *seq += 1;
        let question = msg::Offline {
            seq: *seq,
            id: key.1.clone(),
            node: key.0.as_str().to_owned(),
            epoch: waiting.epoch.0,
        };
        (waiting.asked, waiting.due) = (Some((node, *seq)), now + ANSWER);
        questions.insert(*seq, key);
        actions.push(Action::send(session, From::Offline(question)));
    }

    /// Only the answer to the last question counts.
    pub(super) fn offline_answered(
        &mut self,
        now: Mono,
        node: &NodeId,
        answer: msg::OfflineTaken,
        actions: &mut Vec<Action>,
    ) {
        let Some(key) = self.offline.questions.get(&answer.seq).cloned() else { return };
        let asked = self.offline.left.get(&key).and_then(|left| left.asked.as_ref());
        if asked.is_none_or(|(who, _)| who != node) {
            return;
        }
        if answer.taken || base::planted::is("directory_drops_offline_notices") {
            actions.push(Action::Count(Cause::TakenOver));
            if base::planted::is("directory_asks_again") {
                return self.ask_next(now, key, actions);
            }
            self.offline.forget(&key);
            self.save_offline(&key.0, actions);
        } else {
            self.ask_next(now, key, actions);
        }
    }
}
