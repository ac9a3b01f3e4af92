//! `bench directory`: how many registrations one directory takes in a second, and how fast its subscribers see a change.

use anyhow::{Context, Result, bail};
use serde_json::json;
use service_manager::config::StoreKind;

use super::directory_load::Seen;
use super::parts;
use super::process::{self, Part};
use super::report::{self, Row};

const BENCH: &str = "directory";
const ROUNDS: u32 = 3;
/// The slowest of a hundred subscribers sees a change within this, in microseconds.
const FANOUT_P99_MAX_US: f64 = 20_000.0;

/// How to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Measured seconds per workload, in 3 rounds.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Only this workload: `register`, `join` or `fanout-1000`; may be given more than once.
    #[arg(long)]
    pub workload: Vec<String>,
    /// Where the directory keeps what it knows.
    #[arg(long, default_value = "memory", value_parser = parts::store_kind)]
    pub store: StoreKind,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

/// A shape of load.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    /// As the load process knows it.
    kind: &'static str,
    sessions: usize,
}

const WORKLOADS: [Workload; 3] = [
    // Nodes that are in change what they offer.
    Workload { name: "register", kind: "register", sessions: 64 },
    // New nodes come, are given an epoch, offer something and leave.
    Workload { name: "join", kind: "join", sessions: 64 },
    // One node changes what it offers, and a thousand others follow it.
    Workload { name: "fanout-1000", kind: "fanout", sessions: 1_000 },
];

/// Measures and prints; fails when something could not be measured.
pub async fn run(options: &Options) -> Result<()> {
    let chosen: Vec<_> = WORKLOADS
        .into_iter()
        .filter(|w| options.workload.is_empty() || options.workload.iter().any(|name| name == w.name))
        .collect();
    if chosen.is_empty() {
        bail!("no such workload; there are {}", WORKLOADS.map(|w| w.name).join(", "));
    }
    let data = tempfile::tempdir().context("a folder for the store")?;
    let folder = data.path().join("directory").to_string_lossy().into_owned();
    let mut args = vec!["bench-part", "directory", "--store", options.store.as_str(), "--ttl-seconds", "60"];
    if options.store.on_disk().is_some() {
        args.extend(["--data-dir", &folder]);
    }
    let directory = process::start(process::ourselves(&args, false)?)?;
    for workload in chosen {
        measure(options, workload, &directory)?;
    }
    Ok(())
}

fn measure(options: &Options, workload: Workload, directory: &Part) -> Result<()> {
    let rounds: Result<Vec<Seen>> = (0..ROUNDS).map(|_| load(options, workload, directory)).collect();
    let rounds = rounds?;
    let measured = report::median(&rounds.iter().map(|seen| seen.measured).collect::<Vec<_>>());
    let limits =
        format!("in clear, store {}, {} sessions, lease 60s", options.store.as_str(), workload.sessions);
    let row = Row {
        bench: BENCH,
        subject: "linkstead",
        workload: workload.name,
        measured,
        pinned: false,
        limits: &limits,
    };
    report::row(&row, options.json);
    if workload.kind == "fanout" {
        last(&rounds, workload, measured.p99_us, options.json);
    }
    Ok(())
}

/// The last subscriber of each change, and the target.
fn last(rounds: &[Seen], workload: Workload, p99_us: f64, as_json: bool) {
    let of = |figure: fn(&Seen) -> f64| report::middle(rounds.iter().map(figure).collect());
    let (last_p50_us, last_p99_us) = (of(|seen| seen.last_p50_us), of(|seen| seen.last_p99_us));
    let met = p99_us <= FANOUT_P99_MAX_US;
    if as_json {
        let kind = "last";
        println!(
            "{}",
            json!({ "bench": BENCH, "workload": workload.name, "kind": kind, "last_p50_us": last_p50_us, "last_p99_us": last_p99_us, "target_p99_us": FANOUT_P99_MAX_US, "met": met })
        );
    } else {
        println!(
            "{BENCH:<10} {:<16} the last subscriber: p50 {last_p50_us:.1} us  p99 {last_p99_us:.1} us; target p99 {FANOUT_P99_MAX_US:.0} us {}",
            workload.name,
            report::met(met)
        );
    }
}

/// One round: a load process of its own.
fn load(options: &Options, workload: Workload, directory: &Part) -> Result<Seen> {
    let measure_ms = (options.seconds * 1_000.0 / f64::from(ROUNDS)).max(50.0) as u64;
    let (sessions, measure_ms) = (workload.sessions.to_string(), measure_ms.to_string());
    let args = [
        "bench-part",
        "directory-load",
        workload.kind,
        "--addr",
        &directory.addr,
        "--sessions",
        &sessions,
        "--measure-ms",
        &measure_ms,
    ];
    let output = process::ourselves(&args, false)?.output().context("running the load")?;
    if !output.status.success() {
        bail!("the load {} failed: {}", workload.name, String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("reading what the load measured")
}
