//! Core: where each frame goes. One router per linkd worker; it decides, the worker performs.
//!
//! It holds the worker's client sessions, the providers connected to the worker, and the binds between them. It does
//! no I/O, reads no clock and draws no random number: what looks random is a fixed sequence of its seed.
//!
//! Reading order: [`Event`] and [`Action`] here, then `client` (a frame's way in), `choice` (which provider),
//! `provider` (announce, bind), `clash`, `load`, `push` (what providers send), `rate` and `guard` (what is refused when there is
//! too much), `session`, `owed`, `module` and `narrow` (what is remembered), `hot` and `show` (what operators see).

pub mod auth;
mod choice;
mod clash;
mod client;
mod guard;
mod hot;
mod load;
mod module;
mod narrow;
mod owed;
mod provider;
mod push;
mod rate;
mod session;
mod show;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use base::generation::{Generation, Owned};
use base::{Account, AppVersion, Epoch, LinkSid, ModuleId, Mono, NodeId, Role, ServerId, Span, TypeId};
use wire::code::Code;
use wire::link::message;
use wire::{Frame, Level};

pub use auth::{Judge, Proof};
pub use guard::{Bounds, Guard, Weight};
pub use hot::Hot;
pub use module::Choice;
pub use narrow::Narrow;
pub use owed::Request as Asked;
pub use provider::{Load, ProviderRef};
pub use push::{Pushed, SLOTS_PER_TURN};
pub use rate::{Bucket, Rate};
pub use session::{give_back_room, slot};
pub use show::{Found, Seen, Summary};

use clash::Clashes;
use client::Knock;
use guard::Line;
use module::Module;
use provider::Providers;
use push::{Broadcast, Broadcasts, Send};
use session::Sessions;

/// What a router may do and hold.
#[derive(Debug, Clone)]
pub struct Rules {
    pub worker: u8,
    /// Prefer providers of this region; empty: none is preferred.
    pub region: String,
    /// Which providers may serve a module here.
    pub narrow: Narrow,
    /// Sessions this worker may hold; the slab has no more room than this.
    pub sessions_max: usize,
    /// A session must be authed this long after it opened.
    pub auth_timeout: Span,
    /// A session not heard for this long is closed; zero never closes.
    pub idle_timeout: Span,
    pub judge: Judge,
    /// Requests of one session that may wait for their answers at once; the next one is answered Busy.
    pub owed_max: usize,
    /// Business frames before login that are answered; the next one closes.
    pub unauthed_frames_max: u8,
    /// Frames of one session, and bytes.
    pub frames: Rate,
    pub bytes: Rate,
    /// Bytes that may leave this worker for clients, smoothed over a second; 0 is no limit.
    pub out_bytes_per_second: u64,
    /// Broadcasts that may be on their way at once.
    pub broadcasts_max: usize,
    /// The largest client frame that may be broadcast.
    pub broadcast_bytes_max: usize,
    /// Chooses the fixed sequence behind weighted choices.
    pub seed: u64,
}

