//! Core: a client's way in: handshake, login, and where each of its frames goes.

use std::net::SocketAddr;

use base::{LinkSid, ModuleId, Mono, Span, TypeId};
use wire::auth::AUTH;
use wire::code::{self, Code};
use wire::handshake::{CHANDSHAKE, CHANDSHAKE_DONE, KEEP_ALIVE, is_plain};
use wire::link::message;
use wire::payload::{self, Family, Head};
use wire::report::From;
use wire::skim;
use wire::{Frame, Level};

use super::choice::For;
use super::owed::Request;
use super::provider::{OVERLOAD, ProviderRef};
use super::rate::Taken;
use super::{Action, Loss, Router};

/// The modules that providers and linkds speak between themselves; a client has no business there.
const PROVIDER_MODULES: [ModuleId; 2] = [ModuleId(11008), ModuleId(11009)];
/// A session hears of overload and missing providers at most this often; requests are always answered.
const REPORT_EVERY: Span = Span::secs(1);

/// A client at the door.
pub(super) struct Knock {
    pub token: u64,
    pub addr: SocketAddr,
    pub since: Mono,
    pub handshaken: bool,
}

/// A client's frame on its way.
#[derive(Clone, Copy)]
pub(super) struct Inbound<'a> {
    pub sid: LinkSid,
    pub type_id: TypeId,
    pub head: Head,
    pub body: &'a [u8],
    pub level: Level,
}

impl Router {
    pub(super) fn client_opened(&mut self, knock: Knock, now: Mono, actions: &mut Vec<Action>) {
        let Knock { token, addr, since, handshaken } = knock;
        if self.stopping {
            actions.push(Action::RefuseClient { token, code: &code::SHUTTING_DOWN });
            return;
        }
        let Some(sid) = self.sessions.open(now, addr) else {
            actions.push(Action::RefuseClient { token, code: &code::TOO_MANY_CONNECTIONS });
            return;
        };
        let broadcast = self.broadcasts.last();
        if let Some(session) = self.sessions.get_mut(sid) {
            session.handshake_done = handshaken;
            session.broadcast = broadcast;
            if self.rules.idle_timeout != Span::ZERO {
                session.silence_due = now + self.rules.idle_timeout;
                self.silences.insert((session.silence_due, sid));
            }
        }
        self.unauthed.insert((since + self.rules.auth_timeout, sid));
        actions.push(Action::Accept { token, sid });
    }

    pub(super) fn client_beats(&mut self, now: Mono, sid: LinkSid, beats: u32, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(sid) else { return };
        session.heard = now;
        if session.frames.take(now, self.rules.frames, beats.into()) != Taken::Within {
            self.close(sid, &code::FLOOD, actions);
        }
    }

    pub(super) fn client_frame(
        &mut self,
        now: Mono,
        sid: LinkSid,
        frame: Frame<'_>,
        actions: &mut Vec<Action>,
    ) {
        let Some(session) = self.sessions.get_mut(sid) else {
            actions.push(Action::Dropped(Loss::SessionGone));
            return;
        };
        session.heard = now;
        let taken = session.frames.take(now, self.rules.frames, 1).max(session.bytes.take(
            now,
            self.rules.bytes,
            frame.whole.len() as u64,
        ));
        let authed = session.account.is_some();
        let Ok((head, body)) = payload::decode(frame.payload) else {
            return self.close(sid, &code::BAD_FRAME, actions);
        };
        let inbound = Inbound { sid, type_id: frame.type_id, head, body, level: Level::Normal };
        let module = frame.type_id.module();
        // A refusal costs as much as an answer: only who is known and asks for something gets any.
        let worth_refusing = authed && module != ModuleId(0) && frame.type_id != AUTH;
        if taken == Taken::Flood || taken == Taken::Over && !worth_refusing {
            self.close(sid, &code::FLOOD, actions);
        } else if taken == Taken::Over && !PROVIDER_MODULES.contains(&module) {
            self.not_routed(now, inbound, &code::BUSY, Loss::RateLimited, actions);
        } else if module == ModuleId(0) {
            self.framework_frame(inbound, actions);
        } else if frame.type_id == AUTH {
            self.auth(inbound, actions);
        } else if PROVIDER_MODULES.contains(&module) {
            self.close(sid, &code::ROLE_VIOLATION, actions);
        } else if !authed {
            self.before_login(inbound, actions);
        } else {
            self.route(now, inbound, actions);
        }
    }

