//! A player: dials some linkd, shakes hands in one of the ways clients do, logs in, asks for things, and dials again
//! when the connection ends.

use std::collections::BTreeSet;

use base::{Mono, Span};
use bytes::Bytes;
use wire::payload::{self, Family};
use wire::{auth, code, handshake, report};

use super::env::Env;
use super::frames::{self, Asked, Way};
use super::invariants::{Saw, Seen};
use super::linkd::own;
use super::network::{ConnId, Place};
use super::talk::{Syn, Talk};

/// How long a dial and a login may take.
const LOGIN: Span = Span::secs(12);
/// A linkd not heard for so long is given up.
const SILENCE: Span = Span::secs(14);
const KEEP_ALIVE: Span = Span::secs(4);
const KEYS: &[&str] = &["attic", "cellar", "garden", "tower", "moat"];

/// How a client begins a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shake {
    /// Waits for the linkd's hello, answers, logs in.
    Waits,
    /// Asks for a handshake without encryption first.
    Asks,
    /// Says everything at once, before it has heard anything.
    Eager,
    /// Logs in without any handshake.
    Bare,
    /// Asks for business before login, and logs in then.
    Early,
    /// Handshakes twice: closed.
    Rude,
    /// Logs in a second time, as somebody else: refused.
    Twice,
    /// Says nothing: closed when its time is over.
    Mute,
}

const POLITE: &[Shake] = &[Shake::Waits, Shake::Waits, Shake::Asks, Shake::Eager, Shake::Bare];
const ODD: &[Shake] = &[Shake::Early, Shake::Rude, Shake::Twice, Shake::Mute];

#[derive(Debug)]
pub struct ClientNode {
    me: Place,
    account: String,
    version: &'static str,
    uids: u64,
    state: State,
    /// After healing: ways on which no answer came yet.
    pub owed: BTreeSet<Way>,
    /// After healing: logged in at least once since.
    pub logged_in: bool,
}

#[derive(Debug)]
enum State {
    Away { until: Mono },
    Here { conn: ConnId, shake: Shake, authed: bool, until: Mono, heard: Mono, ping: Mono, refusals: u32 },
}

impl ClientNode {
    pub fn new(me: Place, index: u8, version: &'static str) -> Self {
        Self {
            me,
            account: format!("player-{index}"),
            version,
            uids: u64::from(index + 1) * 1_000_000,
            state: State::Away { until: Mono::ZERO },
            owed: BTreeSet::new(),
            logged_in: false,
        }
    }

    /// From now on everything must work.
    pub fn heal(&mut self) {
        self.owed = Way::ALL.into();
        self.logged_in = matches!(self.state, State::Here { authed: true, .. });
    }

    pub fn is_content(&self) -> bool {
        self.owed.is_empty() && self.logged_in
    }

    pub fn is_here(&self) -> bool {
        matches!(self.state, State::Here { .. })
    }

    pub fn account(&self) -> &str {
        &self.account
    }

    /// `linkds` are the slots where one could be listening.
    pub fn tick(&mut self, env: &mut Env, linkds: &[usize]) {
        match &self.state {
            State::Away { until } if env.now >= *until => {
                if let Some(slot) = env.rng.pick(linkds) {
                    self.dial(env, slot);
                }
            }
            State::Away { .. } => {}
            State::Here { authed: false, until, .. } if env.now >= *until => self.leave(env),
            State::Here { heard, .. } if env.now.since(*heard) >= SILENCE => self.leave(env),
            State::Here { refusals, .. } if *refusals >= 4 && env.rng.one_in(3) => self.leave(env),
            State::Here { authed, ping, conn, .. } => {
                let (authed, conn, late) = (*authed, *conn, env.now >= *ping);
                if late {
                    self.say(env, conn, own(|out| handshake::keep_alive(out, 1)));
                    if let State::Here { ping, .. } = &mut self.state {
                        *ping = env.now + KEEP_ALIVE;
                    }
                }
                if authed && !env.quiet {
                    self.play(env, conn);
                }
            }
        }
    }

    fn dial(&mut self, env: &mut Env, slot: usize) {
        let odd = !env.healed && env.rng.one_in(8);
        let shake = env.rng.pick(if odd { ODD } else { POLITE }).unwrap_or(Shake::Waits);
        let conn = env.dial(self.me, slot, Syn::Client);
        let (until, heard, ping) = (env.now + LOGIN, env.now, env.now + KEEP_ALIVE);
        self.state = State::Here { conn, shake, authed: false, until, heard, ping, refusals: 0 };
        match shake {
            Shake::Eager => {
                self.say(env, conn, own(handshake::client_done));
                self.say(env, conn, frames::auth(&self.account, self.version));
            }
            Shake::Bare => self.say(env, conn, frames::auth(&self.account, self.version)),
            _ => {}
        }
    }

    fn say(&self, env: &mut Env, conn: ConnId, frame: Bytes) {
        env.send(self.me, conn, Talk::Frame(frame));
    }

    fn leave(&mut self, env: &mut Env) {
        if let State::Here { conn, .. } = self.state {
            env.close(self.me, conn);
            self.closed(env, conn);
        }
    }

