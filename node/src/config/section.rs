//! The `[node]` section, which every process has.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source::Preset;
use super::units::Time;
use crate::lifecycle::Budgets;

/// What the built-in profiles change in `[node]`: `dev` stops and reconnects without waiting for anyone.
pub const PRESETS: &[Preset] = &[Preset {
    profile: "dev",
    values: "[node.stop]\npropagation = \"0s\"\n[node.reconnect]\nfirst = \"10ms\"\nmax = \"200ms\"\n",
}];

/// Who this process is and how it lives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeConfig {
    /// This node's name, unique in the cluster: 1 to 128 letters, digits, '.', '_' and '-'. Empty: the role's name and
    /// a 1, such as linkd-1.
    pub id: String,
    /// The cluster's name; nodes of different clusters refuse each other.
    pub cluster: String,
    /// Which `[profile.NAME]` is laid over the files. `dev` is built in: no waits.
    pub profile: String,
    /// Addresses of the directory's servers.
    pub directory: Vec<String>,
    /// The host name or address under which others reach this node.
    pub host: String,
    /// Nodes talk without TLS and are taken at their word; only over loopback.
    pub insecure: bool,
    /// How long whoever stops this process waits before killing it. The stop's budgets must fit in it.
    pub grace: Time,
    /// How long each stage of a stop may take.
    pub stop: Stop,
    /// The waits between tries to reach the directory.
    pub reconnect: Reconnect,
    /// Where the ops HTTP listens: probes, metrics, status. Not set: the role's own port on loopback.
    pub ops: Option<SocketAddr>,
    /// What is logged, and how.
    pub log: Log,
}

/// Budgets of a stop's stages; together below `node.grace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Stop {
    /// After readiness has gone off: time for balancers and peers to notice, in which everything is still served.
    pub propagation: Time,
    /// Time for requests in flight to end.
    pub drain: Time,
    /// Time to save what must outlive the process.
    pub save: Time,
    /// Time to close listeners and connections.
    pub close: Time,
}

/// Waits that double from `first` to `max`, with jitter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reconnect {
    /// The first wait.
    pub first: Time,
    /// The longest wait.
    pub max: Time,
}

/// Logging.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Log {
    /// A level, or directives such as `info,linkd=debug`.
    pub level: String,
    /// One line of text, or one object of JSON, for each event.
    pub format: LogFormat,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            id: String::new(),
            cluster: "linkstead".to_owned(),
            profile: String::new(),
            directory: vec!["127.0.0.1:7720".to_owned()],
            host: "127.0.0.1".to_owned(),
            insecure: true,
            grace: Time::secs(30),
            stop: Stop::default(),
            reconnect: Reconnect::default(),
            ops: None,
            log: Log::default(),
        }
    }
}

impl Default for Stop {
    fn default() -> Self {
        let (propagation, drain) = (Time::secs(5), Time::secs(15));
        Self { propagation, drain, save: Time::secs(5), close: Time::secs(2) }
    }
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { first: Time::millis(200), max: Time::secs(5) }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

impl NodeConfig {
    /// The stop's budgets, with the grace they must fit in.
    pub fn budgets(&self) -> Budgets {
        let Stop { propagation, drain, save, close } = self.stop;
        Budgets {
            propagation: propagation.span(),
            close: close.span(),
            drain: drain.span(),
            save: save.span(),
            grace: self.grace.span(),
        }
    }

    /// Why a node can't listen on `addr`: without TLS whoever reaches it is believed.
    pub fn refuse_beyond_loopback(&self, addr: SocketAddr) -> Option<String> {
        let beyond = !addr.ip().is_loopback();
        beyond
            .then(|| format!("{} is beyond loopback, and nodes are not proven to each other yet", addr.ip()))
    }

    /// Back-off between tries, its jitter drawn from this node's name.
    pub fn backoff(&self, node: &base::NodeId) -> net::dial::Backoff {
        let seed = base::hash::bytes(node.as_str().as_bytes());
        net::dial::Backoff::new(self.reconnect.first.0, self.reconnect.max.0, seed)
    }

    /// Where the ops HTTP listens: as configured, or on loopback at the role's own port.
    pub fn ops_or(&self, port: u16) -> SocketAddr {
        self.ops.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }
}
