//! What a node asks the directory for beside who is there: claims, as `node::directory::claims` keeps and says again,
//! ids, and who goes on with what it leaves behind.

use std::collections::BTreeMap;

use base::{Epoch, Mono, Span};
use wire::code;
use wire::directory::{self as msg, from_directory::Kind as From, to_directory::Kind as To};

use super::env::Env;
use super::invariants::Seen;
use super::network::Place;

/// One of all nodes has this at a time, for as long as it is there.
pub const OWNED: &str = "owner";
/// What a provider would leave behind.
const TIMERS: &str = "timers";
/// The kind of ids that all count together.
const IDS: &str = "orders";
/// How often a node asks for what one of all has.
const EVERY: Span = Span::secs(3);
/// Far longer than a run: what is owned is free only when its node ends.
const OWNED_MS: u32 = 500_000;
const TICKET_MS: u32 = 12_000;
/// Nodes that take a ticket in the same while take the same one.
const TICKET: Span = Span::secs(3);

#[derive(Debug)]
pub struct Wants {
    me: Place,
    seq: u64,
    /// Claims that this session asked for.
    asked: BTreeMap<u64, Claim>,
    /// Said again on each session until it ends.
    kept: BTreeMap<String, (Claim, Mono)>,
    next: Mono,
    /// Something would be left behind.
    leaves: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    key: String,
    value: Vec<u8>,
    ttl_ms: u32,
    outlives_node: bool,
}

impl Wants {
    pub fn new(me: Place, leaves: bool) -> Self {
        Self { me, seq: 0, asked: BTreeMap::new(), kept: BTreeMap::new(), next: Mono::ZERO, leaves }
    }

    /// As far as this node knows.
    pub fn holds(&self, key: &str) -> bool {
        self.kept.contains_key(key)
    }

    /// A session begins: what was asked on the one before is answered no more, and what is held is said again.
    /// Under another epoch than before nothing is held any more that ends with a start.
    pub fn open(&mut self, now: Mono, another: bool) -> Vec<To> {
        self.asked.clear();
        self.kept.retain(|_, (kept, _)| !another || kept.outlives_node);
        self.kept.retain(|_, (_, until)| *until > now);
        let names = self.leaves.then(|| To::OfflineIds(msg::OfflineIds { ids: vec![TIMERS.into()] }));
        let again = self.kept.values().map(|(claim, until)| {
            let ttl_ms = u32::try_from(until.since(now).as_millis()).unwrap_or(u32::MAX).max(1);
            To::Claim(msg::Claim { ttl_ms, replay: true, ..claim.message(0) })
        });
        names.into_iter().chain(again).collect()
    }

    /// What is asked for now.
    pub fn tick(&mut self, env: &mut Env, node: &str, epoch: Epoch) -> Vec<To> {
        if env.now < self.next {
            return Vec::new();
        }
        self.next = env.now + EVERY;
        let value = format!("{node} {epoch}").into_bytes();
        let mut says =
            vec![self.ask(Claim { key: OWNED.into(), value, ttl_ms: OWNED_MS, outlives_node: false })];
        if !env.healed && env.rng.one_in(2) {
            let key = format!("ticket/{}", env.now.0 / TICKET.0);
            // As linkd does: who asks is this session of this start.
            let value = format!("{node} {epoch} {}", self.seq).into_bytes();
            says.push(self.ask(Claim { key, value, ttl_ms: TICKET_MS, outlives_node: true }));
        }
        if env.rng.one_in(4) {
            let count = env.rng.between(1, 50) as u32;
            says.push(To::AllocateIds(msg::AllocateIds { seq: count.into(), name: IDS.into(), count }));
        }
        says
    }

    fn ask(&mut self, claim: Claim) -> To {
        self.seq += 1;
        let message = claim.message(self.seq);
        self.asked.insert(self.seq, claim);
        To::Claim(message)
    }

    /// An answer, or a question that is answered.
    pub fn message(&mut self, env: &mut Env, message: From) -> Option<To> {
        match message {
            From::Claimed(answer) => self.claimed(env.now, &answer),
            From::AllocatedIds(answer) => {
                let ids = answer.first..answer.first + answer.seq;
                env.see(&Seen::Ids { at: self.me, code: answer.code, ids });
            }
            From::Offline(question) => {
                let taken = !env.rng.one_in(4);
                return Some(To::OfflineTaken(msg::OfflineTaken { seq: question.seq, taken }));
            }
            _ => {}
        }
        None
    }

    fn claimed(&mut self, now: Mono, answer: &msg::Claimed) {
        let Some(claim) = self.asked.remove(&answer.seq) else { return };
        if answer.code == 0 {
            let until = now + Span::millis(claim.ttl_ms.into());
            self.kept.insert(claim.key.clone(), (claim, until));
        } else if answer.code == code::TAKEN.number {
            // It had this once, and it is somebody else's now.
            self.kept.retain(|_, (kept, _)| *kept != claim);
        }
    }
}

impl Claim {
    fn message(&self, seq: u64) -> msg::Claim {
        msg::Claim {
            seq,
            key: self.key.clone(),
            value: self.value.clone().into(),
            ttl_ms: self.ttl_ms,
            outlives_node: self.outlives_node,
            replay: false,
        }
    }
}