/// What happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A client connected. `token` is the shell's name for it until [`Action::Accept`] gives it a sid. `since`: when it
    /// was accepted, which its time to log in counts from. `handshaken`: its transport had a handshake of its own.
    ClientOpened { token: u64, addr: SocketAddr, since: Mono, handshaken: bool },
    /// Signs of life that are no frames: the pings of a WebSocket.
    ClientBeats { sid: LinkSid, beats: u32 },
    /// A whole frame of a client.
    ClientFrame { sid: LinkSid, frame: Frame<'a> },
    /// The proof of [`Action::Authenticate`] was judged.
    Authenticated { sid: LinkSid, result: Result<Account, &'static Code> },
    /// The client broke the wire's rules, or a deadline that the shell watches.
    ClientViolation { sid: LinkSid, code: &'static Code },
    /// The client's connection is gone; nothing can be sent to it any more.
    ClientClosed { sid: LinkSid },
    /// A provider connected and said who it is.
    ProviderOpened { conn: Generation, node: NodeId, epoch: Epoch },
    /// A provider's call; it is answered exactly once.
    ProviderCall { conn: Generation, call: u64, request: Request },
    /// A provider's load report.
    Loaded { conn: Generation, load: message::Load },
    /// A provider sends the frame at hand to the sessions that the head of its SEND names. `call` is answered with those
    /// it did not reach; 0 wants no answer.
    Send { conn: Generation, call: u64, head: &'a [u8], pushed: Pushed },
    /// A provider sends the frame at hand to every authed session of this main version; 0 is all. `call` is answered
    /// when it has reached all; 0 wants no answer.
    Broadcast { conn: Generation, call: u64, version: AppVersion, pushed: Pushed },
    /// The turn of a broadcast on its way; comes as long as [`Router::fans_out`].
    FanOut,
    /// A provider says which role a session plays.
    UserState { conn: Generation, sid: LinkSid, role: Option<Role> },
    /// A provider's connection is gone.
    ProviderClosed { conn: Generation },
    /// The Dispatch of this frame was not queued, and why.
    NotSent { to: ProviderRef, sid: LinkSid, frame: Frame<'a>, why: Loss },
    /// An operator ends sessions.
    Kick { who: Who, code: &'static Code, text: String },
    /// The directory's list of modules somebody registered, for telling "not now" from "never"; `None` while it is not
    /// sure to be complete.
    Registered { modules: Option<Arc<BTreeSet<ModuleId>>> },
    /// This linkd stops: every session is closed.
    Stop,
    /// Time passed.
    Tick,
}

/// Whom an operator means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    Account(Account),
    Sid(LinkSid),
}

/// A provider's call.
#[derive(Debug)]
pub enum Request {
    Announce(message::Announce),
    Bind(message::Bind),
    Subscribe(message::Subscribe),
    UnBind(message::UnBind),
    Disable(message::Disable),
    Kick(message::Kick),
    Check(message::Check),
}

/// What the shell must do, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The client's sid; greet it.
    Accept {
        token: u64,
        sid: LinkSid,
    },
    /// No room: tell the client why and close.
    RefuseClient {
        token: u64,
        code: &'static Code,
    },
    /// Send the frame at hand to this provider.
    Dispatch {
        to: ProviderRef,
        sid: LinkSid,
        type_id: TypeId,
        level: Level,
        /// The session is bound there, which the guard spares.
        bound: bool,
    },
    /// Introduce the session to this provider.
    Opened {
        to: ProviderRef,
        opened: Box<message::Opened>,
    },
    UserState {
        to: ProviderRef,
        sid: LinkSid,
        role: Option<Role>,
    },
    LinkBroken {
        to: ProviderRef,
        sid: LinkSid,
        cause: i32,
    },
    /// Answer a client's request with this result and no body.
    Refuse {
        sid: LinkSid,
        type_id: TypeId,
        session: i64,
        result: i64,
    },
    KeepAlive {
        sid: LinkSid,
        session: i64,
    },
    /// Answer a CHandshake that asks for nothing.
    ServerHandshake {
        sid: LinkSid,
    },
    /// The session is logged in; answer its Auth.
    Authed {
        sid: LinkSid,
        session: i64,
    },
    /// Judge this proof, and say so in [`Event::Authenticated`], once.
    Authenticate {
        sid: LinkSid,
        proof: Box<Proof>,
    },
    /// An Auth from this address was refused: for the counters, and for who tries too often.
    AuthFailed {
        addr: SocketAddr,
        code: &'static Code,
    },
    /// Tell the client, who stays connected.
    Report {
        sid: LinkSid,
        from: wire::report::From,
        code: i32,
        text: String,
    },
    /// Tell the client why and close.
    CloseClient {
        sid: LinkSid,
        from: wire::report::From,
        code: i32,
        text: String,
    },
    /// Send the frame at hand to this client.
    Forward {
        sid: LinkSid,
    },
    /// Keep the frame at hand under this number, for the turns of its broadcast.
    Keep {
        broadcast: u64,
    },
    /// Send a kept frame to this client.
    ForwardKept {
        sid: LinkSid,
        broadcast: u64,
    },
    /// The broadcast is over.
    Forget {
        broadcast: u64,
    },
    /// Answer a provider's call.
    Answer {
        conn: Generation,
        call: u64,
        answer: Answer,
    },
    /// Tell the provider why and close.
    CloseProvider {
        conn: Generation,
        code: &'static Code,
        text: String,
    },
    /// Tell the operator that two providers can't serve one module, and what each says of it; once for each two.
    Clash {
        code: &'static Code,
        text: String,
    },
    /// Something was not delivered, and why.
    Dropped(Loss),
}

/// The answer to a provider's call.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Done,
    Bound(message::BindResult),
    Sent(message::SendResult),
    Checked(message::CheckResult),
    Broadcast(message::BroadcastResult),
    Refused { code: &'static Code, text: String },
}

/// Why a frame was not delivered and nobody could be told. Each has a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// For a session that ended.
    SessionGone,
    /// From a connection that was already replaced or closed.
    ConnectionGone,
    /// A client's one-way message that no provider could take.
    NoProvider,
    /// A client's one-way message while its provider is overloaded.
    Overloaded,
    /// A client's one-way message that its provider's full outbox refused.
    ProviderFull,
    /// A client's answer to a request nobody sent.
    StrayAnswer,
    /// A client's one-way message whose routing field could not be read.
    BadRouteKey,
    /// A client's one-way message before login.
    NotAuthed,
    /// A load report older than one already seen, or out of range.
    StaleLoad,
    /// A load report that was replaced by a newer one before its turn came.
    LoadCoalesced,
    /// A client's one-way message beyond the session's rate.
    RateLimited,
    /// A client's sheddable message, given up because its provider is crowded.
    ProviderShed,
    /// A message to or from a client, given up because more leaves this linkd than may.
    OutShed,
    /// Meant for a client that reads too slowly, which lost its connection by it.
    SlowReader,
    /// A broadcast that is too large, or one too many.
    BroadcastRefused,
    /// A frame for clients that is larger than any client takes.
    TooLarge,
    /// A provider's answer to a call nobody made.
    StrayReply,
}

impl Loss {
    pub const ALL: [Loss; 17] = [
        Loss::SessionGone,
        Loss::ConnectionGone,
        Loss::NoProvider,
        Loss::Overloaded,
        Loss::ProviderFull,
        Loss::StrayAnswer,
        Loss::BadRouteKey,
        Loss::NotAuthed,
        Loss::StaleLoad,
        Loss::LoadCoalesced,
        Loss::RateLimited,
        Loss::ProviderShed,
        Loss::OutShed,
        Loss::SlowReader,
        Loss::BroadcastRefused,
        Loss::TooLarge,
        Loss::StrayReply,
    ];

    /// The counter's label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Loss::SessionGone => "session_gone",
            Loss::ConnectionGone => "connection_gone",
            Loss::NoProvider => "no_provider",
            Loss::Overloaded => "overloaded",
            Loss::ProviderFull => "provider_full",
            Loss::StrayAnswer => "stray_answer",
            Loss::BadRouteKey => "bad_route_key",
            Loss::NotAuthed => "not_authed",
            Loss::StaleLoad => "stale_load",
            Loss::LoadCoalesced => "load_coalesced",
            Loss::RateLimited => "rate_limited",
            Loss::ProviderShed => "provider_shed",
            Loss::OutShed => "out_shed",
            Loss::SlowReader => "slow_reader",
            Loss::BroadcastRefused => "broadcast_refused",
            Loss::TooLarge => "too_large",
            Loss::StrayReply => "stray_reply",
        }
    }
}

