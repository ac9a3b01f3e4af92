//! The `[service_manager]` section.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use base::Span;
use node::config::{BadSetting, Preset, Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::directory::{Limits, Settings, Terms};

/// Where the directory listens when nothing else is said.
pub const PORT: u16 = 7720;
/// Where its ops HTTP listens when nothing else is said.
pub const OPS_PORT: u16 = 7700;

/// What the built-in profile `dev` changes: nobody waits for leases that a developer has just killed.
pub const PRESETS: &[Preset] = &[Preset {
    profile: "dev",
    values: "[service_manager]\nheartbeat = \"1s\"\nttl = \"3s\"\nwarming = \"0s\"\noffline_linger = \"10s\"\n",
}];

/// The directory: who is alive, what they offer, under which epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServiceManagerConfig {
    /// Where nodes find the directory.
    pub listen: SocketAddr,
    /// Where it keeps epochs, claims and ids. `memory`: nowhere; after a restart the nodes tell it what they know. `redb`
    /// or `sled`: in `data_dir`; nothing that it answered is lost by a crash.
    pub store: StoreKind,
    /// The folder of the store, for this process alone. Needed with a store on a disk.
    pub data_dir: PathBuf,
    /// How often nodes say that they are alive.
    pub heartbeat: Time,
    /// After this long without a word a node is dead. At least three heartbeats.
    pub ttl: Time,
    /// After a start: how long what is not listed may still come back. Not set: as long as `ttl`.
    pub warming: Option<Time>,
    /// How long a node has to answer when a second start asks for its id.
    pub probe: Time,
    /// How long a new connection has to say who it is.
    pub hello: Time,
    /// Sessions at once; more are refused with LIMIT.
    pub sessions_max: usize,
    /// Names that one session follows; more are refused with LIMIT.
    pub subscriptions_max: usize,
    /// Services that one node offers; more are refused with LIMIT.
    pub services_max: usize,
    /// Bytes of a name, address, region or host; more are refused with LIMIT.
    pub name_max: Size,
    /// Bytes of one service's extras; more are refused with LIMIT.
    pub extra_max: Size,
    /// Bytes of one node's whole set; more are refused with LIMIT.
    pub set_max: Size,
    /// Messages on their way to one session; a session that lets more gather is closed and lists anew.
    pub outbox_max: usize,
    /// Bytes of these; a session that lets more gather is closed as well. A whole list fits.
    pub outbox_bytes_max: Size,
    /// Keys held at once, such as used tickets; more are refused with BUSY, so that nothing is used twice. About 250
    /// bytes each.
    pub claims_max: usize,
    /// How long one key may be held; longer claims are refused with LIMIT.
    pub claim_ttl_max: Time,
    /// Names under which ids are counted; more are refused with LIMIT.
    pub id_names_max: usize,
    /// How long a node may be gone before other nodes are asked to go on with what it left behind, such as timers.
    pub offline_linger: Time,
    /// Ids under which one node may leave something behind; more close its session with LIMIT.
    pub offline_ids_max: usize,
}

/// Where a directory keeps what it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreKind {
    Memory,
    Redb,
    Sled,
}

impl StoreKind {
    /// `None`: nothing is kept.
    pub const fn on_disk(self) -> Option<store::Kind> {
        match self {
            StoreKind::Memory => None,
            StoreKind::Redb => Some(store::Kind::Redb),
            StoreKind::Sled => Some(store::Kind::Sled),
        }
    }

    /// Its name in configuration.
    pub const fn as_str(self) -> &'static str {
        match self.on_disk() {
            None => "memory",
            Some(kind) => kind.as_str(),
        }
    }
}

impl Default for ServiceManagerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            store: StoreKind::Memory,
            data_dir: PathBuf::new(),
            heartbeat: Time::secs(5),
            ttl: Time::secs(15),
            warming: None,
            probe: Time::secs(1),
            hello: Time::secs(10),
            sessions_max: 10_000,
            subscriptions_max: 1_200,
            services_max: 1_100,
            name_max: Size(256),
            extra_max: Size::kib(4),
            set_max: Size::mib(1),
            outbox_max: 2_048,
            outbox_bytes_max: Size::mib(64),
            claims_max: 1_000_000,
            claim_ttl_max: Time::secs(24 * 3_600),
            id_names_max: 10_000,
            offline_linger: Time::secs(600),
            offline_ids_max: 16,
        }
    }
}

/// Snapshots go out in pages of about this size, well below what a tonic message may have.
const PAGE_BYTES: usize = 1024 * 1024;
/// A set and its page together stay below a tonic message.
const SET_BYTES_MAX: u64 = 2 * 1024 * 1024;

