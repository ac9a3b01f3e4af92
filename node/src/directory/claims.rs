//! Claims of this node: what it asks the directory to hold, what was held and is said again to a directory that forgot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::{Mono, Retry, Span};
use tokio::sync::oneshot;
use wire::Code;
use wire::code;
use wire::directory as msg;

use super::Directory;
use super::asked::{Asked, NotAsked, WAITING_MAX};

/// Claims that wait for an answer at once; more are refused here with [`ClaimError::Full`].
pub const CLAIMS_WAITING_MAX: usize = WAITING_MAX;
/// Claims that this node says again to a directory that forgot; beyond it new ones are refused, because they could be
/// won twice after such a restart.
pub const CLAIMS_KEPT_MAX: usize = 1_000_000;
/// Claims replayed before the session looks at anything else again.
const REPLAYED_PER_TURN: usize = 256;

/// One thing to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// 1 byte to the directory's `name_max`.
    pub key: String,
    /// Who asks again with an equal value is who holds it. At most 256 bytes.
    pub value: Vec<u8>,
    /// From the directory's receipt on; at most its `claim_ttl_max`.
    pub ttl: Duration,
    /// Held for the whole `ttl`, also when this node is gone.
    pub outlives_node: bool,
}

/// Why a claim is not this node's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Whoever claimed first has it, for another value.
    #[error("the key is held for another value")]
    Taken,
    /// Nothing was claimed: no session with a directory, or it has just restarted, or it is full. Try again.
    #[error("no directory can decide it now; try again in a moment")]
    NotNow,
    /// The outcome is unknown. The same claim again is safe: equal values win both times.
    #[error("the directory did not answer in time; the same claim may be tried again")]
    Unknown,
    /// Nothing was claimed: this node is at its bound.
    #[error("no room for another claim; try again later")]
    Full,
    /// The claim itself is wrong.
    #[error("the directory refuses the claim with {name}: {text}")]
    Refused { name: &'static str, text: String },
}

impl ClaimError {
    pub fn retry(&self) -> Retry {
        match self {
            Self::Taken | Self::Refused { .. } => Retry::Never,
            Self::NotNow | Self::Unknown | Self::Full => code::BUSY.retry,
        }
    }
}

type Answer = Result<(), ClaimError>;

/// Behind the handle's lock.
#[derive(Debug, Default)]
pub(super) struct Claims {
    asked: Asked<Claim, Answer>,
    kept: BTreeMap<Arc<str>, Kept>,
    /// When each of `kept` ends.
    due: BTreeSet<(Mono, Arc<str>)>,
}

#[derive(Debug)]
struct Kept {
    value: Vec<u8>,
    outlives_node: bool,
    until: Mono,
}

impl Claims {
    fn ask(&mut self, now: Mono, claim: Claim) -> Result<oneshot::Receiver<Answer>, ClaimError> {
        self.forget_ended(now);
        if self.kept.len() + self.asked.len() >= CLAIMS_KEPT_MAX {
            return Err(ClaimError::Full);
        }
        self.asked.ask(claim).map_err(|why| match why {
            NotAsked::Closed => ClaimError::NotNow,
            NotAsked::Full => ClaimError::Full,
        })
    }

