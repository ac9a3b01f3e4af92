//! Instructions of a transaction, counted by valgrind: the same on every run of one build, whatever else the machine does.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::json;

/// What it was when somebody last looked: a workload and its instructions a line.
const BEFORE: &str = include_str!("callgrind.txt");
/// How many times that fails.
const TIMES_MAX: f64 = 1.1;
/// Transactions that are counted.
const COUNT: u64 = 50_000;

/// Counts and prints; fails when a transaction takes more than a tenth more instructions than it did.
pub fn run(as_json: bool) -> Result<()> {
    let mut grown = Vec::new();
    for line in BEFORE.lines().filter(|line| !line.starts_with('#')) {
        let (workload, before) = line.split_once(' ').context("callgrind.txt: WORKLOAD INSTRUCTIONS")?;
        let before: f64 = before.trim().parse().context("callgrind.txt: a number of instructions")?;
        let now = count(workload)?;
        let met = now <= before * TIMES_MAX;
        if as_json {
            println!(
                "{}",
                json!({ "bench": "txn", "workload": workload, "kind": "instructions", "instructions": now, "before": before, "times_max": TIMES_MAX, "met": met })
            );
        } else {
            println!("txn        {workload:<16} {now:>7.1} instructions a transaction; {before} before");
        }
        if !met {
            grown.push(format!("{workload} takes {now:.1} instructions instead of {before}"));
        }
    }
    if grown.is_empty() {
        return Ok(());
    }
    bail!(
        "{}: make it as quick as it was, or say why in the commit that changes callgrind.txt",
        grown.join(", ")
    )
}

/// Instructions of one transaction on the thread that runs it.
fn count(workload: &str) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("callgrind.out");
    let status = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--quiet",
            "--collect-atstart=no",
            "--toggle-collect=*::txn_load::counted*",
        ])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().context("where this binary is")?)
        .args(["bench-part", "txn-load", workload, "--backend", "memory", "--count", &COUNT.to_string()])
        .stdout(Stdio::null())
        .status()
        .context("starting valgrind; is it installed?")?;
    if !status.success() {
        bail!("valgrind ended with {status}");
    }
    let total = total(&out)?;
    if total == 0 {
        bail!("valgrind saw nothing of the transactions: is the binary stripped?");
    }
    Ok(total as f64 / COUNT as f64)
}

/// What a run comes to: the line `totals: NUMBER`.
fn total(out: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(out).context("what valgrind has written")?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total.context("no total in what valgrind has written")?.trim().parse().context("valgrind's total")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kept_number_can_be_compared() {
        let lines: Vec<_> = BEFORE.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), 2);
        for line in lines {
            let (_, number) = line.split_once(' ').unwrap();
            assert!(number.trim().parse::<f64>().unwrap() > 0.0, "{line}");
        }
    }
}
