//! What each router was told, kept beside it: which provider announced what, who logged in, which binds were granted.
//! A promise about a choice is judged by this and not by what the router remembers.

use std::collections::{BTreeMap, BTreeSet};

use base::{AppVersion, Generation, LinkSid, ModuleId, NodeId};
use linkd::router::{Action, Answer};
use wire::link::message;

use super::super::frames::{ROOM, Said};
use super::super::input::Input;
use super::super::talk::Ask;
use super::{RouterId, Seen};

#[derive(Debug, Default)]
pub struct Told {
    routers: BTreeMap<RouterId, Router>,
}

#[derive(Debug, Default)]
pub struct Router {
    pub providers: BTreeMap<Generation, Provider>,
    pub sessions: BTreeMap<LinkSid, Session>,
}

/// A provider by what it said and was not refused.
#[derive(Debug)]
pub struct Provider {
    pub node: NodeId,
    pub announced: bool,
    pub version: AppVersion,
    pub disabled: bool,
    pub overload: u32,
    load_seq: u64,
    pub modules: BTreeSet<ModuleId>,
}

#[derive(Debug, Default)]
pub struct Session {
    pub account: Option<String>,
    pub version: AppVersion,
    /// Which connection the requests of a module must go to.
    pub binds: BTreeMap<ModuleId, Generation>,
}

impl Provider {
    /// Whether it may be chosen for something new.
    pub fn is_eligible(&self, module: ModuleId, player: AppVersion) -> bool {
        self.announced
            && !self.disabled
            && self.overload < 2
            && self.modules.contains(&module)
            && player.matches(self.version)
    }
}

impl Told {
    pub fn router(&self, at: RouterId) -> Option<&Router> {
        self.routers.get(&at)
    }

    pub fn provider(&self, at: RouterId, conn: Generation) -> Option<&Provider> {
        self.routers.get(&at)?.providers.get(&conn)
    }

    pub fn session(&self, at: RouterId, sid: LinkSid) -> Option<&Session> {
        self.routers.get(&at)?.sessions.get(&sid)
    }

    pub fn hear(&mut self, seen: &Seen<'_>) {
        match seen {
            Seen::Router { at, input, actions } => self.routers.entry(*at).or_default().hear(input, actions),
            Seen::Ended { place } => self.routers.retain(|at, _| at.place != *place),
            _ => {}
        }
    }
}

impl Router {
    fn hear(&mut self, input: &Input, actions: &[Action]) {
        match input {
            Input::ProviderOpened { conn, node, .. } => self.opened(*conn, node.clone()),
            Input::Loaded { conn, load } => {
                if let Some(provider) = self.providers.get_mut(conn)
                    && load.seq > provider.load_seq
                {
                    (provider.load_seq, provider.overload) = (load.seq, load.overload);
                }
            }
            Input::ProviderClosed { conn } => self.closed(*conn),
            Input::ClientClosed { sid } => {
                self.sessions.remove(sid);
            }
            _ => {}
        }
        for action in actions {
            match (action, input) {
                (Action::Accept { sid, .. }, _) => {
                    self.sessions.insert(*sid, Session::default());
                }
                (Action::Authed { sid, .. }, Input::Frame { said: Said::Auth { account, version }, .. }) => {
                    let session = self.sessions.entry(*sid).or_default();
                    (session.account, session.version) = (Some(account.clone()), *version);
                }
                (Action::Dispatch { to, sid, type_id, .. }, _) => {
                    self.dispatched(*sid, type_id.module(), to.conn)
                }
                (Action::Answer { answer, .. }, Input::Call { conn, ask, .. }) => {
                    self.answered(*conn, ask, answer)
                }
                (Action::CloseProvider { conn, .. }, _) => self.closed(*conn),
                (Action::CloseClient { sid, .. }, _) => {
                    self.sessions.remove(sid);
                }
                _ => {}
            }
        }
    }

    fn opened(&mut self, conn: Generation, node: NodeId) {
        let provider = Provider {
            node,
            announced: false,
            version: AppVersion::default(),
            disabled: false,
            overload: 0,
            load_seq: 0,
            modules: BTreeSet::new(),
        };
        self.providers.insert(conn, provider);
    }

    fn closed(&mut self, conn: Generation) {
        self.providers.remove(&conn);
        for session in self.sessions.values_mut() {
            session.binds.retain(|_, to| *to != conn);
        }
    }

    /// A first static request binds all static modules of its provider that are not bound yet.
    fn dispatched(&mut self, sid: LinkSid, module: ModuleId, conn: Generation) {
        let (Some(session), Some(provider)) = (self.sessions.get_mut(&sid), self.providers.get(&conn)) else {
            return;
        };
        if module != ROOM && !session.binds.contains_key(&module) {
            for &module in provider.modules.iter().filter(|&&module| module != ROOM) {
                session.binds.entry(module).or_insert(conn);
            }
        }
    }

    fn answered(&mut self, conn: Generation, ask: &Ask, answer: &Answer) {
        let Some(provider) = self.providers.get_mut(&conn) else { return };
        match (ask, answer) {
            (_, Answer::Refused { .. }) => {}
            (Ask::Announce(announce), _) => {
                provider.announced = true;
                provider.version = AppVersion(announce.app_version);
                provider.disabled = announce.disabled;
            }
            (Ask::Bind(bind), Answer::Bound(result)) => {
                let granted = |sid: &&u64| !result.refused.contains(sid);
                for &sid in bind.link_sids.iter().filter(granted) {
                    if let Some(session) = self.sessions.get_mut(&LinkSid(sid)) {
                        session.binds.extend(bind.modules.iter().map(|spec| (ModuleId(spec.id), conn)));
                    }
                }
            }
            (
                Ask::Bind(message::Bind { modules, .. }) | Ask::Subscribe(message::Subscribe { modules }),
                _,
            ) => {
                provider.modules.extend(modules.iter().map(|spec| ModuleId(spec.id)));
            }
            (Ask::UnBind(unbind), _) if unbind.link_sids.is_empty() => {
                provider.modules.retain(|module| !unbind.modules.contains(&module.0));
            }
            (Ask::UnBind(unbind), _) => {
                for &sid in &unbind.link_sids {
                    if let Some(session) = self.sessions.get_mut(&LinkSid(sid)) {
                        session.binds.retain(|module, to| *to != conn || !unbind.modules.contains(&module.0));
                    }
                }
            }
            (Ask::Disable(disable), _) => provider.disabled = disable.disabled,
            (Ask::Kick(_), _) => {}
        }
    }
}
