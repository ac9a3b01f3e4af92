//! `cargo fuzz`: drives every reader of foreign bytes with inputs that it makes up, and demands that a planted fault is
//! found.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use tests::fuzz::{Fuzzer, PLANTED};

/// How long the planted fault may hide.
const PLANTED_SECONDS_MAX: u64 = 20;

#[derive(Parser)]
#[command(name = "cargo fuzz", about = "Drives the readers of foreign bytes with made-up inputs")]
struct Options {
    /// Shows the targets and runs nothing.
    #[arg(long)]
    list: bool,
    /// Seconds for each target.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Only these targets, without the planted fault.
    targets: Vec<String>,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let fuzzer = Fuzzer::build()?;
    let known = fuzzer.targets()?;
    if options.list {
        known.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(name)) {
        bail!("no target is called `{unknown}`; see `cargo fuzz --list`");
    }
    let all = options.targets.is_empty();
    let targets = if all { known } else { options.targets };
    let mut failed = lanes(&fuzzer, &targets, options.seconds)?;
    if all {
        let (target, fault) = PLANTED;
        let ran = fuzzer.run(target, PLANTED_SECONDS_MAX, Some(fault))?;
        let found = ran.finding.is_some();
        failed += usize::from(!found);
        let verdict = if found { "found, as it must" } else { "MISSED" };
        println!(
            "{target:<18} {:>9} inputs {:>5.1} s  planted {fault}: {verdict}",
            ran.inputs,
            ran.took.as_secs_f64()
        );
    }
    println!("{} targets, {failed} failed", targets.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the targets, as many at once as there are cores, and answers how many found something.
fn lanes(fuzzer: &Fuzzer, targets: &[String], seconds: u64) -> Result<usize> {
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    let lane = |first: usize| -> Result<usize> {
        let mut failed = 0;
        for target in targets.iter().skip(first).step_by(lanes) {
            let ran = fuzzer.run(target, seconds, None)?;
            let verdict = if ran.finding.is_some() { "FOUND" } else { "ok" };
            println!("{target:<18} {:>9} inputs {:>5.1} s  {verdict}", ran.inputs, ran.took.as_secs_f64());
            if let Some(finding) = ran.finding {
                println!("{finding}");
                failed += 1;
            }
        }
        Ok(failed)
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..lanes).map(|first| scope.spawn(move || lane(first))).collect();
        let ended = running.into_iter().map(|lane| lane.join().unwrap_or_else(|_| bail!("a lane panicked")));
        ended.sum::<Result<usize>>()
    })
}
