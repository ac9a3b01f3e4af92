//! The `[node]` section, which every process has.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::BadSetting;
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
    /// Nodes talk without TLS and are taken at their word. Such a node listens on loopback and dials loopback only. Set
    /// this or `[node.tls]`, not both; with neither a node does not start.
    pub insecure: bool,
    /// The certificates with which nodes prove to each other who they are; `linkstead cert` makes them.
    pub tls: NodeTls,
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

/// Files of a node's certificates, PEM text. They are read again when they change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeTls {
    /// A folder as `linkstead cert` fills it: ca.pem, ID.pem and ID.key, where ID is this node's id. Empty: not set.
    pub dir: PathBuf,
    /// The authorities that this node believes, instead of ca.pem in `dir`. Empty: not set.
    pub ca: PathBuf,
    /// This node's certificate, and those between it and an authority, instead of ID.pem in `dir`. Empty: not set.
    pub cert: PathBuf,
    /// The certificate's private key, instead of ID.key in `dir`. Only its owner may read the file: mode 0600. Empty:
    /// not set.
    pub key: PathBuf,
    /// How often the files are looked at for changes; SIGHUP has them looked at once.
    pub look: Time,
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
            insecure: false,
            tls: NodeTls::default(),
            grace: Time::secs(30),
            stop: Stop::default(),
            reconnect: Reconnect::default(),
            ops: None,
            log: Log::default(),
        }
    }
}

impl Default for NodeTls {
    fn default() -> Self {
        let (dir, ca, cert, key) = Default::default();
        Self { dir, ca, cert, key, look: Time::secs(30) }
    }
}

impl NodeTls {
    /// Whether any file is named.
    pub fn is_set(&self) -> bool {
        [&self.dir, &self.ca, &self.cert, &self.key].iter().any(|path| !path.as_os_str().is_empty())
    }

    /// The files of the node `id`: authorities, certificate, key. Refuses when one is not named.
    pub fn files(&self, id: &str) -> Result<[PathBuf; 3], BadSetting> {
        let file = |key, own: &Path, name: String| match (own.as_os_str(), self.dir.as_os_str()) {
            (own, _) if !own.is_empty() => Ok(PathBuf::from(own)),
            (_, dir) if !dir.is_empty() => Ok(self.dir.join(name)),
            _ => Err(BadSetting::new(
                "node.tls",
                key,
                "no file is named; name it here, or a folder in node.tls.dir",
            )),
        };
        Ok([
            file("ca", &self.ca, "ca.pem".to_owned())?,
            file("cert", &self.cert, format!("{id}.pem"))?,
            file("key", &self.key, format!("{id}.key"))?,
        ])
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

    /// Why a node can't take other nodes on `addr`: without certificates whoever reaches it is believed.
    pub fn refuse_beyond_loopback(&self, addr: SocketAddr) -> Option<String> {
        let beyond = !addr.ip().to_canonical().is_loopback() && !self.tls.is_set();
        beyond.then(|| {
            format!("{} is beyond loopback, where nodes must prove who they are; set node.tls.dir", addr.ip())
        })
    }

    /// Why the ops port can't listen on `addr`: it takes everybody who reaches it at their word.
    pub fn refuse_ops(&self, addr: SocketAddr) -> Option<String> {
        let beyond = !addr.ip().to_canonical().is_loopback();
        beyond.then(|| format!("{} is beyond loopback, and operators don't prove who they are", addr.ip()))
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
