//! `bench connections`: the memory that one idle, logged-in connection costs a linkd, whether it comes back when they
//! leave, and how fast they are let in. Memory is the linkd process's PSS.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::hold::Held;
use super::limits;
use super::process::{self, Part};

/// How the ancestor's linkd let clients in: 10,000 in 1.7 s. For orientation; another machine.
const ANCESTOR_LOGINS_PER_S: f64 = 10_000.0 / 1.7;
/// Connections of one holding process; each needs a file.
const PER_PROCESS_MAX: usize = 4_000;
/// How long linkd's memory may take to come to rest.
const REST: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(250);

/// How to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Connections in all.
    #[arg(long, default_value_t = 15_000)]
    pub count: usize,
    /// Processes that hold them; more are started when one would hold more than 4,000.
    #[arg(long, default_value_t = 4)]
    pub processes: usize,
    /// Only this workload: `idle` is the only one.
    #[arg(long)]
    pub workload: Vec<String>,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    bench: &'static str,
    subject: &'static str,
    workload: &'static str,
    count: usize,
    bytes_per_connection: f64,
    /// The share of that memory that the system had back after all had left.
    returned: f64,
    logins_per_s: f64,
    ancestor_logins_per_s: f64,
    errors: u64,
    limits: String,
}

/// Measures and prints; fails when a connection failed.
pub async fn run(options: &Options) -> Result<()> {
    if let Some(other) = options.workload.iter().find(|name| *name != "idle") {
        bail!("no workload {other:?}; there is idle");
    }
    if options.count == 0 {
        bail!("--count 0 measures nothing");
    }
    let directory = process::start(process::ourselves(&["bench-part", "directory"], false)?)?;
    let linkd = ["bench-part", "linkd", "--directory", &directory.addr];
    let linkd = process::start(process::ourselves(&linkd, false)?)?;
    // The first connections pay for what is made once.
    drop(hold(&linkd, 0, 200)?);
    let before = at_rest(&linkd).await?;
    let holders = holders(options, &linkd)?;
    let with = at_rest(&linkd).await?;
    let said: Vec<Held> = holders.iter().map(|(_, held)| *held).collect();
    drop(holders);
    let after = at_rest(&linkd).await?;

    let began = said.iter().map(|held| held.began_us).min().unwrap_or(0);
    let done = said.iter().map(|held| held.done_us).max().unwrap_or(0);
    let errors = said.iter().map(|held| held.errors).sum();
    let cost = with.saturating_sub(before) as f64;
    let row = Row {
        bench: "connections",
        subject: "linkstead",
        workload: "idle",
        count: options.count,
        bytes_per_connection: cost / options.count as f64,
        returned: with.saturating_sub(after) as f64 / cost.max(1.0),
        logins_per_s: options.count as f64 / (done.saturating_sub(began) as f64 / 1e6),
        ancestor_logins_per_s: ANCESTOR_LOGINS_PER_S,
        errors,
        limits: format!("in clear, {}", limits::of_linkd()),
    };
    print(&row, options.json);
    if errors > 0 {
        bail!("{errors} connections failed");
    }
    Ok(())
}

fn print(row: &Row, as_json: bool) {
    if as_json {
        println!("{}", json!(row));
        return;
    }
    println!(
        "{:<11} {:<10} {:<8} {} connections  {:.0} B each  {:.0} % returned  {:.0} logins/s (the ancestor: {:.0})",
        row.bench,
        row.subject,
        row.workload,
        row.count,
        row.bytes_per_connection,
        row.returned * 100.0,
        row.logins_per_s,
        row.ancestor_logins_per_s
    );
}

/// Starts all holding processes at once and waits until each has everybody in.
fn holders(options: &Options, linkd: &Part) -> Result<Vec<(Part, Held)>> {
    let processes = options.processes.max(options.count.div_ceil(PER_PROCESS_MAX)).max(1);
    let share = options.count.div_ceil(processes);
    std::thread::scope(|scope| {
        let starting: Vec<_> = (0..processes)
            .map(|index| {
                let first = index * share;
                let count = share.min(options.count.saturating_sub(first));
                scope.spawn(move || hold(linkd, first, count))
            })
            .collect();
        let joined = starting.into_iter().map(|thread| match thread.join() {
            Ok(held) => held,
            Err(_) => bail!("a thread that waits for a process panicked"),
        });
        joined.collect()
    })
}

fn hold(linkd: &Part, first: usize, count: usize) -> Result<(Part, Held)> {
    let (first, count) = (first.to_string(), count.to_string());
    let args = ["bench-part", "hold", "--addr", &linkd.addr, "--count", &count, "--first", &first];
    let part = process::start(process::ourselves(&args, false)?)?;
    let held = serde_json::from_str(&part.addr).context("reading what was held")?;
    Ok((part, held))
}

/// The linkd's memory in bytes once it changes no more.
async fn at_rest(linkd: &Part) -> Result<u64> {
    let until = Instant::now() + REST;
    let mut last = pss(linkd.pid())?;
    let mut calm = 0;
    while calm < 4 && Instant::now() < until {
        tokio::time::sleep(LOOK).await;
        let now = pss(linkd.pid())?;
        calm = if now.abs_diff(last) < 64 * 1024 { calm + 1 } else { 0 };
        last = now;
    }
    Ok(last)
}

fn pss(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).context("no Pss in smaps_rollup")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().with_context(|| path)?;
    Ok(kib * 1024)
}