    fn framework_frame(&mut self, frame: Inbound<'_>, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(frame.sid) else { return };
        let sid = frame.sid;
        match frame.type_id {
            KEEP_ALIVE if frame.head.family == Family::Request => {
                actions.push(Action::KeepAlive { sid, session: frame.head.session });
            }
            // The answer to a keep-alive of ours; hearing it was the point.
            KEEP_ALIVE if frame.head.family == Family::Response => {}
            CHANDSHAKE_DONE if !session.handshake_done || base::planted::is("handshake_twice") => {
                session.handshake_done = true;
            }
            CHANDSHAKE if !is_plain(frame.body) => self.close(sid, &code::ENCRYPTION_UNSUPPORTED, actions),
            CHANDSHAKE if !session.handshake_asked && !session.handshake_done => {
                session.handshake_asked = true;
                actions.push(Action::ServerHandshake { sid });
            }
            CHANDSHAKE | CHANDSHAKE_DONE => self.close(sid, &code::HANDSHAKE_VIOLATION, actions),
            _ => self.close(sid, &code::ROLE_VIOLATION, actions),
        }
    }

    fn before_login(&mut self, frame: Inbound<'_>, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(frame.sid) else { return };
        session.unauthed_frames += 1;
        if session.unauthed_frames > self.rules.unauthed_frames_max {
            return self.close(frame.sid, &code::NOT_AUTHED, actions);
        }
        self.refuse(frame, &code::NOT_AUTHED, actions);
        if frame.head.family != Family::Request {
            actions.push(Action::Dropped(Loss::NotAuthed));
        }
        let (code, text) = (code::NOT_AUTHED.number, code::NOT_AUTHED.name.to_string());
        actions.push(Action::Report { sid: frame.sid, from: From::Link, code, text });
    }

    /// An authed session's business frame: forwarded, or refused with a reason.
    fn route(&mut self, now: Mono, frame: Inbound<'_>, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.get(frame.sid) else { return };
        let module = frame.type_id.module();
        let known = self.modules.get(&module);
        let protocol = known.and_then(|m| m.protocol(frame.type_id.protocol()));
        let frame = Inbound { level: protocol.map_or(Level::Normal, |p| p.level), ..frame };
        if frame.head.family == Family::Request && session.owed.len() >= self.rules.owed_max {
            return self.refuse(frame, &code::BUSY, actions);
        }
        // What is asked for would have to be answered on a line that is full.
        let spared = frame.head.family == Family::Response;
        if !spared && self.line.sheds(now, self.rules.out_bytes_per_second, frame.level) {
            return self.not_routed(now, frame, &code::BUSY, Loss::OutShed, actions);
        }
        let route_by = protocol.map_or(0, |p| p.route_by);
        if route_by != 0 {
            // Data routed by a key has one home for everybody, so a bind doesn't change it.
            let key = match skim::field(frame.body, route_by) {
                Ok(key) => key.map_or_else(|| base::hash::bytes(&[]), |key| key.hash()),
                Err(_) => {
                    return self.not_routed(now, frame, &code::DECODE_ERROR, Loss::BadRouteKey, actions);
                }
            };
            return self.choose_and_send(now, frame, Some(key), For::Request, actions);
        }
        if let Some(to) = session.bound(module) {
            let overloaded = self.providers.get(to).is_none_or(|p| p.load.overload >= OVERLOAD);
            if overloaded && frame.level != Level::CriticalPlus {
                return self.not_routed(now, frame, &code::PROVIDER_BUSY, Loss::Overloaded, actions);
            }
            return self.dispatch(now, frame, to, true, actions);
        }
        if frame.head.family == Family::Response {
            actions.push(Action::Dropped(Loss::StrayAnswer));
            return;
        }
        let purpose = if known.is_some_and(|m| m.dynamic) { For::Request } else { For::Bind };
        self.choose_and_send(now, frame, None, purpose, actions);
    }

