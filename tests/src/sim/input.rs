//! The router's events in a form that owns its bytes and can be shown to whoever watches.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use base::{AppVersion, Epoch, Generation, LinkSid, ModuleId, Mono, NodeId, Role};
use bytes::Bytes;
use linkd::router::{Asked, Event, Loss, ProviderRef, Pushed};
use wire::Frame;
use wire::link::message;
use wire::payload::{self, Family};

use super::frames::{self, Said};
use super::talk::Ask;

#[derive(Debug, Clone)]
pub enum Input {
    ClientOpened { token: u64, addr: SocketAddr, since: Mono },
    Frame { sid: LinkSid, said: Said, bytes: Bytes },
    ClientClosed { sid: LinkSid },
    ProviderOpened { conn: Generation, node: NodeId, epoch: Epoch },
    Call { conn: Generation, call: u64, ask: Ask },
    Loaded { conn: Generation, load: message::Load },
    Send { conn: Generation, sids: Vec<u8>, frame: Bytes },
    Broadcast { conn: Generation, version: AppVersion, frame: Bytes },
    UserState { conn: Generation, sid: LinkSid, role: Option<Role> },
    ProviderClosed { conn: Generation },
    NotSent { to: ProviderRef, sid: LinkSid, bytes: Bytes },
    Registered { modules: Arc<BTreeSet<ModuleId>> },
    FanOut,
    Tick,
}

impl Input {
    /// `None`: the bytes are no frame.
    pub fn event(&self) -> Option<Event<'_>> {
        Some(match self {
            Input::ClientOpened { token, addr, since } => {
                Event::ClientOpened { token: *token, addr: *addr, since: *since, handshaken: false }
            }
            Input::Frame { sid, bytes, .. } => Event::ClientFrame { sid: *sid, frame: frame(bytes)? },
            Input::ClientClosed { sid } => Event::ClientClosed { sid: *sid },
            Input::ProviderOpened { conn, node, epoch } => {
                Event::ProviderOpened { conn: *conn, node: node.clone(), epoch: *epoch }
            }
            Input::Call { conn, call, ask } => {
                Event::ProviderCall { conn: *conn, call: *call, request: ask.request() }
            }
            Input::Loaded { conn, load } => Event::Loaded { conn: *conn, load: *load },
            Input::Send { conn, sids, frame } => {
                Event::Send { conn: *conn, call: 0, head: sids, pushed: pushed(frame) }
            }
            Input::Broadcast { conn, version, frame } => {
                Event::Broadcast { conn: *conn, call: 0, version: *version, pushed: pushed(frame) }
            }
            Input::FanOut => Event::FanOut,
            Input::UserState { conn, sid, role } => Event::UserState { conn: *conn, sid: *sid, role: *role },
            Input::ProviderClosed { conn } => Event::ProviderClosed { conn: *conn },
            Input::NotSent { to, sid, bytes } => {
                Event::NotSent { to: *to, sid: *sid, frame: frame(bytes)?, why: Loss::ProviderFull }
            }
            Input::Registered { modules } => Event::Registered { modules: Some(modules.clone()) },
            Input::Tick => Event::Tick,
        })
    }

    /// The provider's connection that says this.
    pub fn conn(&self) -> Option<Generation> {
        match self {
            Input::Call { conn, .. }
            | Input::Loaded { conn, .. }
            | Input::Send { conn, .. }
            | Input::Broadcast { conn, .. }
            | Input::UserState { conn, .. }
            | Input::ProviderClosed { conn } => Some(*conn),
            _ => None,
        }
    }

    /// What a Forward of this step carries.
    pub fn forwarded(&self) -> Option<&Bytes> {
        match self {
            Input::Send { frame, .. } | Input::Broadcast { frame, .. } => Some(frame),
            _ => None,
        }
    }
}

fn pushed(frame: &Bytes) -> Pushed {
    let answers = |bytes: &[u8]| {
        let frame = frames::open(bytes)?;
        let (head, _) =
            payload::decode(frame.payload).ok().filter(|(head, _)| head.family == Family::Response)?;
        Some(Asked { type_id: frame.type_id, session: head.session })
    };
    Pushed { level: wire::Level::Normal, bytes: frame.len(), reply: answers(frame) }
}

fn frame(bytes: &[u8]) -> Option<Frame<'_>> {
    frames::open(bytes)
}