    fn forget_ended(&mut self, now: Mono) {
        while self.due.first().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, key)) = self.due.pop_first() {
                self.kept.remove(&key);
            }
        }
    }

    /// A session begins.
    pub fn open(&mut self) {
        self.asked.open();
    }

    /// The node lives under another epoch: what ended with the start before it is not this one's. To say it again would
    /// take it from whoever has it now.
    pub fn start_over(&mut self) {
        self.kept.retain(|_, kept| kept.outlives_node);
        let kept = &self.kept;
        self.due.retain(|(_, key)| kept.contains_key(key));
    }

    /// The session is over: nobody will answer what waits.
    pub fn close(&mut self) {
        self.asked.close(|| Err(ClaimError::Unknown));
    }

    /// The next claim to send.
    pub fn next(&mut self) -> Option<msg::Claim> {
        let (seq, claim) = self.asked.next()?;
        Some(msg::Claim {
            seq,
            key: claim.key.clone(),
            value: claim.value.clone().into(),
            ttl_ms: millis(claim.ttl.into()),
            outlives_node: claim.outlives_node,
            replay: false,
        })
    }

    /// An answer, also to whoever waits no more: what is held is held.
    pub fn answered(&mut self, now: Mono, claimed: msg::Claimed) {
        let Some((claim, sender)) = self.asked.answered(claimed.seq) else {
            if claimed.code != 0 {
                tracing::error!(code = claimed.code, text = %claimed.text, "a claim of this node was lost");
                metrics::counter!("linkstead_node_directory_refusals_total", "what" => "replayed_claim")
                    .increment(1);
            }
            return;
        };
        let answer = match claimed.code {
            0 => {
                self.keep(now, claim);
                Ok(())
            }
            number if number == code::TAKEN.number => {
                self.lost(&claim);
                Err(ClaimError::Taken)
            }
            number if number == code::BUSY.number => Err(ClaimError::NotNow),
            number => {
                let name = Code::find(number).map_or("UNKNOWN", |code| code.name);
                Err(ClaimError::Refused { name, text: claimed.text })
            }
        };
        let _ = sender.send(answer);
    }

    /// Somebody else has it. If this node had it before, it is not to be said again: nobody would be told that it was
    /// this node's once more.
    fn lost(&mut self, claim: &Claim) {
        let key: Arc<str> = Arc::from(claim.key.as_str());
        if let Some(old) = self.kept.get(&key).filter(|old| old.value == claim.value) {
            self.due.remove(&(old.until, key.clone()));
            self.kept.remove(&key);
        }
    }

    fn keep(&mut self, now: Mono, claim: Claim) {
        let (key, until): (Arc<str>, _) = (Arc::from(claim.key), now + Span::from(claim.ttl));
        if let Some(old) = self.kept.remove(&key) {
            self.due.remove(&(old.until, key.clone()));
        }
        self.due.insert((until, key.clone()));
        let kept = Kept { value: claim.value, outlives_node: claim.outlives_node, until };
        self.kept.insert(key, kept);
    }

    /// Some of what is held and comes after `last`, for a directory that may have forgotten it, and where to go on.
    pub fn replay(&mut self, now: Mono, last: Option<&Arc<str>>) -> (Vec<msg::Claim>, Option<Arc<str>>) {
        self.forget_ended(now);
        let from = last.map_or(std::ops::Bound::Unbounded, |key| std::ops::Bound::Excluded(key.clone()));
        let some = self.kept.range((from, std::ops::Bound::Unbounded)).take(REPLAYED_PER_TURN);
        let mut next = None;
        let claims: Vec<_> = some
            .map(|(key, kept)| {
                next = Some(key.clone());
                msg::Claim {
                    seq: 0,
                    key: key.to_string(),
                    value: kept.value.clone().into(),
                    ttl_ms: millis(kept.until.since(now)),
                    outlives_node: kept.outlives_node,
                    replay: true,
                }
            })
            .collect();
        let more = claims.len() == REPLAYED_PER_TURN;
        (claims, next.filter(|_| more))
    }
}

/// At least 1: 0 would be no time at all.
fn millis(span: Span) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX).max(1)
}

impl Directory {
    /// Claims a key, or says who else's it is: of all nodes that claim one key for different values, one wins. Waits
    /// for the directory's answer at most `patience`. What was won is said again on every later session, so that a
    /// directory without a memory still knows it after a restart.
    pub async fn claim(&self, claim: Claim, patience: Duration) -> Result<(), ClaimError> {
        let answer = self.shared.claims.lock().ask(self.shared.clock.now(), claim)?;
        self.shared.changed.notify_one();
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(ClaimError::Unknown),
        }
    }
}

#[cfg(test)]
mod tests;