    fn choose_and_send(
        &mut self,
        now: Mono,
        frame: Inbound<'_>,
        key: Option<u64>,
        purpose: For,
        actions: &mut Vec<Action>,
    ) {
        let module = frame.type_id.module();
        let Some(player) = self.sessions.get(frame.sid).map(|s| s.player()) else { return };
        match self.choose(now, player, module, key, purpose) {
            Ok(to) => {
                if purpose == For::Bind {
                    self.bind_static(frame.sid, to);
                }
                self.dispatch(now, frame, to, false, actions);
            }
            Err(code) => self.not_routed(now, frame, code, Loss::NoProvider, actions),
        }
    }

    /// Binds all static modules of the chosen provider that are not bound yet; existing binds win.
    fn bind_static(&mut self, sid: LinkSid, to: ProviderRef) {
        let Some(provider) = self.providers.get_mut(to) else { return };
        provider.bound_since_load = provider.bound_since_load.saturating_add(1);
        let Some(session) = self.sessions.get_mut(sid) else { return };
        for &module in &provider.static_modules {
            if base::planted::is("static_bind_overwrites") {
                session.binds.retain(|(m, _)| *m != module);
            }
            if session.bound(module).is_none() {
                session.binds.push((module, to));
            }
        }
    }

    fn dispatch(
        &mut self,
        now: Mono,
        frame: Inbound<'_>,
        to: ProviderRef,
        bound: bool,
        actions: &mut Vec<Action>,
    ) {
        self.open_at(frame.sid, to, actions);
        if let Some(provider) = self.providers.get_mut(to) {
            provider.requests.count(now);
        }
        let Inbound { sid, type_id, level, .. } = frame;
        if let Some(session) = self.sessions.get_mut(sid) {
            if frame.head.family == Family::Request {
                session.owed.add(to.conn, Request { type_id, session: frame.head.session });
            }
            if self.hot.looks()
                && let Some(account) = &session.account
            {
                self.hot.count(account);
            }
        }
        actions.push(Action::Dispatch { to, sid, type_id, level, bound });
    }

    /// Introduces the session to a provider that doesn't know it yet.
    pub(super) fn open_at(&mut self, sid: LinkSid, to: ProviderRef, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.get_mut(sid) else { return };
        if session.opened.contains(&to) {
            return;
        }
        session.opened.push(to);
        let opened = message::Opened {
            link_sid: sid.0,
            account: session.account.as_ref().map_or_else(String::new, |a| a.as_str().into()),
            role: session.role.map(|role| role.0),
            client_addr: session.addr.to_string(),
            app_version: session.app_version.0,
        };
        actions.push(Action::Opened { to, opened: Box::new(opened) });
    }

    /// A frame that goes nowhere: a request is answered, a one-way message counted and reported, not too often.
    fn not_routed(
        &mut self,
        now: Mono,
        frame: Inbound<'_>,
        code: &'static Code,
        loss: Loss,
        actions: &mut Vec<Action>,
    ) {
        if frame.head.family == Family::Request {
            return self.refuse(frame, code, actions);
        }
        actions.push(Action::Dropped(loss));
        let Some(session) = self.sessions.get_mut(frame.sid) else { return };
        if session.reported.is_none_or(|at| now.since(at) >= REPORT_EVERY) {
            session.reported = Some(now);
            let (code, text) = (code.number, format!("{} for {}", code.name, frame.type_id));
            actions.push(Action::Report { sid: frame.sid, from: From::Link, code, text });
        }
    }

