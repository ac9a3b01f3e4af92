//! The `[provider]` section.

use std::collections::BTreeMap;

use base::{AppVersion, ServerId, Span};
use node::config::{BadSetting, Preset, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::RecordsConfig;

/// What the built-in profiles change in `[provider]`: nothing yet.
pub const PRESETS: &[Preset] = &[];

/// How a provider serves its modules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// This provider's number, unique among the cluster's providers.
    pub server_id: u32,
    /// The group it belongs to: what the names of its modules begin with at the directory. Ends in `/`.
    pub prefix: String,
    /// Where this provider stands; linkds of the same region prefer it. Empty prefers nobody.
    pub region: String,
    /// The game's version, up to four numbers: clients whose first number differs are served by other providers.
    pub app_version: String,
    /// Threads that read from linkds and run handlers that don't wait; at most 64.
    pub io_workers: usize,
    /// Threads for handlers that wait or take long; 0 is as many as cores.
    pub workers: usize,
    /// Requests of one session that may run and wait here together; the next one is answered Busy.
    pub in_flight_max: usize,
    /// Players this provider is meant for. Linkds stop preferring it there; they don't refuse.
    pub propose_max_online: u32,
    /// Logins a second that linkds send here at most.
    pub max_online_new: u32,
    /// The shortest time between two load reports, unless something matters at once.
    pub load_report_min: Time,
    /// The longest time between two load reports.
    pub load_report_max: Time,
    /// What counts as too much work.
    pub overload: Overload,
    /// Where records are kept.
    pub records: RecordsConfig,
    /// Starts closed: linkds send nobody new here until it is opened, by `undrain` or by the game.
    pub initially_disabled: bool,
    /// Settings of single modules, by the module's name: `[provider.modules.Rank]`.
    pub modules: BTreeMap<String, ModuleConfig>,
}

/// When requests are shed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Overload {
    /// From this wait in front of the worker threads on, requests of level `sheddable` are answered Busy.
    pub threshold: Time,
    /// From this wait on only requests of level `critical_plus` run, and linkds bind nobody new.
    pub overload: Time,
    /// So many requests in flight in the whole provider count as overload, half of them as threshold.
    pub in_flight_max: usize,
}

/// Settings of one module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModuleConfig {
    /// How linkds pick a provider, instead of what the code says. All providers of a module must agree.
    pub choice: Option<Choice>,
}

/// How linkds pick a provider for a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Request,
    HashAccount,
    HashRole,
    HashSource,
    FeedFull,
    Load,
}

impl Choice {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::HashAccount => "hash_account",
            Self::HashRole => "hash_role",
            Self::HashSource => "hash_source",
            Self::FeedFull => "feed_full",
            Self::Load => "load",
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            server_id: 1,
            prefix: "module/".to_owned(),
            region: String::new(),
            app_version: "1.0.0.0".to_owned(),
            io_workers: 1,
            workers: 0,
            in_flight_max: 64,
            propose_max_online: 30_000,
            max_online_new: 100,
            load_report_min: Time::secs(1),
            load_report_max: Time::secs(10),
            overload: Overload::default(),
            records: RecordsConfig::default(),
            initially_disabled: false,
            modules: BTreeMap::new(),
        }
    }
}

impl Default for Overload {
    fn default() -> Self {
        Self { threshold: Time::millis(2_000), overload: Time::millis(4_000), in_flight_max: 65_536 }
    }
}

impl Config {
    /// Refuses what can't work, naming the key.
    pub fn check(&self) -> Result<(), BadSetting> {
        let bad = |key: &str, why: String| Err(BadSetting::new("provider", key, why));
        if let Err(error) = self.app_version.parse::<AppVersion>() {
            return bad("app_version", error.to_string());
        }
        if !self.prefix.ends_with('/') || self.prefix.len() > 200 {
            return bad("prefix", "must end in / and be at most 200 bytes".into());
        }
        if !(1..=64).contains(&self.io_workers) {
            return bad("io_workers", "must be 1 to 64".into());
        }
        if self.in_flight_max == 0 || self.overload.in_flight_max == 0 {
            return bad("in_flight_max", "0 would refuse every request".into());
        }
        if self.load_report_min.span() < Span::millis(100) {
            return bad("load_report_min", "must be at least 100ms".into());
        }
        if self.load_report_max < self.load_report_min {
            return bad("load_report_max", "must not be shorter than load_report_min".into());
        }
        self.records.check()?;
        if self.overload.threshold > self.overload.overload {
            return bad("overload.threshold", "must not be longer than overload.overload".into());
        }
        Ok(())
    }

    pub fn server_id(&self) -> ServerId {
        ServerId(self.server_id)
    }

    /// 0.0.0.0 when it can't be read, which [`check`](Self::check) refuses.
    pub fn version(&self) -> AppVersion {
        self.app_version.parse().unwrap_or_default()
    }

    /// The number of pool threads that `workers` means on this machine.
    pub fn worker_count(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        if self.workers == 0 { cores() } else { self.workers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: Q9.
    #[test]
    fn all_six_choices_can_be_configured_and_no_other() {
        let choice = |name: &str| serde_json::from_value::<Choice>(name.into());
        let names = ["request", "load", "feed_full", "hash_account", "hash_role", "hash_source"];
        assert_eq!(names.map(|name| choice(name).unwrap().as_str()), names);
        for wrong in ["", "Request", "round_robin", "ChoiceTypeLoad"] {
            assert!(choice(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert_eq!(Config::default().check(), Ok(()));
        assert!(refused(|c| c.app_version = "1.x".into()).starts_with("provider.app_version: "));
        assert!(refused(|c| c.io_workers = 0).starts_with("provider.io_workers: "));
        assert!(refused(|c| c.load_report_max = Time::millis(500)).starts_with("provider.load_report_max: "));
        assert!(
            refused(|c| c.overload.threshold = Time::secs(9)).starts_with("provider.overload.threshold: ")
        );
    }
}
