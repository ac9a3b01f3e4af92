//! The arbiter's process: the core, and the connections in front of it as its server keeps them.

use std::collections::BTreeMap;

use base::{Epoch, Generation, Mono, NodeId, Span};
use global_cache::arbiter::{Action, Arbiter, Event, Key, Mode, Refused, Seq, SessionId, Settings};
use tables::arbiter::said::{event, heard};
use wire::code;

use super::talk::{ConnId, Down, Up};

/// Something that the core was told, with what it said and what was so before.
#[derive(Debug)]
pub struct Judged {
    pub event: Event,
    pub actions: Vec<Action>,
    /// Of the record that the event is about: who held it before.
    pub before: Vec<(NodeId, Mode, Seq)>,
    /// And after.
    pub after: Vec<(NodeId, Mode, Seq)>,
}

/// See the module.
#[derive(Debug)]
pub struct Court {
    pub core: Arbiter,
    pub epoch: Epoch,
    /// Which session each connection has.
    open: BTreeMap<ConnId, Option<SessionId>>,
    /// The connection of each session.
    conns: BTreeMap<SessionId, ConnId>,
}

/// What is to be sent, and connections that end after it.
#[derive(Debug, Default)]
pub struct Sends {
    pub down: Vec<(ConnId, Down)>,
    pub closed: Vec<ConnId>,
    pub judged: Vec<Judged>,
}

pub fn node(who: usize) -> NodeId {
    NodeId::new(&format!("p{who}")).unwrap_or_else(|_| panic!("p{who} is a node's name"))
}

impl Court {
    pub fn new(epoch: u64, now: Mono, first: bool) -> Self {
        let mut settings = Settings::new(Epoch(epoch));
        if first {
            settings.grace = Span::ZERO;
        }
        let core = Arbiter::new(settings, now);
        Self { core, epoch: Epoch(epoch), open: BTreeMap::new(), conns: BTreeMap::new() }
    }

    pub fn opened(&mut self, conn: ConnId) {
        self.open.insert(conn, None);
    }

    pub fn closed(&mut self, conn: ConnId) {
        if let Some(Some(session)) = self.open.remove(&conn)
            && self.conns.get(&session) == Some(&conn)
        {
            self.conns.remove(&session);
        }
    }

    pub fn tick(&mut self, now: Mono, sends: &mut Sends) {
        self.step(now, Event::Tick, None, sends);
    }

    pub fn hear(&mut self, now: Mono, conn: ConnId, up: Up, sends: &mut Sends) {
        let Some(session) = self.open.get(&conn).copied() else { return };
        let event = match (up, session) {
            (Up::Login { place, sent }, _) => {
                let (conn_name, epoch) = (Generation(conn), Epoch(place.life));
                let event =
                    Event::Login { conn: conn_name, node: node(place.who), epoch, storages: Vec::new() };
                return self.step(now, event, Some((conn, Down::Renewed { sent })), sends);
            }
            (_, None) => return self.end(conn, code::NOT_LOGGED_IN.number, sends),
            (Up::Renew { sent }, Some(session)) => {
                let answer = Some((conn, Down::Renewed { sent }));
                return self.step(now, Event::Renew { session }, answer, sends);
            }
            (Up::Bye, Some(session)) => {
                return self.step(now, Event::Bye { session }, Some((conn, Down::Done)), sends);
            }
            (Up::Word(word), Some(session)) => event(session, word),
        };
        self.step(now, event, None, sends);
    }

    /// `answer`: what the connection's call gets if the core is content.
    fn step(&mut self, now: Mono, event: Event, answer: Option<(ConnId, Down)>, sends: &mut Sends) {
        let key = key_of(&event);
        let before = self.holders(key);
        let mut actions = Vec::new();
        self.core.step(now, event.clone(), &mut actions);
        for action in &actions {
            self.perform(action, &answer, sends);
        }
        let after = self.holders(key);
        sends.judged.push(Judged { event, actions, before, after });
    }

    fn holders(&self, key: Option<Key>) -> Vec<(NodeId, Mode, Seq)> {
        let Some(key) = key else { return Vec::new() };
        let held = self.core.lookup(key).into_iter();
        held.map(|(node, mode, seq)| (node.clone(), mode, seq)).collect()
    }

    fn perform(&mut self, action: &Action, answer: &Option<(ConnId, Down)>, sends: &mut Sends) {
        let asking = answer.as_ref().map(|(conn, _)| *conn);
        match action {
            Action::Welcome { conn, session, fence, .. } => {
                self.conns.insert(*session, conn.0);
                self.open.insert(conn.0, Some(*session));
                if let Some((conn, Down::Renewed { sent })) = answer {
                    sends.down.push((*conn, Down::Welcome { sent: *sent, fence: *fence }));
                }
            }
            Action::Refuse { conn, why } => {
                let code = match why {
                    Refused::Stale { .. } => &code::STALE_EPOCH,
                    Refused::Storage { .. } => &code::OTHER_STORAGE,
                    Refused::Sessions => &code::LIMIT,
                };
                self.end(conn.0, code.number, sends);
            }
            Action::Renewed { .. } => sends.down.extend(answer.clone()),
            Action::Lost { session } => {
                if let Some(conn) = self.conns.get(session).copied() {
                    self.end(conn, code::NOT_LOGGED_IN.number, sends);
                }
            }
            Action::Close { conn } => {
                if asking == Some(conn.0) {
                    sends.down.extend(answer.clone());
                }
                self.end(conn.0, code::SUPERSEDED.number, sends);
            }
            other => {
                let Some((session, heard)) = heard(other) else { return };
                if let Some(conn) = self.conns.get(&session) {
                    sends.down.push((*conn, Down::Heard(heard)));
                }
            }
        }
    }

    fn end(&mut self, conn: ConnId, code: i32, sends: &mut Sends) {
        if self.open.contains_key(&conn) {
            sends.down.push((conn, Down::Goodbye(code)));
            sends.closed.push(conn);
        }
    }
}

fn key_of(event: &Event) -> Option<Key> {
    match event {
        Event::Acquire { ask, .. } => Some(ask.key),
        Event::Reduced { key, .. } | Event::Refused { key, .. } | Event::Reassert { key, .. } => Some(*key),
        _ => None,
    }
}
