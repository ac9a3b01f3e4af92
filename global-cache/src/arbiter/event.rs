//! Core: what happens to an arbiter, and what it has done about it.

use std::fmt;

use base::{Epoch, Fence, Generation, Mono, NodeId, RequestId, Span};
use wire::cache::mode;
use wire::code::{self, Code};

/// A record, by a hash of its table and key that is wide enough to stand for them. Two records that should ever share one
/// are arbitrated together, which costs time and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u128);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The number of a grant: larger for each grant of an arbiter's life, so that a late word about an earlier one is known for
/// what it is. It has 48 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// How a provider may use a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Mode {
    /// Not at all.
    #[default]
    Invalid,
    /// Read it, as others may.
    Share,
    /// Change it; nobody else may even read it.
    Modify,
}

impl Mode {
    /// As it travels.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Invalid => mode::INVALID,
            Self::Share => mode::SHARE,
            Self::Modify => mode::MODIFY,
        }
    }

    /// What a byte means; `None`: nothing.
    pub const fn of_byte(byte: u8) -> Option<Self> {
        match byte {
            mode::INVALID => Some(Self::Invalid),
            mode::SHARE => Some(Self::Share),
            mode::MODIFY => Some(Self::Modify),
            _ => None,
        }
    }
}

/// A provider's session: where it is kept, and its number in the arbiter's life, which is part of its fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    pub slot: u16,
    pub number: u64,
}

/// One record that a provider asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    pub request: RequestId,
    pub key: Key,
    /// [`Mode::Share`] or [`Mode::Modify`]; something else is refused.
    pub want: Mode,
    /// The grant under which it has the record in memory.
    pub have: Option<Seq>,
}

/// A storage that only one process can open, by the name of its backend and the id written into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    pub backend: String,
    pub id: u128,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A node begins its session, or comes back to it over another connection. The connection has proven who it is.
    Login {
        conn: Generation,
        node: NodeId,
        epoch: Epoch,
        storages: Vec<Storage>,
    },
    /// It is alive.
    Renew {
        session: SessionId,
    },
    Acquire {
        session: SessionId,
        ask: Ask,
    },
    /// Several at once, each answered by itself.
    AcquireMany {
        session: SessionId,
        asks: Vec<Ask>,
    },
    /// It uses the record no more. `flushed`: the version that is in the storage.
    Release {
        session: SessionId,
        key: Key,
        seq: Seq,
        flushed: u64,
    },
    /// It has done what an [`Action::Reduce`] asked for, or did so by itself.
    Reduced {
        session: SessionId,
        key: Key,
        seq: Seq,
        to: Mode,
        flushed: u64,
    },
    /// It can't reduce yet; ask again after `until`.
    Refused {
        session: SessionId,
        key: Key,
        seq: Seq,
        until: Span,
    },
    /// It holds this from an earlier life of the arbiter, under a lease that did not end.
    Reassert {
        session: SessionId,
        key: Key,
        mode: Mode,
    },
    /// It has written everything and leaves.
    Bye {
        session: SessionId,
    },
    /// Time has passed.
    Tick,
}

/// Whose late writes the storages must refuse from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evicted {
    /// `None`: everybody's.
    pub node: Option<NodeId>,
    /// Who writes under less is refused.
    pub below: Fence,
}

/// A permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub key: Key,
    pub mode: Mode,
    pub seq: Seq,
    /// What the provider has in memory may be old.
    pub must_reload: bool,
    /// What it loads has at least this version; less is an old copy of the storage.
    pub version_min: u64,
    /// Its storages are told of these before the first load under this grant.
    pub evicted: Vec<Evicted>,
}

/// Why nothing is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The arbiter has just started, and others may still use what an earlier life granted. Ours; again later.
    Warming,
    /// A holder did not answer in time. The peer's; again.
    Timeout,
    /// Too many wait for the record, or too much waits at all. Ours; again later.
    Busy,
    /// The provider holds as many records as it may. The caller's: release some.
    Quota,
    /// The request id is in use for something else. The caller's; never again.
    Conflict,
    /// Only Share and Modify can be asked for. The caller's; never again.
    Mode,
}

impl Denied {
    /// The entry of the code registry that tells a provider of it.
    pub const fn code(self) -> &'static Code {
        match self {
            Self::Warming => &code::WARMING,
            Self::Timeout => &code::TIMEOUT,
            Self::Busy => &code::BUSY,
            Self::Quota => &code::QUOTA,
            Self::Conflict => &code::ID_CONFLICT,
            Self::Mode => &code::BAD_STATE,
        }
    }
}

/// Why a node gets no session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A later start of the node is here.
    Stale { newest: Epoch },
    /// Others keep their records in another storage of this name: they would not see each other's.
    Storage { backend: String },
    /// No room for another session.
    Sessions,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It has a session. `fresh`: a new one, in which it holds nothing; what it had in an earlier life of the arbiter it
    /// may reassert until `opens`.
    Welcome {
        conn: Generation,
        session: SessionId,
        fence: Fence,
        fresh: bool,
        opens: Mono,
    },
    /// It has none, and the connection ends.
    Refuse {
        conn: Generation,
        why: Refused,
    },
    Renewed {
        session: SessionId,
    },
    /// This session is over, or never was: the provider drops everything and logs in anew.
    Lost {
        session: SessionId,
    },
    /// The connection that a session had before has lost it.
    Close {
        conn: Generation,
    },
    Grant {
        session: SessionId,
        request: RequestId,
        grant: Grant,
    },
    Deny {
        session: SessionId,
        request: RequestId,
        why: Denied,
        retry_after: Span,
    },
    /// The provider is to use the record only like this; answered with [`Event::Reduced`] within `within`.
    Reduce {
        session: SessionId,
        key: Key,
        seq: Seq,
        to: Mode,
        within: Span,
    },
    /// `seq`: the new number under which it goes on holding the record; `None`: it does not hold it.
    Reasserted {
        session: SessionId,
        key: Key,
        seq: Option<Seq>,
    },
}
