//! Core: what a node may ask of the directory. Each bound is refused with a code and changes nothing.

use std::collections::BTreeMap;

use base::{NodeId, Span};
use wire::code::{self, Code};
use wire::directory as msg;

use super::catalog::{Set, weight};

/// Versions of the session wire that are understood: ours and the one before.
pub const PROTO: u32 = node::directory::PROTO;
/// No epoch is ever beyond this; a claim that is would leave no room to count on.
pub const EPOCH_MAX: u64 = node::directory::view::EPOCH_MAX.0;

/// How long the directory waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How often a node is told to beat.
    pub heartbeat: Span,
    /// After this long without a message a node is dead.
    pub ttl: Span,
    /// After a start: how long what is not listed may still come back.
    pub warming: Span,
    /// How long the holder of a node id has to answer when another start asks for it.
    pub probe: Span,
    /// How long a new session has to say hello.
    pub hello: Span,
    /// How long a node may be gone before what it left behind is handed over.
    pub offline_linger: Span,
}

/// How much the directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub sessions: usize,
    /// For each session.
    pub subscriptions: usize,
    /// For each node.
    pub services: usize,
    /// Of a name, an address, a region, a host, a role.
    pub name_bytes: usize,
    /// Of one service's extras.
    pub extra_bytes: usize,
    /// Of one node's whole set.
    pub set_bytes: usize,
    /// Of one page of a snapshot.
    pub page_bytes: usize,
    /// Claims at once, of all nodes.
    pub claims: usize,
    /// Of one claim.
    pub claim_ttl: Span,
    /// Names under which ids are counted.
    pub id_names: usize,
    /// Offline ids of each node.
    pub offline_ids: usize,
}

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: Code,
    pub text: String,
    /// DUPLICATE_NODE: where the node that is alive runs.
    pub other_host: String,
}

impl Refusal {
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), other_host: String::new() }
    }

    pub fn message(&self) -> msg::Refused {
        let (text, other_host) = (self.text.clone(), self.other_host.clone());
        msg::Refused { code: self.code.number, text, retry_after_ms: self.retry_after_ms(), other_host }
    }

    pub fn retry_after_ms(&self) -> u32 {
        match self.code.retry {
            base::Retry::After(span) => u32::try_from(span.as_millis()).unwrap_or(u32::MAX),
            base::Retry::Never | base::Retry::Now | base::Retry::Unknown => 0,
        }
    }
}

/// Who says hello, when that is in order.
pub(super) fn hello(hello: &msg::Hello, cluster: &str, limits: &Limits) -> Result<NodeId, Refusal> {
    let bad = |text: String| Refusal::new(code::BAD_HELLO, text);
    if hello.cluster != cluster {
        let theirs: String = hello.cluster.chars().take(64).collect();
        return Err(bad(format!(
            "this directory serves cluster {cluster:?}, the node belongs to {theirs:?}"
        )));
    }
    if hello.proto.abs_diff(PROTO) > 1 {
        return Err(bad(format!("this directory speaks version {PROTO}, the node {}", hello.proto)));
    }
    if hello.epoch.max(hello.epoch_seen_max) > EPOCH_MAX {
        return Err(bad("an epoch is beyond anything ever given".to_owned()));
    }
    for text in [&hello.role, &hello.host, &hello.ops_address] {
        within("a text of hello", text.len(), limits.name_bytes)?;
    }
    NodeId::new(&hello.node).map_err(|error| bad(error.to_string()))
}

/// The name of a subscription.
pub(super) fn pattern(name: &str, limits: &Limits) -> Result<(), Refusal> {
    within("the name", name.len(), limits.name_bytes)?;
    if name.is_empty() {
        return Err(Refusal::new(code::BAD_MESSAGE, "a subscription without a name"));
    }
    if name != "/" && odd(name.strip_suffix('/').unwrap_or(name)) {
        return Err(Refusal::new(code::BAD_MESSAGE, format!("{name:?} can't be the name of a service")));
    }
    Ok(())
}

/// Names are parts between '/', as the parts of a path are, and somebody may take them for one. They stand in tables and
/// logs.
fn odd(name: &str) -> bool {
    let part = |part: &str| matches!(part, "" | "." | "..");
    name.split('/').any(part) || name.contains(base::is_unclean)
}

/// The set of a Register, by name.
pub(super) fn set(services: Vec<msg::Service>, limits: &Limits) -> Result<Set, Refusal> {
    within("the set's services", services.len(), limits.services)?;
    let mut set = BTreeMap::new();
    let mut bytes = 0;
    for service in services {
        let name = service.name.clone();
        within("a service's name", name.len(), limits.name_bytes)?;
        if name.starts_with('_') || odd(&name) {
            return Err(Refusal::new(
                code::BAD_MESSAGE,
                format!("{name:?} can't be the name of a node's service"),
            ));
        }
        within("a service's address", service.address.len(), limits.name_bytes)?;
        within("a service's region", service.region.len(), limits.name_bytes)?;
        let extra = service.extra.iter().map(|extra| extra.key.len() + extra.value.len()).sum();
        within("the extras of a service", extra, limits.extra_bytes)?;
        bytes += weight(&service);
        within("the set's bytes", bytes, limits.set_bytes)?;
        if set.insert(name.clone(), service).is_some() {
            return Err(Refusal::new(code::BAD_MESSAGE, format!("{name:?} is named twice in one set")));
        }
    }
    Ok(set)
}

fn within(what: &str, size: usize, limit: usize) -> Result<(), Refusal> {
    if size <= limit {
        return Ok(());
    }
    Err(Refusal::new(code::LIMIT, format!("{what}: {size}, at most {limit}")))
}