    fn closed(&mut self, env: &mut Env, conn: ConnId) {
        env.see(&Seen::Client { conn, saw: Saw::Closed });
        let wait = env.rng.millis(50, 1_500);
        self.state = State::Away { until: env.now + wait };
    }

    pub fn gone(&mut self, env: &mut Env, conn: ConnId) {
        if matches!(self.state, State::Here { conn: mine, .. } if mine == conn) {
            self.closed(env, conn);
        }
    }

    /// Some of what a player wants.
    fn play(&mut self, env: &mut Env, conn: ConnId) {
        if !env.healed && env.rng.one_in(120) {
            return self.leave(env);
        }
        let count = match env.rng.below(24) {
            0 => 8,
            1..9 => 1,
            9..11 => 2,
            _ => 0,
        };
        for _ in 0..count {
            self.ask(env, conn);
        }
        // Whoever still waits to hear from a module asks there.
        if let Some(&way) = self.owed.first().filter(|_| env.healed) {
            self.ask_for(env, conn, way, true);
        }
    }

    fn ask(&mut self, env: &mut Env, conn: ConnId) {
        let way = env.rng.pick(&Way::ALL).unwrap_or(Way::Hall);
        let wants_answer = !env.rng.one_in(4);
        self.ask_for(env, conn, way, wants_answer);
    }

    fn ask_for(&mut self, env: &mut Env, conn: ConnId, way: Way, wants_answer: bool) {
        self.uids += 1;
        let key = (way == Way::Key).then(|| env.rng.pick(KEYS).unwrap_or("attic").to_owned());
        let critical = way != Way::Key && env.rng.one_in(5);
        let asked = Asked { uid: self.uids, way, critical, key, wants_answer };
        env.see(&Seen::Client { conn, saw: Saw::Asked(&asked) });
        self.say(env, conn, asked.frame());
    }

    pub fn message(&mut self, env: &mut Env, conn: ConnId, bytes: &Bytes) {
        let State::Here { conn: mine, shake, heard, .. } = &mut self.state else { return };
        if *mine != conn {
            return;
        }
        *heard = env.now;
        let shake = *shake;
        let Some(frame) = frames::open(bytes) else { return };
        let Ok((head, body)) = payload::decode(frame.payload) else { return };
        match frame.type_id {
            handshake::SHANDSHAKE0 => self.greeted(env, conn, shake),
            handshake::SHANDSHAKE => self.log_in(env, conn),
            auth::AUTH if head.code == 0 => self.authed(env, conn, shake),
            // Who logs in twice is refused and plays on as before.
            auth::AUTH => {}
            report::REPORT_ERROR => {
                let code = report::ReportError::decode(body).map_or(0, |report| report.code);
                env.see(&Seen::Client { conn, saw: Saw::Told(code) });
                // Some log in anew when their provider is gone, as the code advises.
                if code == i64::from(code::PROVIDER_BROKEN.number) && env.rng.one_in(3) {
                    self.leave(env);
                }
            }
            id if id.module().0 != 0 && head.family == Family::Response => {
                let (uid, by) = (head.session as u64, frames::answered_by(body));
                env.see(&Seen::Client { conn, saw: Saw::Answered { uid, result: head.code, by } });
                self.answered(id, head.code);
            }
            _ => {}
        }
    }

    fn greeted(&mut self, env: &mut Env, conn: ConnId, shake: Shake) {
        let done = || own(handshake::client_done);
        match shake {
            Shake::Waits | Shake::Twice => self.log_in(env, conn),
            Shake::Asks => {
                let plain = frames::whole(handshake::CHANDSHAKE, payload::Head::PROTOCOL, |out| {
                    out.extend_from_slice(&[0; 4]);
                });
                self.say(env, conn, plain);
            }
            Shake::Early => {
                self.ask_for(env, conn, Way::Hall, true);
                self.log_in(env, conn);
            }
            Shake::Rude => {
                self.say(env, conn, done());
                self.log_in(env, conn);
            }
            Shake::Eager | Shake::Bare | Shake::Mute => {}
        }
    }

    fn log_in(&self, env: &mut Env, conn: ConnId) {
        self.say(env, conn, own(handshake::client_done));
        self.say(env, conn, frames::auth(&self.account, self.version));
    }

    fn authed(&mut self, env: &mut Env, conn: ConnId, shake: Shake) {
        if let State::Here { authed, .. } = &mut self.state {
            *authed = true;
        }
        self.logged_in |= env.healed;
        if shake == Shake::Twice {
            let other = format!("other-{}", self.account);
            self.say(env, conn, frames::auth(&other, self.version));
        }
    }

    fn answered(&mut self, id: base::TypeId, result: i64) {
        let State::Here { refusals, .. } = &mut self.state else { return };
        if result != 0 {
            *refusals += 1;
            return;
        }
        *refusals = 0;
        let keyed = |way: &Way| way.is(id);
        if let Some(way) = Way::ALL.into_iter().find(keyed) {
            self.owed.remove(&way);
        }
    }
}
