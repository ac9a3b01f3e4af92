//! What travels on a connection. Client frames are real bytes; between nodes it is the messages of `wire`.

use std::fmt;

use base::{AppVersion, Epoch, LinkSid, NodeId, TypeId};
use bytes::Bytes;
use linkd::router::{Answer, Request};
use wire::directory::{from_directory, to_directory};
use wire::link::{LinkBroken, UserState, message};

/// Who dials and what for.
#[derive(Debug, Clone)]
pub enum Syn {
    Client,
    Provider {
        node: NodeId,
        epoch: Epoch,
        worker: u8,
    },
    /// A node to the directory.
    Member,
}

/// A provider's call to a linkd. Unlike the router's own type it can be looked at again after it was said.
#[derive(Debug, Clone)]
pub enum Ask {
    Announce(message::Announce),
    Bind(message::Bind),
    Subscribe(message::Subscribe),
    UnBind(message::UnBind),
    Disable(message::Disable),
    Kick(message::Kick),
}

impl Ask {
    pub fn request(&self) -> Request {
        match self.clone() {
            Ask::Announce(message) => Request::Announce(message),
            Ask::Bind(message) => Request::Bind(message),
            Ask::Subscribe(message) => Request::Subscribe(message),
            Ask::UnBind(message) => Request::UnBind(message),
            Ask::Disable(message) => Request::Disable(message),
            Ask::Kick(message) => Request::Kick(message),
        }
    }
}

/// One message.
#[derive(Debug)]
pub enum Talk {
    Syn(Syn),
    /// One whole frame of the client wire.
    Frame(Bytes),
    /// A linkd's answer to a provider's hello.
    Hello {
        node: NodeId,
        epoch: Epoch,
    },
    Call {
        call: u64,
        ask: Ask,
    },
    Reply {
        call: u64,
        answer: Answer,
    },
    Load(message::Load),
    Send {
        sids: Vec<u8>,
        frame: Bytes,
    },
    Broadcast {
        version: AppVersion,
        frame: Bytes,
    },
    UserState(UserState),
    Opened(Box<message::Opened>),
    Dispatch {
        sid: LinkSid,
        type_id: TypeId,
        payload: Bytes,
    },
    LinkBroken(LinkBroken),
    Goodbye,
    Ping,
    Pong,
    To(to_directory::Kind),
    From(from_directory::Kind),
}

impl Talk {
    /// What the directory says by itself, and nobody asks for again.
    pub fn is_notice(&self) -> bool {
        use from_directory::Kind::{Delta, Offline};
        matches!(self, Talk::From(Delta(_) | Offline(_)))
    }

    /// The same notice once more.
    pub fn again(&self) -> Option<Self> {
        match self {
            Talk::From(kind) if self.is_notice() => Some(Talk::From(kind.clone())),
            _ => None,
        }
    }
}

/// Short, for the trace.
impl fmt::Display for Talk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Talk::Frame(bytes) => f.write_str(&super::frames::show(bytes)),
            Talk::Send { sids, frame } => {
                write!(f, "send to {}: {}", sids.len() / 8, super::frames::show(frame))
            }
            Talk::Broadcast { frame, .. } => write!(f, "broadcast: {}", super::frames::show(frame)),
            Talk::Dispatch { sid, type_id, payload } => {
                write!(f, "dispatch {sid} {type_id}, {} bytes", payload.len())
            }
            other => write!(f, "{other:?}"),
        }
    }
}
