//! The `[linkd]` section.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use base::Span;
use node::config::{BadSetting, Size, Time};
use node::tls::{Pair, Players};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::frame::{HEADER_BYTES, PAYLOAD_BYTES_CEILING};

pub use listen::Listen;
pub use modules::Module;
pub use proxy::{Net, ProxyProtocol};
pub use websocket::WebSocket;

use crate::admission::Caps;
pub use crate::auth::config::Auth;
use crate::auth::config::{JwtConfig, TicketConfig};
use crate::router::Bounds;

mod listen;
mod modules;
mod proxy;
mod websocket;

/// How a linkd holds its clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where clients connect by WebSocket; `off` opens no port.
    pub ws_listen: Listen,
    /// How a WebSocket begins and what it may carry.
    pub websocket: WebSocket,
    /// Whether a balancer stands in front that says whose each connection is. `required`: it does, and a connection
    /// without its line is closed. For all client ports.
    pub proxy_protocol: ProxyProtocol,
    /// The balancers that are believed: addresses, or nets such as `10.0.0.0/8`. Others are closed.
    pub proxy_from: Vec<Net>,
    /// Where providers connect.
    pub provider_listen: SocketAddr,
    /// Threads that hold connections; 0 is half the cores, at least 1. At most 255.
    pub workers: usize,
    /// How clients prove who they are. `open` believes them, and is for loopback only; `ticket` wants a signed ticket,
    /// `jwt` a JSON Web Token, `module` asks the game's own code in a provider.
    pub auth: Auth,
    /// `auth = "ticket"`.
    pub ticket: TicketConfig,
    /// `auth = "jwt"`.
    pub jwt: JwtConfig,
    /// Logins at once that wait for the directory or a provider; more are refused with BUSY.
    pub auths_max: usize,
    /// `auth = "module"`: how long the provider has to answer; then the login is refused with TIMEOUT.
    pub auth_call_timeout: Time,
    /// Failed logins of one address (of a /64 network, for IPv6) that are looked at each second; more are refused with
    /// TOO_MANY_ATTEMPTS.
    pub auth_failures_per_second: u32,
    /// Failed logins of one address at once.
    pub auth_failures_burst: u32,
    /// How often key files are read anew. SIGHUP does it at once.
    pub keys_reload: Time,
    /// Whether linkd speaks first: `first` sends the handshake that the ancestor's clients wait for, `none` stays
    /// silent for bare clients.
    pub handshake: Handshake,
    /// Where this linkd stands; providers of the same region are preferred. Empty prefers none.
    pub region: String,
    /// The prefixes that groups of providers register their modules under. Groups that connect are known by themselves;
    /// one that is named here is known while none of it is connected.
    pub module_prefixes: Vec<String>,
    /// What this linkd allows of single modules, by the module's name: `[linkd.modules.Rank]`.
    pub modules: BTreeMap<String, Module>,
    /// Requests of one client that may wait for their answers at once; the next one is answered Busy.
    pub in_flight_max: usize,
    /// The largest payload a client may send; at most 2 MiB.
    pub frame_max: Size,
    /// Bytes that may wait for one client; a client that reads slower is closed.
    pub out_queue_max: Size,
    /// Client connections in all.
    pub connections_max: usize,
    /// Client connections from one address.
    pub per_address_max: usize,
    /// Connections that have not logged in yet.
    pub unauthed_max: usize,
    /// PROXY line, TLS and WebSocket upgrade must be done this long after a client connected.
    pub handshake_timeout: Time,
    /// A client must be logged in this long after it connected.
    pub auth_timeout: Time,
    /// A frame must be whole this long after its first byte.
    pub frame_timeout: Time,
    /// A client that takes nothing for this long while something waits for it is closed.
    pub write_timeout: Time,
    /// Frames that a client may send in a second, keep-alives included; 0 is no limit. Beyond the burst requests are
    /// answered Busy, and keep-alives close; beyond twice the burst everything closes.
    pub frames_per_second: u32,
    /// Frames that a client may send at once.
    pub frames_burst: u32,
    /// Bytes that a client may send in a second; 0 is no limit. Beyond the burst as with frames.
    pub bytes_per_second: Size,
    /// Bytes that a client may send at once; at least one frame of `frame_max`.
    pub bytes_burst: Size,
    /// Bytes that may wait for one provider at one worker; at most 16 MiB. From 70 % on what is sheddable is given up,
    /// from there on all requests are answered Busy but those of level `critical_plus` of sessions bound there.
    pub provider_backlog_max: Size,
    /// Requests that go to one provider in a second; 0 is no limit. Each worker has an equal share.
    pub provider_requests_per_second: u64,
    /// Bytes that may leave for clients in a second; 0 is no limit. Each worker has an equal share. From 70 % on what is
    /// sheddable is given up, from there on all but `critical` and `critical_plus`; answers and keep-alives never are.
    pub out_bytes_per_second: Size,
    /// Broadcasts that may be on their way at once in one worker; the next one is answered Busy.
    pub broadcasts_max: usize,
    /// The largest frame that may be broadcast, header included.
    pub broadcast_max: Size,
    /// A client not heard for this long is closed; 0s never closes.
    pub idle_timeout: Time,
    /// The certificate that players see. With it the client ports speak TLS 1.3 and nothing else.
    pub tls: Tls,
    /// Players may come in clear from beyond loopback: everybody on the way can read and change what they send.
    pub insecure_client: bool,
    /// Connections to the provider port that have not said yet who they are; more are closed.
    pub strangers_max: usize,
    /// Of these, connections from one address.
    pub strangers_per_address_max: usize,
}

