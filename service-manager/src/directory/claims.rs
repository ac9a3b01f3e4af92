//! Core: who holds which key for which value, until when. Compare-and-set: the first wins, an equal claim again is
//! no new one, another is refused and changes nothing. At the bound claims are refused, never forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Mono, NodeId, Span};
use wire::code;
use wire::directory as msg;

use super::limits::{Limits, Refusal};
use super::save::Save;

/// Claims that one tick lets go at most; the rest waits for the next, and counts as free meanwhile.
const EXPIRED_PER_TICK_MAX: usize = 10_000;
/// Of a claim's value.
pub const VALUE_BYTES_MAX: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Claims {
    held: BTreeMap<Arc<str>, Held>,
    /// Every claim once, in the order in which they end.
    due: BTreeSet<(Mono, Arc<str>)>,
    /// The claims that end with their node.
    of_node: BTreeMap<NodeId, BTreeSet<Arc<str>>>,
}

#[derive(Debug)]
struct Held {
    /// A copy: the message's bytes would keep the whole buffer that it came in.
    value: Box<[u8]>,
    until: Mono,
    /// How long a restart would give it; an equal claim of no longer time changes nothing on the disk.
    saved: Span,
    /// Whose end ends it; none: only time does.
    node: Option<NodeId>,
}

impl Claims {
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// `warming`: somebody who is not back yet may hold any key, so only a replayed claim or one that is held anyway is
    /// accepted. Answers what has changed on the disk, if anything.
    pub fn claim(
        &mut self,
        now: Mono,
        node: &NodeId,
        claim: &msg::Claim,
        warming: bool,
        limits: &Limits,
    ) -> Result<Option<Save>, Refusal> {
        judge(claim, limits)?;
        let until = now + Span::millis(claim.ttl_ms.into());
        let owner = (!claim.outlives_node).then(|| node.clone());
        let same = match self.held.get(claim.key.as_str()) {
            Some(held) if held.until > now && *held.value != claim.value[..] => {
                if !base::planted::is("directory_claims_twice") {
                    return Err(Refusal::new(code::TAKEN, "the key is held for another value"));
                }
                None
            }
            Some(held) if held.until > now => Some((held.until, held.saved, held.node.clone())),
            Some(_) | None => None,
        };
        if same.is_none() && warming && !claim.replay {
            return Err(Refusal::new(
                code::BUSY,
                "the directory has just started; somebody may hold the key",
            ));
        }
        if !self.held.contains_key(claim.key.as_str()) && self.held.len() >= limits.claims {
            let text = format!("this directory holds {} claims", limits.claims);
            return Err(Refusal::new(code::BUSY, text));
        }
        // An equal claim may prolong the first one, never shorten it, nor tie it to a node when it was free of one.
        let ttl = Span::millis(claim.ttl_ms.into());
        let (before, saved, node) = match same {
            Some((before, saved, node)) => (before, saved, node.and(owner)),
            None => (Mono::ZERO, Span::ZERO, owner),
        };
        let tied_before = self.remove(&claim.key).map(|held| held.node);
        let changed = before == Mono::ZERO || ttl > saved || tied_before.as_ref() != Some(&node);
        let saved = saved.max(ttl);
        let held =
            Held { value: claim.value[..].into(), until: until.max(before), saved, node: node.clone() };
        let save = changed.then(|| Save::Claim {
            key: claim.key.clone(),
            value: held.value.clone(),
            ttl: saved,
            node,
        });
        self.insert(Arc::from(claim.key.as_str()), held);
        Ok(save)
    }

    /// Takes back a claim of an earlier life.
    pub fn restore(&mut self, now: Mono, key: &str, value: Box<[u8]>, ttl: Span, node: Option<NodeId>) {
        self.remove(key);
        self.insert(Arc::from(key), Held { value, until: now + ttl, saved: ttl, node });
    }

    pub fn forget(&mut self, key: &str) {
        self.remove(key);
    }

    fn insert(&mut self, key: Arc<str>, held: Held) {
        self.due.insert((held.until, key.clone()));
        if let Some(node) = &held.node {
            self.of_node.entry(node.clone()).or_default().insert(key.clone());
        }
        self.held.insert(key, held);
    }

    fn remove(&mut self, key: &str) -> Option<Held> {
        let (key, held) = self.held.remove_entry(key)?;
        if let Some(node) = &held.node
            && let Some(keys) = self.of_node.get_mut(node)
        {
            keys.remove(&key);
            if keys.is_empty() {
                self.of_node.remove(node);
            }
        }
        self.due.remove(&(held.until, key));
        Some(held)
    }

    /// The node's lease ended, or another start took its place. Calls `save` with each change on the disk.
    pub fn node_gone(&mut self, node: &NodeId, mut save: impl FnMut(Save)) {
        if base::planted::is("claims_outlive_their_node") {
            return;
        }
        for key in self.of_node.remove(node).unwrap_or_default() {
            self.remove(&key);
            save(Save::Unclaim { key: key.as_ref().to_owned() });
        }
    }

    /// The nodes that have claims which end with them.
    pub fn owners(&self) -> impl Iterator<Item = &NodeId> {
        self.of_node.keys()
    }

    /// Lets go what is over. Calls `save` with each change on the disk.
    pub fn tick(&mut self, now: Mono, mut save: impl FnMut(Save)) {
        for _ in 0..EXPIRED_PER_TICK_MAX {
            match self.due.first() {
                Some((until, key)) if *until <= now => {
                    let key = key.clone();
                    self.remove(&key);
                    save(Save::Unclaim { key: key.as_ref().to_owned() });
                }
                Some(_) | None => return,
            }
        }
    }

    /// Asserts what always holds.
    pub fn check(&self, limits: &Limits) {
        assert!(self.held.len() <= limits.claims, "more claims than allowed");
        assert_eq!(self.due.len(), self.held.len(), "a claim never ends, or ends twice");
        let due = self.due.iter().all(|(until, key)| self.held.get(key).is_some_and(|h| h.until == *until));
        assert!(due, "a claim ends at another time than it says");
        let tied = self.held.values().filter(|held| held.node.is_some()).count();
        assert_eq!(
            self.of_node.values().map(BTreeSet::len).sum::<usize>(),
            tied,
            "nodes and claims disagree"
        );
    }
}

fn judge(claim: &msg::Claim, limits: &Limits) -> Result<(), Refusal> {
    let bad = |text: &str| Err(Refusal::new(code::BAD_MESSAGE, text));
    if claim.key.is_empty() || claim.key.contains(char::is_control) {
        return bad("a claim needs a key without control characters");
    }
    if claim.ttl_ms == 0 {
        return bad("a claim needs a time of more than 0 ms");
    }
    let ttl = Span::millis(claim.ttl_ms.into());
    let sizes = [
        ("a claim's key", claim.key.len(), limits.name_bytes),
        ("a claim's value", claim.value.len(), VALUE_BYTES_MAX),
    ];
    for (what, size, limit) in sizes {
        if size > limit {
            return Err(Refusal::new(code::LIMIT, format!("{what}: {size}, at most {limit}")));
        }
    }
    if ttl > limits.claim_ttl {
        return Err(Refusal::new(
            code::LIMIT,
            format!("a claim's time: {ttl}, at most {}", limits.claim_ttl),
        ));
    }
    Ok(())
}
