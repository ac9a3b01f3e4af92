//! `[linkd.ticket]` and `[linkd.jwt]`.

use std::path::PathBuf;
use std::sync::Arc;

use node::config::{BadSetting, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attempts::Attempts;
use super::jwt::Tokens;
use super::ticket::{Replay, Tickets, Used};
use super::{Gate, Way};
use crate::config::Config;
use crate::gateway::Env;

/// How clients prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// Every account is believed. For loopback only.
    Open,
    /// By a ticket that a login service has signed.
    Ticket,
    /// By a JSON Web Token.
    Jwt,
    /// By the game's own code, in a provider.
    Module,
}

/// Tickets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TicketConfig {
    /// Files of the public keys that tickets may be signed with; `linkstead ticket keygen` writes them. Read anew every
    /// `linkd.keys_reload` and at SIGHUP.
    pub keys: Vec<PathBuf>,
    /// Where used tickets are remembered. `directory`: one memory for all linkds. `local`: each linkd its own, so that
    /// a ticket can be used once at each of them, and again after a restart.
    pub replay: ReplayConfig,
    /// Used tickets that `local` remembers; at the bound logins are refused with BUSY.
    pub replay_local_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayConfig {
    Directory,
    Local,
}

/// JSON Web Tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JwtConfig {
    /// The keys that tokens may be signed with, each for one algorithm only.
    pub keys: Vec<JwtKey>,
    /// What must stand in the claim `aud`.
    pub audience: String,
    /// What must stand in the claim `iss`; empty: it is not looked at.
    pub issuer: String,
    /// Whether the claim `nbf` must be there. When it is there it counts in any case, and `exp` must always be there.
    pub require_nbf: bool,
    /// The claim that names the account.
    pub account_claim: String,
    /// Whether a token is good for one login only, by its claim `jti`, remembered as `linkd.ticket.replay` says.
    pub single_use: bool,
    /// How far clocks may be apart.
    pub leeway: Time,
}

/// One key of tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JwtKey {
    /// The `kid` in a token's header that names it; empty: tokens without one.
    pub kid: String,
    /// The one algorithm that it is used with.
    pub algorithm: Algorithm,
    /// A public key in PEM; for HS256 the secret itself, in a file of mode 0600.
    pub file: PathBuf,
}

/// Algorithms of tokens. `none` is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Algorithm {
    #[default]
    EdDSA,
    ES256,
    RS256,
    /// Whoever checks these can also make them.
    HS256,
}

impl Default for TicketConfig {
    fn default() -> Self {
        Self { keys: Vec::new(), replay: ReplayConfig::Directory, replay_local_max: 1_000_000 }
    }
}

impl Default for JwtConfig {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            audience: String::new(),
            issuer: String::new(),
            require_nbf: false,
            account_claim: "sub".to_owned(),
            single_use: false,
            leeway: Time::secs(30),
        }
    }
}

impl TicketConfig {
    pub fn check(&self) -> Result<(), BadSetting> {
        if self.replay_local_max == 0 {
            return bad("ticket.replay_local_max", "0 would refuse every login".into());
        }
        Ok(())
    }
}

impl JwtConfig {
    pub fn check(&self) -> Result<(), BadSetting> {
        if self.keys.is_empty() {
            return bad("jwt.keys", "auth = \"jwt\" needs at least one key".into());
        }
        if self.audience.is_empty() {
            return bad("jwt.audience", "without it a token for any other service would be good here".into());
        }
        if self.account_claim.is_empty() {
            return bad("jwt.account_claim", "some claim must name the account".into());
        }
        for (at, key) in self.keys.iter().enumerate() {
            if self.keys[..at].iter().any(|other| other.kid == key.kid) {
                return bad("jwt.keys", format!("two keys have the kid {:?}", key.kid));
            }
        }
        Ok(())
    }
}

impl Config {
    /// Refuses what can't work about logins, naming the key.
    pub fn check_auth(&self) -> Result<(), BadSetting> {
        self.ticket.check()?;
        if self.auth == Auth::Jwt {
            self.jwt.check()?;
        }
        let zero = [
            ("auths_max", self.auths_max == 0),
            ("auth_failures_per_second", self.auth_failures_per_second == 0),
            ("auth_failures_burst", self.auth_failures_burst == 0),
            ("auth_call_timeout", self.auth_call_timeout.0.is_zero()),
            ("keys_reload", self.keys_reload.0.is_zero()),
        ];
        match zero.into_iter().find(|(_, zero)| *zero) {
            Some((key, _)) => bad(key, "0 would let nobody in".into()),
            None => Ok(()),
        }
    }

    /// Who lets players in; reads the key files.
    pub fn gate(&self, env: &Env) -> Result<Gate, BadSetting> {
        let attempts = Attempts::new(self.auth_failures_per_second, self.auth_failures_burst);
        let replay = || match self.ticket.replay {
            ReplayConfig::Directory => {
                Replay::Directory { directory: env.directory.clone(), node: env.node.as_str().to_owned() }
            }
            ReplayConfig::Local => Replay::Local(Arc::new(Used::new(self.ticket.replay_local_max))),
        };
        let way = match self.auth {
            Auth::Open => {
                tracing::warn!("linkd.auth is \"open\": whoever connects is whoever he says he is");
                Way::Open
            }
            Auth::Ticket if self.ticket.keys.is_empty() && env.ticket_keys.is_empty() => {
                let why =
                    "auth = \"ticket\" needs at least one public key; linkstead ticket keygen makes one";
                return Err(BadSetting::new("linkd", "ticket.keys", why));
            }
            Auth::Ticket => {
                let (paths, given) = (self.ticket.keys.clone(), env.ticket_keys.clone());
                let tickets = Tickets::new(env.cluster.clone(), paths, given, replay());
                Way::Ticket(Arc::new(tickets.map_err(|why| BadSetting::new("linkd", "ticket.keys", why))?))
            }
            Auth::Jwt => {
                let tokens = Tokens::new(self.jwt.clone(), replay());
                Way::Jwt(Arc::new(tokens.map_err(|why| BadSetting::new("linkd", "jwt.keys", why))?))
            }
            Auth::Module => Way::Module { timeout: self.auth_call_timeout.0 },
        };
        Ok(Gate::new(way, attempts, self.auths_max))
    }
}

fn bad(key: &'static str, why: String) -> Result<(), BadSetting> {
    Err(BadSetting::new("linkd", key, why))
}