/// The decisions of one worker. See the module's page.
#[derive(Debug)]
pub struct Router {
    rules: Rules,
    sessions: Sessions,
    providers: Providers,
    modules: BTreeMap<ModuleId, Module>,
    /// Which connection speaks for a node.
    nodes: Owned<NodeId, ()>,
    /// The newest epoch seen of each node, kept after its connection: an older one is refused.
    epochs: BTreeMap<NodeId, Epoch>,
    servers: Owned<ServerId, NodeId>,
    clashes: Clashes,
    /// What the directory lists; `None` while it can't say what it does not list.
    registered: Option<Arc<BTreeSet<ModuleId>>>,
    /// Sessions in the order they must have logged in by.
    unauthed: BTreeSet<(Mono, LinkSid)>,
    /// Every session, in the order in which its silence is looked at; empty when silence never closes.
    silences: BTreeSet<(Mono, LinkSid)>,
    draws: u64,
    sends: u64,
    broadcasts: Broadcasts,
    line: Line,
    hot: Hot,
    stopping: bool,
}

impl Router {
    pub fn new(rules: Rules) -> Self {
        Self {
            sessions: Sessions::new(rules.worker, rules.sessions_max),
            rules,
            providers: Providers::default(),
            modules: BTreeMap::new(),
            nodes: Owned::default(),
            epochs: BTreeMap::new(),
            servers: Owned::default(),
            clashes: Clashes::default(),
            registered: None,
            sends: 0,
            broadcasts: Broadcasts::default(),
            line: Line::default(),
            hot: Hot::default(),
            unauthed: BTreeSet::new(),
            silences: BTreeSet::new(),
            draws: 0,
            stopping: false,
        }
    }

