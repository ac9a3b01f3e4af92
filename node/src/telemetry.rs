//! Logs to standard error and metrics to a string. Once per process, whoever of its nodes asks first.
//!
//! Metric names begin with `linkstead_` and are in base units; no label ever holds an account, a role or a node.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Bounds of every `_seconds` histogram: 50 us to 10 s.
const SECONDS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// Logs or metrics that could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryError {
    /// The operator's to mend.
    #[error("node.log.level: {level:?} can't be read: {why}; write a level, or such as info,linkd=debug")]
    Level { level: String, why: String },
    /// Ours: something else in the process took the place.
    #[error("metrics can't be recorded: {0}")]
    Recorder(String),
}

/// What this program is, for logs, `/status` and `version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    pub version: &'static str,
    /// "release" or "debug".
    pub profile: &'static str,
}

/// This build.
pub const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    profile: if cfg!(debug_assertions) { "debug" } else { "release" },
};

/// The metrics of this process.
#[derive(Debug, Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Everything recorded, in Prometheus' text form.
    pub fn render(&self) -> String {
        self.0.run_upkeep();
        self.0.render()
    }
}

/// Begins to log as configured. Later calls change nothing: the first node of a process decides.
pub fn logs(log: &Log) -> Result<(), TelemetryError> {
    let bad = |error: tracing_subscriber::filter::ParseError| TelemetryError::Level {
        level: log.level.clone(),
        why: error.to_string(),
    };
    let filter = EnvFilter::builder().parse(&log.level).map_err(bad)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Refused only when somebody logs already, which is the rule above.
    let _ = match log.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Begins to record metrics, or joins whoever has begun.
pub fn metrics() -> Result<Metrics, TelemetryError> {
    static METRICS: OnceLock<Result<Metrics, TelemetryError>> = OnceLock::new();
    METRICS.get_or_init(install).clone()
}

fn install() -> Result<Metrics, TelemetryError> {
    let refused = |error: &dyn std::fmt::Display| TelemetryError::Recorder(error.to_string());
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
        .map_err(|error| refused(&error))?;
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    ::metrics::set_global_recorder(recorder).map_err(|error| refused(&error))?;
    ::metrics::gauge!("linkstead_build_info", "version" => BUILD.version, "profile" => BUILD.profile)
        .set(1.0);
    Ok(Metrics(handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_recorded_once_and_rendered() {
        let first = metrics().unwrap();
        ::metrics::counter!("linkstead_telemetry_test_total").increment(2);
        ::metrics::histogram!("linkstead_telemetry_test_seconds").record(0.003);
        let text = metrics().unwrap().render();
        assert!(text.contains("linkstead_telemetry_test_total 2"), "{text}");
        assert!(text.contains("linkstead_telemetry_test_seconds_bucket{le=\"0.005\"} 1"), "{text}");
        assert!(first.render().contains("linkstead_build_info"));
    }

    /// Holds: BI-109.
    #[test]
    fn a_level_that_can_not_be_read_is_named() {
        let log = Log { level: "linkd=loud".to_owned(), ..Log::default() };
        let why = logs(&log).unwrap_err().to_string();
        assert!(why.contains("node.log.level") && why.contains("linkd=loud"), "{why}");
    }
}
