//! What must hold of a run, seen from outside: one file per promise. Each looks at what cores were told and what they
//! said, and never inside them.

mod affinity;
mod epochs_grow;
mod ids_once;
mod kicked_is_ended;
mod left_behind;
mod no_misrouted_frame;
mod no_silent_loss;
mod one_holder;
mod one_home;
mod one_start;
mod only_silence_kills;
mod progress;
mod session_fifo;
mod stale_connections_change_nothing;
mod told;
mod views_converge;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use base::{LinkSid, Mono};
use linkd::router::Action;
use linkstead::linkds::Key;
use linkstead::{LinkRef, sessions};
use node::directory::view;
use wire::directory as msg;

use super::cluster::Cluster;
use super::frames::Asked;
use super::input::Input;
use super::network::{ConnId, Place};
use super::provider::{Info, Job};

pub use told::{Provider, Told};

/// One router of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouterId {
    pub place: Place,
    pub worker: usize,
}

/// One provider's side of a connection to a linkd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId {
    pub place: Place,
    pub conn: ConnId,
}

/// Something that can be seen from outside a core.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A router was told something and said what must be done.
    Router { at: RouterId, input: &'a Input, actions: &'a [Action] },
    /// The sessions of a provider's connection likewise.
    Sessions { at: LinkId, key: &'a Key, fed: Fed, actions: &'a [sessions::Action<Info, Job>] },
    /// A provider ends a session.
    Kicked { at: Place, link: &'a LinkRef },
    /// A node's view of the directory likewise.
    View { at: Place, listing: Listing, actions: &'a [view::Action] },
    /// Something came from a connection that no longer counts.
    Stale { at: Place, changed: bool },
    /// The directory let a start in.
    Welcome {
        directory: Place,
        at: Mono,
        node: &'a str,
        start: Place,
        claimed: u64,
        epoch: u64,
        warming: bool,
        remembers: bool,
    },
    /// The directory lists this node no more.
    Lost { node: &'a str, at: Mono },
    /// Whoever has not come back to this life of the directory is gone.
    Warm { directory: Place },
    /// A life of the directory begins.
    Restarts { at: Mono },
    /// It gave somebody a key, or prolonged that.
    Claimed(Claimed<'a>),
    /// A node has said what it would leave behind.
    Named { directory: Place, node: &'a str, ids: &'a [String] },
    /// The directory asks somebody to go on with that.
    HandedOver { directory: Place, at: Mono, question: &'a msg::Offline },
    /// Somebody does.
    TakenOver { directory: Place, seq: u64 },
    /// A node was given ids, or not.
    Ids { at: Place, code: i32, ids: Range<u64> },
    /// Somebody was told this epoch, of whoever.
    Met { at: Place, epoch: u64 },
    /// The start that held the node id lost it to another.
    Superseded { node: &'a str, claimed: u64, healthy: bool },
    /// The directory gave a node up because nothing was heard from it.
    Evicted { node: &'a str, healthy: bool },
    /// A client did or heard something.
    Client { conn: ConnId, saw: Saw<'a> },
    /// A process is gone.
    Ended { place: Place },
}

/// A claim that was granted.
#[derive(Debug, Clone, Copy)]
pub struct Claimed<'a> {
    pub directory: Place,
    pub remembers: bool,
    pub warming: bool,
    pub node: &'a str,
    pub claim: &'a msg::Claim,
    pub at: Mono,
    pub until: Mono,
}

/// What a provider's sessions were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fed {
    Opened(LinkSid),
    Dispatch(LinkSid, u64),
    Done(LinkSid),
    Kicked(LinkSid),
    Broken(LinkSid),
    Closed,
}

/// What a view was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    Session,
    Snapshot { warming: bool },
    Delta,
    Warm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saw<'a> {
    Asked(&'a Asked),
    Answered {
        uid: u64,
        result: i64,
        by: Option<u64>,
    },
    /// A report with this code.
    Told(i64),
    /// Its connection is over.
    Closed,
}

pub type Verdict = Result<(), String>;

/// One promise.
pub trait Invariant: fmt::Debug {
    fn name(&self) -> &'static str;

    /// `told` is what was so before.
    fn see(&mut self, _told: &Told, _seen: &Seen<'_>) -> Verdict {
        Ok(())
    }

    /// After healing, when everything has come to rest.
    fn end(&mut self, _cluster: &Cluster) -> Verdict {
        Ok(())
    }
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    pub at: Mono,
    pub why: String,
}

/// What a run did, so that one that did nothing is noticed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub asked: u64,
    pub answered: u64,
    pub refused: u64,
    pub closed: u64,
    pub stale: u64,
    pub gaps: u64,
    /// What routers counted as lost, by cause.
    pub lost: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.refused += other.refused;
        self.closed += other.closed;
        self.stale += other.stale;
        self.gaps += other.gaps;
        for (cause, count) in &other.lost {
            *self.lost.entry(cause).or_default() += count;
        }
    }
}

/// All invariants, and the first violation.
#[derive(Debug)]
pub struct Watch {
    invariants: Vec<Box<dyn Invariant>>,
    told: Told,
    pub violation: Option<Violation>,
    pub tally: Tally,
}

impl Default for Watch {
    fn default() -> Self {
        let invariants: Vec<Box<dyn Invariant>> = vec![
            Box::<no_misrouted_frame::NoMisroutedFrame>::default(),
            Box::<no_silent_loss::NoSilentLoss>::default(),
            Box::<one_home::OneHome>::default(),
            Box::<affinity::Affinity>::default(),
            Box::<session_fifo::SessionFifo>::default(),
            Box::<epochs_grow::EpochsGrow>::default(),
            Box::<one_start::OneStart>::default(),
            Box::<one_holder::OneHolder>::default(),
            Box::<ids_once::IdsOnce>::default(),
            Box::<left_behind::LeftBehind>::default(),
            Box::<only_silence_kills::OnlySilenceKills>::default(),
            Box::<views_converge::ViewsConverge>::default(),
            Box::<stale_connections_change_nothing::StaleConnectionsChangeNothing>::default(),
            Box::<kicked_is_ended::KickedIsEnded>::default(),
            Box::<progress::Progress>::default(),
        ];
        Self { invariants, told: Told::default(), violation: None, tally: Tally::default() }
    }
}

impl Watch {
    pub fn see(&mut self, now: Mono, seen: &Seen<'_>) {
        self.count(seen);
        for invariant in &mut self.invariants {
            if let Err(why) = invariant.see(&self.told, seen) {
                let invariant = invariant.name();
                self.violation.get_or_insert(Violation { invariant, at: now, why });
            }
        }
        self.told.hear(seen);
    }

    /// The invariants' last look.
    pub fn end(mut self, now: Mono, cluster: &Cluster) -> Option<Violation> {
        for invariant in &mut self.invariants {
            if let Err(why) = invariant.end(cluster) {
                let invariant = invariant.name();
                self.violation.get_or_insert(Violation { invariant, at: now, why });
            }
        }
        self.violation
    }

    fn count(&mut self, seen: &Seen<'_>) {
        match seen {
            Seen::Client { saw, .. } => match saw {
                Saw::Asked(_) => self.tally.asked += 1,
                Saw::Answered { result: 0, .. } => self.tally.answered += 1,
                Saw::Answered { .. } => self.tally.refused += 1,
                Saw::Closed => self.tally.closed += 1,
                Saw::Told(_) => {}
            },
            Seen::Stale { .. } => self.tally.stale += 1,
            _ => {}
        }
    }
}

/// `Err` with a text, unless the promise holds.
fn hold(holds: bool, why: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(why()) }
}
