//! `bench txn`: how many transactions a second one provider commits on records that it has in memory.

use anyhow::{Context, Result, bail};

use super::load::Measured;
use super::records::Storage;
use super::report::{self, Row, Target};
use super::{callgrind, process};

const BENCH: &str = "txn";
const ROUNDS: u32 = 3;

/// How to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Measured seconds per workload and form, in 3 interleaved rounds.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Only this workload: `one-thread`, `two-threads`, `many-keys`, `one-key` or `read-only`; may be given more than once.
    #[arg(long)]
    pub workload: Vec<String>,
    /// Where the records are written to.
    #[arg(long, value_enum, default_value = "sled")]
    pub backend: Storage,
    /// Count the instructions of a transaction under valgrind instead, and fail if there are many more than there were.
    #[arg(long)]
    pub callgrind: bool,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

/// A shape of load, and how many a second it is to come to in the closure form.
const WORKLOADS: [(&str, f64); 5] =
    [("one-thread", 5e6), ("two-threads", 7e6), ("many-keys", 4e6), ("one-key", 2e6), ("read-only", 8e6)];

/// How a transaction is written: what it is called in the rows, and in the load's arguments.
const FORMS: [(&str, Option<&str>); 2] = [("closure", None), ("handler", Some("--handler"))];

/// Measures and prints; fails when something could not be measured.
pub fn run(options: &Options) -> Result<()> {
    if options.callgrind {
        return callgrind::run(options.json);
    }
    let chosen: Vec<_> = WORKLOADS
        .into_iter()
        .filter(|(name, _)| options.workload.is_empty() || options.workload.iter().any(|asked| asked == name))
        .collect();
    if chosen.is_empty() {
        bail!("no such workload; there are {}", WORKLOADS.map(|(name, _)| name).join(", "));
    }
    for (workload, target) in chosen {
        measure(options, workload, target)?;
    }
    Ok(())
}

fn measure(options: &Options, workload: &str, target: f64) -> Result<()> {
    let mut rounds = FORMS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((_, form), rounds) in FORMS.into_iter().zip(&mut rounds) {
            rounds.push(load(options, workload, form)?);
        }
    }
    let limits = format!(
        "grouped, lease checks on, storage {}, a record of two fields, all in memory, one in 256 timed",
        options.backend.as_str()
    );
    let medians = rounds.map(|rounds| report::median(&rounds));
    for ((subject, _), measured) in FORMS.into_iter().zip(medians) {
        let row = Row { bench: BENCH, subject, workload, measured, pinned: false, limits: &limits };
        report::row(&row, options.json);
    }
    report::ratio(BENCH, workload, "the closure", &medians[1], &medians[0], options.json);
    let target = Target { figure: "ops_per_s", least: true, measured: medians[0].ops_per_s, target };
    report::target(BENCH, workload, &target, options.json);
    Ok(())
}

/// One round: a load process of its own.
fn load(options: &Options, workload: &str, form: Option<&str>) -> Result<Measured> {
    let measure_ms = (options.seconds * 1_000.0 / f64::from(ROUNDS)).max(50.0) as u64;
    let measure_ms = measure_ms.to_string();
    let backend = options.backend.as_str();
    let mut args =
        vec!["bench-part", "txn-load", workload, "--backend", backend, "--measure-ms", &measure_ms];
    args.extend(form);
    let output = process::ourselves(&args, false)?.output().context("running the load")?;
    if !output.status.success() {
        bail!("the load {workload} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("reading what the load measured")
}