    /// Takes one event and appends what must be done about it.
    pub fn step(&mut self, now: Mono, event: Event<'_>, actions: &mut Vec<Action>) {
        match event {
            Event::ClientFrame { sid, frame } => self.client_frame(now, sid, frame, actions),
            Event::Send { conn, call, head, pushed } => {
                self.send(now, Send { conn, call, head, pushed }, actions)
            }
            Event::ClientOpened { token, addr, since, handshaken } => {
                self.client_opened(Knock { token, addr, since, handshaken }, now, actions);
            }
            Event::ClientBeats { sid, beats } => self.client_beats(now, sid, beats, actions),
            Event::Authenticated { sid, result } => self.authenticated(sid, result, actions),
            Event::ClientViolation { sid, code } => self.close(sid, code, actions),
            Event::ClientClosed { sid } => self.end_session(sid, 0, actions),
            Event::ProviderOpened { conn, node, epoch } => self.provider_opened(conn, node, epoch, actions),
            Event::ProviderCall { conn, call, request } => self.provider_call(conn, call, request, actions),
            Event::Loaded { conn, load } => self.loaded(now, conn, load, actions),
            Event::Broadcast { conn, call, version, pushed } => {
                self.broadcast(Broadcast { conn, call, version, pushed }, actions);
            }
            Event::FanOut => self.fan_out(now, actions),
            Event::UserState { conn, sid, role } => self.user_state(conn, sid, role, actions),
            Event::ProviderClosed { conn } => self.provider_closed(conn, actions),
            Event::NotSent { to, sid, frame, why } => self.not_sent(to, sid, frame, why, actions),
            Event::Kick { who, code, text } => self.kick(&who, code, &text, actions),
            Event::Registered { modules } => self.registered = modules,
            Event::Stop => self.stop(actions),
            Event::Tick => self.tick(now, actions),
        }
    }

    /// The slab slot of a provider's connection, until it closes.
    pub fn reference(&self, conn: Generation) -> Option<ProviderRef> {
        self.providers.iter().find(|p| p.conn == conn).map(|p| p.reference())
    }

    /// What the router promises itself, for tests and simulation; O(everything).
    pub fn check(&self) {
        self.sessions.check();
        let watched = if self.rules.idle_timeout == Span::ZERO { 0 } else { self.sessions.len() };
        assert_eq!(self.silences.len(), watched, "silences are not those of the sessions");
        for session in self.sessions.iter() {
            let place = (session.silence_due, session.sid);
            assert!(watched == 0 || self.silences.contains(&place), "{} may be silent for ever", session.sid);
            for &(module, to) in &session.binds {
                assert!(self.providers.get(to).is_some(), "{} is bound to a gone provider", session.sid);
                let count = session.binds.iter().filter(|(m, _)| *m == module).count();
                assert_eq!(count, 1, "{} has two homes for module {module}", session.sid);
            }
            for &to in &session.opened {
                assert!(self.providers.get(to).is_some(), "{} is open at a gone provider", session.sid);
            }
            assert!(session.owed.len() <= self.rules.owed_max, "{} is owed too much", session.sid);
            for conn in session.owed.conns() {
                let open = session.opened.iter().any(|to| to.conn == conn);
                assert!(open, "{} is owed an answer by {conn}, which does not know it", session.sid);
            }
            assert!(
                session.account.is_none() || session.authing.is_none(),
                "{} is judged again",
                session.sid
            );
            assert!(
                session.account.is_some() || session.binds.is_empty(),
                "{} bound before login",
                session.sid
            );
        }
        for (id, module) in &self.modules {
            for &p in &module.providers {
                let provider = self.providers.get(p);
                assert!(
                    provider.is_some_and(|p| p.serves(*id)),
                    "module {id} lists a provider that doesn't serve it"
                );
            }
            assert_eq!(module.ring.len(), module.providers.len(), "the ring of module {id} is stale");
        }
    }
}