/// Files of a players' port's certificate, PEM text. They are read again when they change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tls {
    /// The certificate with this gateway's public name, and those between it and an authority. Empty: no TLS.
    pub cert: PathBuf,
    /// Its private key. Only its owner may read the file: mode 0600.
    pub key: PathBuf,
    /// How often the files are looked at for changes; SIGHUP has them looked at once.
    pub look: Time,
}

impl Default for Tls {
    fn default() -> Self {
        Self { cert: PathBuf::new(), key: PathBuf::new(), look: Time::secs(30) }
    }
}

impl Tls {
    pub fn is_set(&self) -> bool {
        !self.cert.as_os_str().is_empty() || !self.key.as_os_str().is_empty()
    }

    /// Reads the files; `None` when none is named.
    pub fn load(&self) -> Result<Option<Players>, BadSetting> {
        if !self.is_set() {
            return Ok(None);
        }
        let pair = Pair { cert: self.cert.clone(), key: self.key.clone() };
        node::tls::players("linkd.tls", pair, self.look).map(Some)
    }
}

/// Who speaks first on a client connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Handshake {
    First,
    None,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 7710).into(),
            ws_listen: Listen::At(([127, 0, 0, 1], 7711).into()),
            websocket: WebSocket::default(),
            proxy_protocol: ProxyProtocol::Off,
            proxy_from: Vec::new(),
            provider_listen: ([127, 0, 0, 1], 7712).into(),
            workers: 0,
            auth: Auth::Open,
            ticket: TicketConfig::default(),
            jwt: JwtConfig::default(),
            auths_max: 1_024,
            auth_call_timeout: Time::secs(5),
            auth_failures_per_second: 10,
            auth_failures_burst: 20,
            keys_reload: Time::secs(30),
            handshake: Handshake::First,
            region: String::new(),
            module_prefixes: vec!["module/".into()],
            modules: BTreeMap::new(),
            in_flight_max: 1_024,
            frame_max: Size(64 * 1024),
            out_queue_max: Size(256 * 1024),
            connections_max: 50_000,
            per_address_max: 200,
            unauthed_max: 2_000,
            handshake_timeout: Time::secs(5),
            auth_timeout: Time::secs(10),
            frame_timeout: Time::secs(10),
            write_timeout: Time::secs(10),
            frames_per_second: 200,
            frames_burst: 400,
            bytes_per_second: Size::kib(256),
            bytes_burst: Size::mib(1),
            provider_backlog_max: Size::mib(8),
            provider_requests_per_second: 0,
            out_bytes_per_second: Size(0),
            broadcasts_max: 16,
            broadcast_max: Size::kib(64),
            idle_timeout: Time::secs(180),
            tls: Tls::default(),
            insecure_client: false,
            strangers_max: 1_024,
            strangers_per_address_max: 256,
        }
    }
}

