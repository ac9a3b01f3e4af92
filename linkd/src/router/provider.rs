//! Core: the providers connected to one worker: announce, bind, subscribe, load, and what their end means.

use base::generation::Generation;
use base::{AppVersion, Epoch, LinkSid, ModuleId, Mono, NodeId, Ring, Role, ServerId};
use wire::code::{self, Code};
use wire::link::{BIND_SIDS_MAX, MODULES_MAX, message};
use wire::report::From;

use super::module::Module;
use super::rate::Bucket;
use super::{Action, Answer, Asked, Loss, Request, Router, Who};

/// A provider's connection: its slab slot, and the generation that tells it from later users of the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderRef {
    pub slot: u32,
    pub conn: Generation,
}

/// The overload level at which only critical_plus runs.
pub const OVERLOAD: u32 = 2;

/// A provider's last accepted load report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    pub seq: u64,
    pub online: u32,
    pub online_new: u32,
    pub propose_max_online: u32,
    pub max_online_new: u32,
    pub overload: u32,
}

/// Requests forwarded in each of the last seconds.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    per_second: [u32; 5],
    second: u64,
}

impl Requests {
    pub fn count(&mut self, now: Mono) {
        self.advance(now);
        let slot = &mut self.per_second[(self.second % 5) as usize];
        *slot = slot.saturating_add(1);
    }

    pub fn last_5_s(&self, now: Mono) -> u32 {
        let mut copy = self.clone();
        copy.advance(now);
        copy.per_second.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    fn advance(&mut self, now: Mono) {
        let second = now.0 / 1_000_000;
        for passed in 1..=second.saturating_sub(self.second).min(5) {
            self.per_second[((self.second + passed) % 5) as usize] = 0;
        }
        self.second = self.second.max(second);
    }
}

/// One connected provider.
#[derive(Debug)]
pub struct Provider {
    slot: u32,
    pub conn: Generation,
    pub node: NodeId,
    pub announced: bool,
    /// Its first Bind came; Subscribe may follow.
    pub bound: bool,
    pub server: ServerId,
    pub app_version: AppVersion,
    pub region: String,
    /// The prefix of the group it belongs to.
    pub group: String,
    pub disabled: bool,
    /// It judges the proofs of logins.
    pub authenticator: bool,
    pub load: Load,
    /// Sessions bound here since the last report, which doesn't know them yet.
    pub bound_since_load: u32,
    /// How fast its load reports come, and the newest one that came too fast.
    pub reports: Bucket,
    pub held_load: Option<message::Load>,
    pub requests: Requests,
    pub static_modules: Vec<ModuleId>,
    pub dynamic_modules: Vec<ModuleId>,
    /// Modules it offers that this gateway takes from others.
    pub narrowed: Vec<ModuleId>,
}

impl Provider {
    pub fn reference(&self) -> ProviderRef {
        ProviderRef { slot: self.slot, conn: self.conn }
    }

    pub fn serves(&self, module: ModuleId) -> bool {
        self.static_modules.contains(&module) || self.dynamic_modules.contains(&module)
    }

    /// Players it still wants.
    pub fn room(&self) -> u64 {
        let online = self.load.online.saturating_add(self.bound_since_load);
        self.load.propose_max_online.saturating_sub(online).into()
    }

    /// Whether it is within its login rate; 0 is no limit.
    pub fn takes_logins(&self) -> bool {
        let new = self.load.online_new.saturating_add(self.bound_since_load);
        self.load.max_online_new == 0 || new <= self.load.max_online_new
    }
}

/// All providers of a worker, in a slab; few, so looking through all of them is cheap.
#[derive(Debug, Default)]
pub struct Providers {
    slots: Vec<Option<Provider>>,
}

impl Providers {
    pub fn open(&mut self, conn: Generation, node: NodeId) {
        let index = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[index] = Some(Provider {
            slot: index as u32,
            conn,
            node,
            announced: false,
            bound: false,
            server: ServerId::default(),
            app_version: AppVersion::default(),
            region: String::new(),
            group: String::new(),
            disabled: true,
            authenticator: false,
            load: Load::default(),
            bound_since_load: 0,
            reports: Bucket::default(),
            held_load: None,
            requests: Requests::default(),
            static_modules: Vec::new(),
            dynamic_modules: Vec::new(),
            narrowed: Vec::new(),
        });
    }