impl ServiceManagerConfig {
    /// All that is wrong, at once.
    pub fn check(&self) -> Result<(), Vec<BadSetting>> {
        let mut bad = Vec::new();
        let mut complain = |key, why: String| bad.push(BadSetting::new("service_manager", key, why));
        match (self.store.on_disk(), self.data_dir.as_os_str().is_empty()) {
            (Some(kind), true) => complain("data_dir", format!("store {kind} needs a folder of its own")),
            (None, false) => {
                let why = format!("{} is not used by store memory", self.data_dir.display());
                complain("data_dir", why);
            }
            (Some(_), false) | (None, true) => {}
        }
        let three = self.heartbeat.span().times(3);
        if self.heartbeat.0.is_zero() || self.ttl.span() < three {
            complain(
                "ttl",
                format!("ttl {} must be at least 3 x heartbeat {} = {three}", self.ttl, self.heartbeat),
            );
        }
        if self.probe.0.is_zero() || self.probe.0 > self.ttl.0 {
            complain("probe", format!("{} must be more than 0s and at most ttl {}", self.probe, self.ttl));
        }
        if self.set_max.0 > SET_BYTES_MAX {
            complain(
                "set_max",
                format!("{} is more than the {} a message carries", self.set_max, Size(SET_BYTES_MAX)),
            );
        }
        let counts = [
            ("sessions_max", self.sessions_max),
            ("subscriptions_max", self.subscriptions_max),
            ("services_max", self.services_max),
            ("outbox_max", self.outbox_max),
            ("name_max", self.name_max.bytes()),
            ("claims_max", self.claims_max),
            ("id_names_max", self.id_names_max),
        ];
        for (key, _) in counts.into_iter().filter(|(_, count)| *count == 0) {
            complain(key, "0 would refuse everything".to_owned());
        }
        if self.outbox_max < self.subscriptions_max {
            let why = format!(
                "{} can't hold the first lists of subscriptions_max {}",
                self.outbox_max, self.subscriptions_max
            );
            complain("outbox_max", why);
        }
        if self.claim_ttl_max.0.is_zero() {
            complain("claim_ttl_max", "0s would refuse every claim".to_owned());
        }
        if bad.is_empty() { Ok(()) } else { Err(bad) }
    }

    /// What the core is made of. `epoch_start`: the wall clock's microseconds.
    pub fn settings(&self, cluster: &str, epoch_start: u64) -> Settings {
        let terms = Terms {
            heartbeat: self.heartbeat.span(),
            ttl: self.ttl.span(),
            warming: self.warming.map_or(self.ttl.span(), Time::span),
            probe: self.probe.span(),
            hello: Span::from(self.hello.0),
            offline_linger: self.offline_linger.span(),
        };
        let limits = Limits {
            sessions: self.sessions_max,
            subscriptions: self.subscriptions_max,
            services: self.services_max,
            name_bytes: self.name_max.bytes(),
            extra_bytes: self.extra_max.bytes(),
            set_bytes: self.set_max.bytes(),
            page_bytes: PAGE_BYTES,
            claims: self.claims_max,
            claim_ttl: self.claim_ttl_max.span(),
            id_names: self.id_names_max,
            offline_ids: self.offline_ids_max,
        };
        let remembers = self.store.on_disk().is_some();
        Settings { cluster: cluster.to_owned(), terms, limits, epoch_start, remembers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(change: impl FnOnce(&mut ServiceManagerConfig)) -> String {
        let mut config = ServiceManagerConfig::default();
        change(&mut config);
        config.check().unwrap_err().iter().map(|bad| format!("{bad}\n")).collect()
    }

    /// Holds: BI-111.
    #[test]
    fn timers_and_stores_that_do_not_hold_are_refused_with_their_numbers() {
        assert_eq!(ServiceManagerConfig::default().check(), Ok(()));
        let timers = complaints(|config| config.ttl = Time::secs(14));
        assert_eq!(timers, "service_manager.ttl: ttl 14s must be at least 3 x heartbeat 5s = 15s\n");
        let store = complaints(|config| config.store = StoreKind::Sled);
        assert_eq!(store, "service_manager.data_dir: store sled needs a folder of its own\n");
        let unused = complaints(|config| config.data_dir = "/var/lib/x".into());
        assert_eq!(unused, "service_manager.data_dir: /var/lib/x is not used by store memory\n");
        let both = complaints(|config| {
            config.services_max = 0;
            config.outbox_max = 10;
        });
        assert_eq!(both.lines().count(), 2, "{both}");
    }

    #[test]
    fn the_dev_preset_is_a_configuration_that_holds() {
        #[derive(Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        struct Root {
            node: node::config::NodeConfig,
            service_manager: ServiceManagerConfig,
        }
        let mut presets = node::config::PRESETS.to_vec();
        presets.extend_from_slice(PRESETS);
        let profile = Some("dev".to_owned());
        let sources = node::config::Sources { profile, presets, ..Default::default() };
        let root: Root = node::config::load(&sources).unwrap().config;
        assert_eq!(root.service_manager.check(), Ok(()));
        assert_eq!(root.service_manager.settings("c", 1).terms.warming, Span::ZERO);
        assert_eq!(root.node.budgets().propagation, Span::ZERO);
    }
}