impl Config {
    /// Refuses what can't work, naming the key.
    pub fn check(&self) -> Result<(), BadSetting> {
        let bad = |key, why: String| Err(BadSetting::new("linkd", key, why));
        let beyond = |addr: &SocketAddr| !addr.ip().is_loopback();
        if let (Auth::Open, Some(addr)) = (self.auth, self.client_ports().find(beyond)) {
            return bad(
                "auth",
                format!("auth = \"open\" believes everybody, so it can't listen on {}", addr.ip()),
            );
        }
        if let Some(addr) = self.clear_beyond_loopback().filter(|_| !self.insecure_client) {
            let why = format!(
                "players beyond loopback ({}) need TLS: set linkd.tls.cert and linkd.tls.key; or set \
                 linkd.insecure_client = true, and everybody on the way can read and change what they send",
                addr.ip()
            );
            return bad("insecure_client", why);
        }
        for (key, path) in [("tls.cert", &self.tls.cert), ("tls.key", &self.tls.key)] {
            if self.tls.is_set() && path.as_os_str().is_empty() {
                return bad(key, "certificate and key belong together; name both files".into());
            }
        }
        if self.strangers_max == 0 || self.strangers_per_address_max == 0 {
            return bad("strangers_max", "a cap of 0 admits nobody".into());
        }
        self.check_auth()?;
        if self.frame_max.0 == 0 || self.frame_max.0 > u64::from(PAYLOAD_BYTES_CEILING) {
            return bad(
                "frame_max",
                format!("must be between 1 B and {}", Size(PAYLOAD_BYTES_CEILING.into())),
            );
        }
        if self.out_queue_max.0 < 1024 {
            return bad("out_queue_max", "must be at least 1 KiB".into());
        }
        if self.workers > 255 {
            return bad("workers", "a link sid has 8 bits for the worker, so at most 255".into());
        }
        if self.connections_max == 0 || self.per_address_max == 0 || self.unauthed_max == 0 {
            return bad("connections_max", "a cap of 0 admits nobody".into());
        }
        if self.proxy_protocol == ProxyProtocol::Required && self.proxy_from.is_empty() {
            return bad(
                "proxy_from",
                "proxy_protocol is required, so name the balancers that are believed".into(),
            );
        }
        self.check_guards()?;
        self.check_modules()?;
        self.websocket.check(&self.ws_listen, self.frame_max)?;
        let timeouts = [
            ("handshake_timeout", self.handshake_timeout),
            ("write_timeout", self.write_timeout),
            ("auth_timeout", self.auth_timeout),
            ("frame_timeout", self.frame_timeout),
        ];
        for (key, timeout) in timeouts {
            if timeout.span() == Span::ZERO {
                return bad(key, "a time of 0s serves nobody".into());
            }
        }
        Ok(())
    }

