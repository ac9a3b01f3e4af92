//! With which limits a bench measures: what its linkds and providers start with, and the same in words for its rows.

use std::net::{Ipv4Addr, SocketAddr};

use node::config::Size;
use serde::Serialize;
use serde_json::{Value, json};

/// Any free port.
pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The settings of `[linkd]` that bear on a measurement.
const OF_LINKD: &[&str] = &[
    "auth",
    "workers",
    "connections_max",
    "frame_max",
    "out_queue_max",
    "frames_per_second",
    "frames_burst",
    "bytes_per_second",
    "bytes_burst",
    "provider_requests_per_second",
    "provider_backlog_max",
    "out_bytes_per_second",
];
/// Those of `[provider]`.
const OF_PROVIDER: &[&str] = &["in_flight_max"];

/// Every linkd of a bench.
pub fn linkd() -> linkd::Config {
    let caps = 100_000;
    linkd::Config {
        listen: ANY,
        ws_listen: linkd::config::Listen::Off,
        provider_listen: ANY,
        workers: 1,
        connections_max: caps,
        per_address_max: caps,
        unauthed_max: caps,
        // All guards are on, at two to four times what the loads of `forward` offer.
        frames_per_second: 100_000,
        frames_burst: 200_000,
        bytes_per_second: Size::mib(16),
        bytes_burst: Size::mib(32),
        provider_requests_per_second: 2_000_000,
        out_bytes_per_second: Size::mib(192),
        ..linkd::Config::default()
    }
}

/// Every provider of a bench, which logs everybody in at once.
pub fn provider() -> linkstead::Config {
    linkstead::Config { max_online_new: u32::MAX, ..linkstead::Config::default() }
}

/// What is in force in a run with a linkd only.
pub fn of_linkd() -> String {
    in_words(&linkd(), OF_LINKD).join(", ")
}

/// What is in force at linkd and provider.
pub fn of_both() -> String {
    [in_words(&linkd(), OF_LINKD), in_words(&provider(), OF_PROVIDER)].concat().join(", ")
}

/// The named settings of a configuration, as one writes them; one that it does not have is left out.
fn in_words(config: &impl Serialize, names: &[&str]) -> Vec<String> {
    let values = json!(config);
    let word = |name: &&str| match values.get(name)? {
        Value::String(text) => Some(format!("{name} {text}")),
        value => Some(format!("{name} {value}")),
    };
    names.iter().filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_setting_exists() {
        assert_eq!(in_words(&linkd(), OF_LINKD).len(), OF_LINKD.len());
        assert_eq!(in_words(&provider(), OF_PROVIDER).len(), OF_PROVIDER.len());
    }

    #[test]
    fn the_words_are_those_of_the_configuration() {
        let config = linkd::Config { workers: 3, frame_max: Size::kib(2), ..linkd() };
        assert_eq!(
            in_words(&config, &["workers", "frame_max", "auth"]),
            ["workers 3", "frame_max 2KiB", "auth open"]
        );
        assert!(of_both().contains("frames_per_second 100000") && of_both().ends_with("in_flight_max 64"));
    }
}