    /// Answers a request; says nothing to anything else. An overloaded provider answers as the ancestor's Busy.
    pub(super) fn refuse(&self, frame: Inbound<'_>, code: &'static Code, actions: &mut Vec<Action>) {
        if frame.head.family == Family::Request {
            let busy = code == &code::PROVIDER_BUSY;
            let result = if busy { code::BUSY.result() } else { code.result() };
            let (sid, type_id, session) = (frame.sid, frame.type_id, frame.head.session);
            actions.push(Action::Refuse { sid, type_id, session, result });
        }
    }

    /// The worker could not hand the frame over: the outbox was full or is closing. Never a rebind.
    pub(super) fn not_sent(
        &mut self,
        to: ProviderRef,
        sid: LinkSid,
        frame: Frame<'_>,
        why: Loss,
        actions: &mut Vec<Action>,
    ) {
        let Ok((head, body)) = payload::decode(frame.payload) else { return };
        let inbound = Inbound { sid, type_id: frame.type_id, head, body, level: Level::Normal };
        if let Some(session) = self.sessions.get_mut(sid) {
            session.owed.settle(to.conn, Request { type_id: frame.type_id, session: head.session });
        }
        let gone = self.providers.get(to).is_none();
        let code = if gone { &code::NO_PROVIDER } else { &code::BUSY };
        if head.family == Family::Request && !base::planted::is("not_sent_is_silent") {
            self.refuse(inbound, code, actions);
        } else {
            actions.push(Action::Dropped(why));
        }
    }

    /// Tells the client why and ends the session.
    pub(super) fn close(&mut self, sid: LinkSid, code: &'static Code, actions: &mut Vec<Action>) {
        if self.sessions.get(sid).is_none() {
            return;
        }
        let text = code.name.to_string();
        actions.push(Action::CloseClient { sid, from: From::Link, code: code.number, text });
        self.end_session(sid, code.number, actions);
    }

    /// Ends a session: every provider that knew it hears so exactly once.
    pub(super) fn end_session(&mut self, sid: LinkSid, cause: i32, actions: &mut Vec<Action>) {
        let Some(session) = self.sessions.remove(sid) else { return };
        self.silences.remove(&(session.silence_due, sid));
        for &to in &session.opened {
            actions.push(Action::LinkBroken { to, sid, cause });
        }
    }

    pub(super) fn stop(&mut self, actions: &mut Vec<Action>) {
        self.stopping = true;
        let sids: Vec<_> = self.sessions.iter().map(|s| s.sid).collect();
        for sid in sids {
            self.close(sid, &code::SHUTTING_DOWN, actions);
        }
    }

    pub(super) fn tick(&mut self, now: Mono, actions: &mut Vec<Action>) {
        self.held_loads(now);
        self.hot.tick(now);
        while let Some(&(due, sid)) = self.unauthed.first() {
            let waiting = self.sessions.get(sid).filter(|s| s.account.is_none());
            if waiting.is_some() && due > now {
                break;
            }
            let handshaken = waiting.map(|s| s.handshake_done);
            self.unauthed.pop_first();
            match handshaken {
                Some(true) => self.close(sid, &code::AUTH_TIMEOUT, actions),
                Some(false) => self.close(sid, &code::HANDSHAKE_TIMEOUT, actions),
                None => {}
            }
        }
        if !base::planted::is("idle_never_closes") {
            self.close_silent(now, actions);
        }
    }

    /// Closes who was not heard for too long. Signs of life move nobody in the order, which would cost each frame
    /// something: whoever's turn comes is looked at, and stands further back if it was heard meanwhile.
    fn close_silent(&mut self, now: Mono, actions: &mut Vec<Action>) {
        while let Some(&(_, sid)) = self.silences.first().filter(|(due, _)| *due <= now) {
            self.silences.pop_first();
            let Some(session) = self.sessions.get_mut(sid) else { continue };
            session.silence_due = session.heard + self.rules.idle_timeout;
            if session.silence_due > now {
                self.silences.insert((session.silence_due, sid));
            } else {
                self.close(sid, &code::IDLE_TIMEOUT, actions);
            }
        }
    }
}
