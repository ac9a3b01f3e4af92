//! Core: what happens to a directory, what it has done about it, and what it is made of.

use base::{Epoch, Generation, NodeId};
use wire::directory::{from_directory::Kind as From, to_directory::Kind as To};

use super::limits::{Limits, Terms};
use super::save::Save;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub cluster: String,
    pub terms: Terms,
    pub limits: Limits,
    /// Epochs begin above this. Without a durable store: the wall clock's microseconds.
    pub epoch_start: u64,
    /// What it says is saved before anybody hears of it, and given back after a restart.
    pub remembers: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A connection came; it says hello next.
    Opened {
        session: Generation,
        /// It comes from this machine.
        loopback: bool,
    },
    /// It said something.
    Said { session: Generation, message: To },
    /// It is closed, by whomever.
    Closed { session: Generation },
    /// An address of [`Action::Dial`] was dialled; `failed`: why it could not be.
    Dialled { node: NodeId, name: String, address: String, failed: Option<String> },
    /// Time has passed.
    Tick,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Send {
        session: Generation,
        message: From,
    },
    /// The same to each of these.
    SendAll {
        sessions: Vec<Generation>,
        message: From,
    },
    /// After everything sent so far.
    Close {
        session: Generation,
    },
    /// Try whether somebody answers there; said back with [`Event::Dialled`].
    Dial {
        node: NodeId,
        name: String,
        address: String,
    },
    /// For the counters.
    Count(Cause),
    /// On the disk before anything that is sent after it. Without a store: for nobody.
    Save(Save),
}

impl Action {
    pub(super) fn send(session: Generation, message: From) -> Self {
        Self::Send { session, message }
    }

    /// What it says, and to whom.
    pub fn said(&self) -> impl Iterator<Item = (Generation, &From)> {
        let (one, all, message) = match self {
            Self::Send { session, message } => (Some(*session), [].as_slice(), Some(message)),
            Self::SendAll { sessions, message } => (None, sessions.as_slice(), Some(message)),
            _ => (None, [].as_slice(), None),
        };
        one.into_iter().chain(all.iter().copied()).zip(message.into_iter().cycle())
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A node began a session as a new start.
    Admitted,
    /// A node came back within the same start.
    Resumed,
    /// A second start was refused because the first one answered.
    Duplicate,
    /// A session was closed because another start or a newer session took its node id.
    Superseded,
    /// A lease ran out.
    Expired,
    /// A node left by itself.
    Left,
    /// A message or a session was refused for another reason.
    Refused,
    /// A claim found its key held for another value.
    Taken,
    /// An address can't be dialled, or can again.
    Unreachable,
    /// What a node left behind goes on at another one.
    TakenOver,
    /// A node left something behind and so much is left already that it is forgotten.
    LeftLost,
}

impl Cause {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Resumed => "resumed",
            Self::Duplicate => "duplicate",
            Self::Superseded => "superseded",
            Self::Expired => "expired",
            Self::Left => "left",
            Self::Refused => "refused",
            Self::Taken => "taken",
            Self::Unreachable => "unreachable",
            Self::TakenOver => "taken_over",
            Self::LeftLost => "left_lost",
        }
    }
}

/// Numbers for probes and operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    pub revision: u64,
    pub warming: bool,
    pub nodes: usize,
    pub sessions: usize,
    pub services: usize,
    pub claims: usize,
    /// Services whose address can't be dialled.
    pub unreachable: usize,
    /// Things that nodes left behind and nobody has taken over.
    pub left: usize,
    pub epoch_max: Epoch,
}
