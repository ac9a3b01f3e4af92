//! Core: what a module is to a router: how it is routed and who serves it.

use base::{AppVersion, ModuleId, NodeId, ProtocolId, Ring};
use wire::Level;
use wire::link::message;

use super::ProviderRef;

/// How a provider is chosen among the eligible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    HashAccount,
    HashRole,
    HashSource,
    FeedFull,
    Load,
    Request,
}

impl Choice {
    /// The name in configuration and macros; the empty name is the default, `request`.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "hash_account" => Choice::HashAccount,
            "hash_role" => Choice::HashRole,
            "hash_source" => Choice::HashSource,
            "feed_full" => Choice::FeedFull,
            "load" => Choice::Load,
            "request" | "" => Choice::Request,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocol {
    pub id: ProtocolId,
    /// The field by whose value it is routed; 0 is none.
    pub route_by: u32,
    pub level: Level,
}

/// One module, as the first live announcement defined it.
#[derive(Debug)]
pub struct Module {
    pub id: ModuleId,
    pub name: String,
    pub dynamic: bool,
    pub choice: Choice,
    pub contract: u64,
    /// Sorted by id.
    protocols: Vec<Protocol>,
    /// Who defined it, for the error of one who differs.
    pub definer: NodeId,
    pub definer_version: AppVersion,
    /// In the order they came.
    pub providers: Vec<ProviderRef>,
    pub ring: Ring<ProviderRef>,
}

impl Module {
    /// `None`: the choice has no such name.
    pub fn define(spec: &message::Module, definer: NodeId, definer_version: AppVersion) -> Option<Self> {
        let mut protocols: Vec<_> = spec
            .protocols
            .iter()
            .map(|p| Protocol { id: ProtocolId(p.id), route_by: p.route_by, level: Level::of(p.level) })
            .collect();
        protocols.sort_by_key(|p| p.id);
        Some(Self {
            id: ModuleId(spec.id),
            name: spec.name.clone(),
            dynamic: spec.dynamic,
            choice: Choice::parse(&spec.choice)?,
            contract: spec.contract,
            protocols,
            definer,
            definer_version,
            providers: Vec::new(),
            ring: Ring::default(),
        })
    }

    pub fn protocol(&self, id: ProtocolId) -> Option<Protocol> {
        let index = self.protocols.binary_search_by_key(&id, |p| p.id).ok()?;
        Some(self.protocols[index])
    }

    /// Whether another announcement means the same routing.
    pub fn agrees(&self, other: &Module) -> bool {
        self.choice == other.choice && self.dynamic == other.dynamic
    }

    /// Takes over the definition of another announcement and keeps its own providers.
    pub fn redefine(&mut self, other: Module) {
        let providers = std::mem::take(&mut self.providers);
        let ring = std::mem::take(&mut self.ring);
        *self = Module { providers, ring, ..other };
    }
}