    fn check_guards(&self) -> Result<(), BadSetting> {
        let bad = |key, why: String| Err(BadSetting::new("linkd", key, why));
        if self.frames_per_second > 0 && self.frames_burst == 0 {
            return bad("frames_burst", "a burst of 0 closes at the first frame".into());
        }
        if self.bytes_per_second.0 > 0 && self.bytes_burst.0 < self.frame_max.0 + HEADER_BYTES as u64 {
            let why = format!("must hold a frame of linkd.frame_max ({}) and its header", self.frame_max);
            return bad("bytes_burst", why);
        }
        let backlog = Size::kib(64).0..=net::link::OUTBOX_BYTES_MAX as u64;
        if !backlog.contains(&self.provider_backlog_max.0) {
            return bad("provider_backlog_max", "must be between 64 KiB and 16 MiB".into());
        }
        if self.broadcasts_max == 0 {
            return bad("broadcasts_max", "0 refuses every broadcast".into());
        }
        if self.broadcast_max.0 > u64::from(PAYLOAD_BYTES_CEILING) {
            return bad("broadcast_max", format!("must be at most {}", Size(PAYLOAD_BYTES_CEILING.into())));
        }
        Ok(())
    }

    /// What each worker may load one provider with.
    pub fn bounds(&self) -> Bounds {
        let share = self.provider_requests_per_second.div_ceil(self.worker_count() as u64);
        Bounds { backlog_bytes_max: self.provider_backlog_max.0, requests_per_second_max: share }
    }

    /// Where clients may connect.
    pub fn client_ports(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.listen).chain(self.ws_listen.addr())
    }

    /// A players' port that others than this machine reach and that speaks in clear.
    pub fn clear_beyond_loopback(&self) -> Option<SocketAddr> {
        let beyond = |addr: &SocketAddr| !addr.ip().to_canonical().is_loopback();
        self.client_ports().find(beyond).filter(|_| !self.tls.is_set())
    }

    pub fn caps(&self) -> Caps {
        let (connections_max, per_address_max) = (self.connections_max, self.per_address_max);
        Caps { connections_max, per_address_max, unauthed_max: self.unauthed_max }
    }

    /// The number of workers that `workers` means on this machine.
    pub fn worker_count(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        if self.workers == 0 { (cores / 2).max(1) } else { self.workers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_beyond_loopback_need_tls_on_every_port() {
        let far: SocketAddr = ([0, 0, 0, 0], 7711).into();
        let config = |change: fn(&mut Config, SocketAddr)| {
            let mut config = Config::default();
            change(&mut config, far);
            config
        };
        assert_eq!(Config::default().clear_beyond_loopback(), None);
        assert_eq!(config(|c, far| c.listen = far).clear_beyond_loopback(), Some(far));
        let mut websocket = config(|c, far| c.ws_listen = Listen::At(far));
        assert_eq!(websocket.clear_beyond_loopback(), Some(far));
        websocket.tls.cert = "a.pem".into();
        assert_eq!(websocket.clear_beyond_loopback(), None);
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert_eq!(Config::default().check(), Ok(()));
        assert!(refused(|c| c.listen = ([0, 0, 0, 0], 7710).into()).starts_with("linkd.auth: "));
        assert!(refused(|c| c.frame_max = Size(3 << 20)).starts_with("linkd.frame_max: "));
        assert!(refused(|c| c.workers = 256).starts_with("linkd.workers: "));
        assert!(refused(|c| c.unauthed_max = 0).starts_with("linkd.connections_max: "));
        assert!(refused(|c| c.tls.cert = "a.pem".into()).starts_with("linkd.tls.key: "));
        assert!(refused(|c| c.in_flight_max = 0).starts_with("linkd.in_flight_max: "));
        assert!(refused(|c| c.module_prefixes = vec!["".into()]).starts_with("linkd.module_prefixes: "));
        let of_nobody = |c: &mut Config| drop(c.modules.insert("Rank".into(), Module::default()));
        assert!(refused(of_nobody).starts_with("linkd.modules.Rank.providers: "));
        let odd = Module { providers: vec!["*-game".into()] };
        let mut config = Config::default();
        config.modules.insert("Rank".into(), odd);
        assert!(config.check().is_err_and(|bad| bad.to_string().contains("only at its end")));
        assert!(refused(|c| c.strangers_max = 0).starts_with("linkd.strangers_max: "));
    }
}
