//! The `[global_cache]` section.

use std::net::{Ipv4Addr, SocketAddr};

use base::Epoch;
use base::lease::Terms;
use node::config::{BadSetting, Preset, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbiter::Settings;

/// Where the arbiter listens when nothing else is said.
pub const PORT: u16 = 7730;
/// Where its ops HTTP listens when nothing else is said.
pub const OPS_PORT: u16 = 7701;

/// What the built-in profile `dev` changes: nobody waits for a grace that nobody needs.
pub const PRESETS: &[Preset] = &[Preset { profile: "dev", values: "[global_cache]\ngrace = \"0s\"\n" }];

/// The arbiter: which provider may hold which record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// Where providers find the arbiter.
    pub listen: SocketAddr,
    /// How often providers renew their lease.
    pub renew: Time,
    /// After this long without an answered renewal a provider commits nothing more.
    pub self_release: Time,
    /// How long after that it may still write what it committed before.
    pub flush: Time,
    /// After this long without a renewal everything it held is free. A provider must have stopped well before, also by a
    /// slow clock: (self_release + flush) x 1.25 + 2 x ping + 500ms < eviction.
    pub eviction: Time,
    /// The longest way of a message and back that is reckoned with.
    pub ping: Time,
    /// After a start: how long nothing is granted, since others may still use what was granted before. Not set: as long
    /// as `eviction`.
    pub grace: Option<Time>,
    /// Records that one provider may hold; more are denied with QUOTA.
    pub held_max: usize,
    /// Providers at once; more are refused with LIMIT.
    pub sessions_max: usize,
    /// Requests that may wait for one record; more are denied with BUSY.
    pub waiting_max: usize,
    /// Records that may be waited for at once; more are denied with BUSY.
    pub waited_for_max: usize,
    /// Connections that have not said yet who they are; more are closed.
    pub strangers_max: usize,
    /// Of these, from one address.
    pub strangers_per_address_max: usize,
}

/// How long the arbiter may take to notice that a lease is over.
const SCAN: Time = Time::millis(500);

impl Default for Config {
    fn default() -> Self {
        let settings = Settings::new(Epoch::default());
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            renew: Time::secs(1),
            self_release: Time::secs(4),
            flush: Time::secs(3),
            eviction: Time::secs(10),
            ping: Time::millis(250),
            grace: None,
            held_max: settings.held_max,
            sessions_max: settings.sessions_max,
            waiting_max: settings.waiting_max,
            waited_for_max: settings.ops_max,
            strangers_max: 1_024,
            strangers_per_address_max: 256,
        }
    }
}

impl Config {
    /// All that is wrong, at once.
    pub fn check(&self) -> Result<(), Vec<BadSetting>> {
        let mut bad = Vec::new();
        let mut complain = |key, why: String| bad.push(BadSetting::new("global_cache", key, why));
        if let Err(error) = self.terms().check(self.ping.span(), SCAN.span()) {
            complain("eviction", error.to_string());
        }
        if self.renew.0 * 3 > self.self_release.0 {
            complain(
                "renew",
                "two renewals may be lost before a provider stops: at most a third of self_release".into(),
            );
        }
        let least_one = [
            ("held_max", self.held_max),
            ("sessions_max", self.sessions_max),
            ("waiting_max", self.waiting_max),
            ("waited_for_max", self.waited_for_max),
            ("strangers_max", self.strangers_max),
            ("strangers_per_address_max", self.strangers_per_address_max),
        ];
        for (key, _) in least_one.into_iter().filter(|(_, value)| *value == 0) {
            complain(key, "at least 1".to_owned());
        }
        if self.sessions_max > usize::from(u16::MAX) {
            complain("sessions_max", format!("at most {}", u16::MAX));
        }
        if bad.is_empty() { Ok(()) } else { Err(bad) }
    }

    pub fn terms(&self) -> Terms {
        Terms {
            renew: self.renew.span(),
            self_release: self.self_release.span(),
            flush: self.flush.span(),
            eviction: self.eviction.span(),
        }
    }

    pub fn settings(&self, epoch: Epoch) -> Settings {
        let terms = self.terms();
        Settings {
            epoch,
            terms,
            grace: self.grace.map_or(terms.eviction, Time::span),
            held_max: self.held_max,
            sessions_max: self.sessions_max,
            waiting_max: self.waiting_max,
            ops_max: self.waited_for_max,
        }
    }
}