    pub fn get(&self, to: ProviderRef) -> Option<&Provider> {
        self.slots.get(to.slot as usize)?.as_ref().filter(|p| p.conn == to.conn)
    }

    pub fn get_mut(&mut self, to: ProviderRef) -> Option<&mut Provider> {
        self.slots.get_mut(to.slot as usize)?.as_mut().filter(|p| p.conn == to.conn)
    }

    pub fn by_conn(&mut self, conn: Generation) -> Option<&mut Provider> {
        self.slots.iter_mut().flatten().find(|p| p.conn == conn)
    }

    pub fn remove(&mut self, conn: Generation) -> Option<Provider> {
        self.slots.iter_mut().find(|slot| slot.as_ref().is_some_and(|p| p.conn == conn))?.take()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Provider> {
        self.slots.iter_mut().flatten()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.slots.iter().flatten()
    }
}

type Outcome = Result<Answer, (&'static Code, String)>;

impl Router {
    pub(super) fn provider_opened(
        &mut self,
        conn: Generation,
        node: NodeId,
        epoch: Epoch,
        actions: &mut Vec<Action>,
    ) {
        let newest = self.epochs.entry(node.clone()).or_insert(epoch);
        if epoch < *newest {
            let text = format!("{node} was already here with epoch {newest}, you say {epoch}");
            actions.push(Action::CloseProvider { conn, code: &code::STALE_EPOCH, text });
            return;
        }
        *newest = epoch;
        // The newest connection of a node wins; the one before is closed by its own identity.
        if let Some(old) = self.nodes.owner(&node) {
            let text = format!("{node} connected anew");
            actions.push(Action::CloseProvider { conn: old, code: &code::SUPERSEDED, text });
            if !base::planted::is("old_connection_stays") {
                self.provider_closed(old, actions);
            }
        }
        self.nodes.insert(node.clone(), conn, ());
        self.providers.open(conn, node);
    }

    pub(super) fn provider_call(
        &mut self,
        conn: Generation,
        call: u64,
        request: Request,
        actions: &mut Vec<Action>,
    ) {
        let Some(provider) = self.providers.by_conn(conn) else {
            actions.push(Action::Dropped(Loss::ConnectionGone));
            return;
        };
        let (announced, bound) = (provider.announced, provider.bound);
        let in_order = match &request {
            Request::Announce(_) => !announced,
            Request::Subscribe(_) => announced && bound,
            _ => announced,
        };
        if !in_order {
            let text = "announce once, then bind, then subscribe".to_string();
            actions.push(Action::CloseProvider { conn, code: &code::PROTOCOL_ORDER, text });
            self.provider_closed(conn, actions);
            return;
        }
        let outcome = match request {
            Request::Announce(announce) => self.announce(conn, announce),
            Request::Bind(bind) if bind.link_sids.is_empty() => {
                self.serve(conn, &bind.modules, false, actions)
            }
            Request::Bind(bind) => self.bind_sessions(conn, &bind, actions),
            Request::Subscribe(subscribe) => self.serve(conn, &subscribe.modules, true, actions),
            Request::UnBind(unbind) => self.unbind(conn, &unbind),
            Request::Disable(disable) => {
                self.with(conn, |provider| provider.disabled = disable.disabled);
                Ok(Answer::Done)
            }
            Request::Kick(kick) => self.provider_kick(kick, actions),
            Request::Check(check) => self.check_sessions(&check),
        };
        let answer = outcome.unwrap_or_else(|(code, text)| Answer::Refused { code, text });
        actions.push(Action::Answer { conn, call, answer });
    }

    fn with(&mut self, conn: Generation, change: impl FnOnce(&mut Provider)) {
        if let Some(provider) = self.providers.by_conn(conn) {
            change(provider);
        }
    }

    fn announce(&mut self, conn: Generation, announce: message::Announce) -> Outcome {
        let server = ServerId(announce.server_id);
        let Some(node) = self.providers.by_conn(conn).map(|p| p.node.clone()) else {
            return Ok(Answer::Done);
        };
        if let Some(other) = self.servers.get(&server).filter(|&other| *other != node) {
            return Err((
                &code::DUPLICATE_SERVER_ID,
                format!("server id {server} is {other}'s, {node} can't have it"),
            ));
        }
        self.servers.insert(server, conn, node);
        self.with(conn, |provider| {
            provider.announced = true;
            provider.server = server;
            provider.app_version = AppVersion(announce.app_version);
            provider.region = announce.region;
            provider.group = announce.prefix;
            provider.disabled = announce.disabled;
            provider.authenticator = announce.authenticator;
        });
        Ok(Answer::Done)
    }

    /// Bind without sids, and Subscribe: these modules are served here.
    fn serve(
        &mut self,
        conn: Generation,
        specs: &[message::Module],
        dynamic: bool,
        actions: &mut Vec<Action>,
    ) -> Outcome {
        let Some(provider) = self.providers.by_conn(conn) else { return Ok(Answer::Done) };
        let (node, version) = (provider.node.clone(), provider.app_version);
        let have = provider.static_modules.len() + provider.dynamic_modules.len() + provider.narrowed.len();
        if have + specs.len() > MODULES_MAX {
            return Err((&code::LIMIT, format!("a provider serves at most {MODULES_MAX} modules")));
        }
        // Judge all before changing anything.
        let mut defined = Vec::with_capacity(specs.len());
        for spec in specs {
            if spec.dynamic != dynamic {
                let text = format!("module {} is announced as both static and dynamic", spec.name);
                return Err((&code::CHOICE_CLASH, text));
            }
            if spec.id <= 0 || spec.id == 10_000 || (11_000..12_000).contains(&spec.id) {
                let text =
                    format!("module id {} is the framework's, as are 10000 and 11000 to 11999", spec.id);
                return Err((&code::BAD_MESSAGE, text));
            }
            let Some(module) = Module::define(spec, node.clone(), version) else {
                let text = format!("module {} has no choice named {:?}", spec.name, spec.choice);
                return Err((&code::BAD_MESSAGE, text));
            };
            if let Err((code, text)) = self.judge(&module) {
                let news = self.clashes.note(module.id, node, &text);
                // Every provider is at every worker, so the first one speaks for all.
                if news && self.rules.worker == 0 {
                    actions.push(Action::Clash { code, text: text.clone() });
                }
                return Err((code, text));
            }
            defined.push(module);
        }
        for module in defined {
            self.clashes.settled(module.id, &node);
            if self.rules.narrow.admits(&module.name, &node) {
                self.add_server(conn, module);
            } else {
                self.with(conn, |provider| {
                    provider.narrowed.retain(|&id| id != module.id);
                    provider.narrowed.push(module.id);
                });
            }
        }
        self.with(conn, |provider| provider.bound = true);
        Ok(Answer::Done)
    }

    /// Whether this announcement may stand beside the one that defined the module.
    fn judge(&self, new: &Module) -> Result<(), (&'static Code, String)> {
        let Some(old) = self.modules.get(&new.id).filter(|m| !m.providers.is_empty()) else { return Ok(()) };
        if old.contract != new.contract {
            let text = format!(
                "module {} is {:?} of {} and {:?} of {}: two projects implement it",
                new.id, old.name, old.definer, new.name, new.definer
            );
            return Err((&code::CONTRACT_CLASH, text));
        }
        if !old.agrees(new) && new.definer_version <= old.definer_version {
            let text = format!(
                "{} routes module {} by {:?}, {} by {:?}; only a higher app version may change it",
                old.definer, new.name, old.choice, new.definer, new.choice
            );
            return Err((&code::CHOICE_CLASH, text));
        }
        Ok(())
    }

    fn add_server(&mut self, conn: Generation, module: Module) {
        let (id, dynamic) = (module.id, module.dynamic);
        let Some(provider) = self.providers.by_conn(conn) else { return };
        let reference = provider.reference();
        if !provider.serves(id) {
            let list = if dynamic { &mut provider.dynamic_modules } else { &mut provider.static_modules };
            list.push(id);
        }
        match self.modules.get_mut(&id) {
            Some(known) if known.providers.is_empty() || module.definer_version > known.definer_version => {
                known.redefine(module);
            }
            Some(_) => {}
            None => {
                self.modules.insert(id, module);
            }
        }
        if let Some(known) = self.modules.get_mut(&id).filter(|m| !m.providers.contains(&reference)) {
            known.providers.push(reference);
        }
        self.rebuild_ring(id);
    }

    fn rebuild_ring(&mut self, id: ModuleId) {
        let Some(module) = self.modules.get_mut(&id) else { return };
        let name = |provider: &Provider| match base::planted::is("ring_by_connection") {
            true => provider.conn.to_string(),
            false => provider.node.to_string(),
        };
        let member = |&p: &ProviderRef| self.providers.get(p).map(|provider| (name(provider), p));
        module.ring = Ring::new(module.providers.iter().filter_map(member));
    }

    fn leave_module(&mut self, id: ModuleId, reference: ProviderRef) {
        if let Some(module) = self.modules.get_mut(&id) {
            module.providers.retain(|&p| p != reference);
        }
        self.rebuild_ring(id);
    }

    /// Bind with sids: these sessions' requests of these dynamic modules come to me.
    fn bind_sessions(
        &mut self,
        conn: Generation,
        bind: &message::Bind,
        actions: &mut Vec<Action>,
    ) -> Outcome {
        if bind.link_sids.len() > BIND_SIDS_MAX {
            return Err((&code::LIMIT, format!("a Bind names at most {BIND_SIDS_MAX} sessions")));
        }
        let Some(provider) = self.providers.by_conn(conn) else { return Ok(Answer::Done) };
        let reference = provider.reference();
        let ids: Vec<_> = bind.modules.iter().map(|m| ModuleId(m.id)).collect();
        if let Some(id) = ids.iter().find(|id| provider.narrowed.contains(id)) {
            let text = format!("this linkd takes module {id} from other providers; see linkd.modules");
            return Err((&code::NOT_OWNER, text));
        }
        if let Some(id) = ids.iter().find(|id| !provider.dynamic_modules.contains(id)) {
            return Err((
                &code::PROTOCOL_ORDER,
                format!("module {id} was not subscribed as dynamic by this provider"),
            ));
        }
        let mut result = message::BindResult::default();
        for &sid in &bind.link_sids {
            match self.bind_session(LinkSid(sid), &ids, reference, actions) {
                Ok(()) => {}
                Err(code) => {
                    result.refused.push(sid);
                    result.codes.push(code.number);
                }
            }
        }
        Ok(Answer::Bound(result))
    }

    fn bind_session(
        &mut self,
        sid: LinkSid,
        ids: &[ModuleId],
        to: ProviderRef,
        actions: &mut Vec<Action>,
    ) -> Result<(), &'static Code> {
        let session =
            self.sessions.get_mut(sid).filter(|s| s.account.is_some()).ok_or(&code::UNKNOWN_SESSION)?;
        for &id in ids {
            session.binds.retain(|(module, _)| *module != id);
            session.binds.push((id, to));
        }
        self.open_at(sid, to, actions);
        Ok(())
    }

    fn unbind(&mut self, conn: Generation, unbind: &message::UnBind) -> Outcome {
        let Some(reference) = self.providers.by_conn(conn).map(|p| p.reference()) else {
            return Ok(Answer::Done);
        };
        let ids: Vec<_> = unbind.modules.iter().copied().map(ModuleId).collect();
        if unbind.link_sids.is_empty() {
            for &id in &ids {
                self.leave_module(id, reference);
                self.with(conn, |provider| {
                    provider.static_modules.retain(|&m| m != id);
                    provider.dynamic_modules.retain(|&m| m != id);
                    provider.narrowed.retain(|&m| m != id);
                });
            }
            return Ok(Answer::Done);
        }
        if unbind.link_sids.len() > BIND_SIDS_MAX {
            return Err((&code::LIMIT, format!("an UnBind names at most {BIND_SIDS_MAX} sessions")));
        }
        let mut result = message::BindResult::default();
        for &sid in &unbind.link_sids {
            let code = match self.sessions.get_mut(LinkSid(sid)) {
                None => Some(&code::UNKNOWN_SESSION),
                Some(session) => {
                    let foreign = ids.iter().any(|&id| session.bound(id).is_some_and(|to| to != reference));
                    session.binds.retain(|(module, to)| !(ids.contains(module) && *to == reference));
                    foreign.then_some(&code::NOT_OWNER)
                }
            };
            if let Some(code) = code {
                result.refused.push(sid);
                result.codes.push(code.number);
            }
        }
        Ok(Answer::Bound(result))
    }

    fn provider_kick(&mut self, kick: message::Kick, actions: &mut Vec<Action>) -> Outcome {
        let sid = LinkSid(kick.link_sid);
        if self.sessions.get(sid).is_none() {
            return Err((&code::UNKNOWN_SESSION, format!("session {sid} is not connected here")));
        }
        if kick.report_only {
            actions.push(Action::Report { sid, from: From::Provider, code: kick.code, text: kick.text });
        } else {
            actions.push(Action::CloseClient { sid, from: From::Provider, code: kick.code, text: kick.text });
            self.end_session(sid, code::KICKED.number, actions);
        }
        Ok(Answer::Done)
    }

    fn check_sessions(&self, check: &message::Check) -> Outcome {
        if check.link_sids.len() > BIND_SIDS_MAX {
            return Err((&code::LIMIT, format!("a Check names at most {BIND_SIDS_MAX} sessions")));
        }
        let gone = |sid: &&u64| self.sessions.get(LinkSid(**sid)).is_none();
        let gone = check.link_sids.iter().filter(gone).copied().collect();
        Ok(Answer::Checked(message::CheckResult { gone }))
    }

    pub(super) fn kick(&mut self, who: &Who, code: &'static Code, text: &str, actions: &mut Vec<Action>) {
        let sids: Vec<_> = self.sessions.iter().filter(|s| who.means(s)).map(|s| s.sid).collect();
        for sid in sids {
            let text = if text.is_empty() { code.name.to_string() } else { text.to_string() };
            actions.push(Action::CloseClient { sid, from: From::Link, code: code.number, text });
            self.end_session(sid, code.number, actions);
        }
    }

    pub(super) fn user_state(
        &mut self,
        conn: Generation,
        sid: LinkSid,
        role: Option<Role>,
        actions: &mut Vec<Action>,
    ) {
        let Some(from) = self.providers.by_conn(conn).map(|p| p.reference()) else {
            actions.push(Action::Dropped(Loss::ConnectionGone));
            return;
        };
        let Some(session) = self.sessions.get_mut(sid).filter(|s| s.account.is_some()) else {
            actions.push(Action::Dropped(Loss::SessionGone));
            return;
        };
        session.role = role;
        let others = session.opened.iter().filter(|&&to| to != from);
        actions.extend(others.map(|&to| Action::UserState { to, sid, role }));
    }

    /// Ends a provider by the identity of its connection: a later connection of the same node is not touched. What it
    /// still owed is answered in its place. Every session that it knew is told once, since a one-way message of it may
    /// be lost, and may choose anew.
    pub(super) fn provider_closed(&mut self, conn: Generation, actions: &mut Vec<Action>) {
        let Some(provider) = self.providers.by_conn(conn).map(|p| p.reference()) else { return };
        let Some(gone) = self.providers.remove(conn) else { return };
        self.forget_broadcasts(conn);
        self.clashes.gone(&gone.node);
        self.nodes.remove(&gone.node, conn);
        self.servers.remove(&gone.server, conn);
        for &id in gone.static_modules.iter().chain(&gone.dynamic_modules) {
            self.leave_module(id, provider);
        }
        for session in self.sessions.iter_mut() {
            // Whoever was introduced there may have a request there, bound or not.
            let knew = session.opened.contains(&provider);
            session.binds.retain(|&(_, to)| to != provider);
            session.opened.retain(|&to| to != provider);
            let (sid, result) = (session.sid, code::PROVIDER_BROKEN.result());
            for Asked { type_id, session } in session.owed.lose(conn) {
                if !base::planted::is("owed_is_forgotten") {
                    actions.push(Action::Refuse { sid, type_id, session, result });
                }
            }
            if knew && !base::planted::is("unbound_are_not_told") {
                let code = &code::PROVIDER_BROKEN;
                let text = code.name.to_string();
                actions.push(Action::Report { sid: session.sid, from: From::Link, code: code.number, text });
            }
        }
    }
}
