//! Core: what operators see of a worker.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use base::{Account, AppVersion, LinkSid, ModuleId, NodeId, Role, ServerId};

use super::hot::Hot;
use super::module::Module;
use super::provider::{Load, Provider};
use super::session::Session;
use super::{ProviderRef, Router, Who};

/// A worker at one moment.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Who serves each module, by the module's name.
    pub modules: BTreeMap<String, Vec<NodeId>>,
    pub providers: BTreeMap<NodeId, Seen>,
    /// The prefixes of the groups that providers belong to.
    pub groups: BTreeSet<String>,
    /// Providers that were refused beside others, in words that name both.
    pub clashes: BTreeSet<String>,
    pub sessions: usize,
    pub authed: usize,
    pub hot: Hot,
}

/// A provider as a router sees it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub server: ServerId,
    pub app_version: AppVersion,
    pub region: String,
    /// The prefix of its group.
    pub group: String,
    /// Chosen for nothing new.
    pub disabled: bool,
    pub load: Load,
}

/// A session that was looked for.
#[derive(Debug, Clone)]
pub struct Found {
    pub sid: LinkSid,
    pub account: Account,
    pub role: Option<Role>,
    pub addr: SocketAddr,
    pub app_version: AppVersion,
    /// Where its requests of a module go.
    pub binds: Vec<(ModuleId, NodeId)>,
    /// Requests that wait for their answers.
    pub owed: usize,
}

impl Router {
    /// Sessions now.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Where this session's requests of this module go, if it is bound.
    pub fn bound(&self, sid: LinkSid, module: ModuleId) -> Option<&NodeId> {
        let bind = self.sessions.get(sid)?.bound(module)?;
        Some(&self.providers.get(bind)?.node)
    }

    pub fn summary(&self) -> Summary {
        let node = |&p: &ProviderRef| self.providers.get(p).map(|p| p.node.clone());
        let serves = |m: &Module| m.providers.iter().filter_map(node).collect();
        Summary {
            modules: self.modules.values().map(|m| (m.name.clone(), serves(m))).collect(),
            providers: self.providers.iter().map(|p| (p.node.clone(), seen(p))).collect(),
            groups: self.providers.iter().filter(|p| p.announced).map(|p| p.group.clone()).collect(),
            clashes: self.clashes.texts().cloned().collect(),
            sessions: self.sessions.len(),
            authed: self.sessions.authed(),
            hot: self.hot.clone(),
        }
    }

    /// The sessions that are logged in and meant.
    pub fn lookup(&self, who: &Who) -> Vec<Found> {
        self.sessions.iter().filter(|session| who.means(session)).filter_map(|s| self.found(s)).collect()
    }

    fn found(&self, session: &Session) -> Option<Found> {
        let bind = |&(module, to): &(ModuleId, ProviderRef)| {
            self.providers.get(to).map(|provider| (module, provider.node.clone()))
        };
        Some(Found {
            sid: session.sid,
            account: session.account.clone()?,
            role: session.role,
            addr: session.addr,
            app_version: session.app_version,
            binds: session.binds.iter().filter_map(bind).collect(),
            owed: session.owed.len(),
        })
    }
}

fn seen(provider: &Provider) -> Seen {
    Seen {
        server: provider.server,
        app_version: provider.app_version,
        region: provider.region.clone(),
        group: provider.group.clone(),
        disabled: provider.disabled,
        load: provider.load.clone(),
    }
}

impl Who {
    pub(super) fn means(&self, session: &Session) -> bool {
        match self {
            Who::Sid(sid) => session.sid == *sid,
            Who::Account(account) => session.account.as_ref() == Some(account),
        }
    }
}
