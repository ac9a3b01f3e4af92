//! `bench flush`: how many commits a second reach the storage, and how long one waits for it.

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::flush_load::Seen;
use super::process;
use super::records::Storage;
use super::report::{self, Row};

const BENCH: &str = "flush";
const ROUNDS: u32 = 3;

/// How to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Measured seconds per workload, in 3 rounds.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Only this workload: `grouped` or `sync-64`; may be given more than once.
    #[arg(long)]
    pub workload: Vec<String>,
    /// Where the records are written to.
    #[arg(long, value_enum, default_value = "sled")]
    pub backend: Storage,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

/// A shape of load: its name, as the load process knows it, its window, and what the row says of it.
const WORKLOADS: [(&str, &str, &str, &str); 2] = [
    (
        "grouped",
        "grouped",
        "1",
        "two threads commit on 10000 records; a third commits with sync every 5ms, and its waits are the times",
    ),
    ("sync-64", "sync", "64", "64 tasks commit with sync, each on a record of its own"),
];

/// Measures and prints; fails when something could not be measured.
pub fn run(options: &Options) -> Result<()> {
    let asked = |name: &str| options.workload.iter().any(|asked| asked == name);
    let chosen: Vec<_> =
        WORKLOADS.into_iter().filter(|(name, ..)| options.workload.is_empty() || asked(name)).collect();
    if chosen.is_empty() {
        bail!("no such workload; there are {}", WORKLOADS.map(|(name, ..)| name).join(", "));
    }
    for (workload, shape, window, what) in chosen {
        let rounds: Result<Vec<Seen>> = (0..ROUNDS).map(|_| load(options, shape, window)).collect();
        let rounds = rounds?;
        let measured = report::median(&rounds.iter().map(|seen| seen.measured).collect::<Vec<_>>());
        let subject = options.backend.as_str();
        let limits = format!("flush interval 20ms, a record of two fields; {what}");
        let row = Row { bench: BENCH, subject, workload, measured, pinned: false, limits: &limits };
        report::row(&row, options.json);
        written(&rounds, workload, options.json);
    }
    Ok(())
}

/// What the storage had to write for it.
fn written(rounds: &[Seen], workload: &str, as_json: bool) {
    let of = |figure: fn(&Seen) -> f64| report::middle(rounds.iter().map(figure).collect());
    let (records, batches) = (of(|seen| seen.records_per_s), of(|seen| seen.batches_per_s));
    if as_json {
        let kind = "written";
        println!(
            "{}",
            json!({ "bench": BENCH, "workload": workload, "kind": kind, "records_per_s": records, "batches_per_s": batches })
        );
    } else {
        println!("{BENCH:<10} {workload:<16} {records:.0} records a second in {batches:.0} batches");
    }
}

/// One round: a load process of its own.
fn load(options: &Options, shape: &str, window: &str) -> Result<Seen> {
    let measure_ms = (options.seconds * 1_000.0 / f64::from(ROUNDS)).max(50.0) as u64;
    let measure_ms = measure_ms.to_string();
    let backend = options.backend.as_str();
    let args = ["bench-part", "flush-load", shape, "--backend", backend, "--window", window];
    let args = [&args[..], &["--measure-ms", &measure_ms]].concat();
    let output = process::ourselves(&args, false)?.output().context("running the load")?;
    if !output.status.success() {
        bail!("the load {shape} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("reading what the load measured")
}
