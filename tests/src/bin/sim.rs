//! `cargo sim SEED`: replays one seed of the simulator; `cargo sim --smoke` runs many.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tests::sim::{self, Keep, Outcome, Tally};

/// How many seeds `--smoke` runs.
const SMOKE: u64 = 2_000;

#[derive(Parser)]
#[command(name = "cargo sim", about = "Runs the cluster's cores in virtual time, out of a seed")]
struct Options {
    /// The seed to replay.
    seed: Option<u64>,
    /// Prints every line of the run.
    #[arg(long)]
    trace: bool,
    /// Runs many seeds and says how fast that went.
    #[arg(long, conflicts_with = "seed")]
    smoke: bool,
    /// Runs the seeds from A to B, B not included.
    #[arg(long, value_name = "A..B", conflicts_with_all = ["seed", "smoke"])]
    seeds: Option<String>,
    /// Goes on after a broken promise, with one line for each.
    #[arg(long)]
    all: bool,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let seeds = match (options.seed, &options.seeds) {
        (Some(seed), _) => return Ok(replay(seed, options.trace)),
        (None, Some(seeds)) => range(seeds)?,
        (None, None) if options.smoke => 0..SMOKE,
        (None, None) => bail!("name a seed, `--seeds A..B` or `--smoke`"),
    };
    Ok(many(seeds, options.all))
}

fn range(text: &str) -> Result<std::ops::Range<u64>> {
    let (from, to) = text.split_once("..").context("write the seeds as A..B")?;
    Ok(from.parse().context("A is no number")?..to.parse().context("B is no number")?)
}

fn replay(seed: u64, trace: bool) -> ExitCode {
    let outcome = if trace { sim::run(seed, Keep::Print) } else { sim::run(seed, Keep::Tail) };
    println!("{outcome}");
    println!("trace {:016x}", outcome.hash);
    verdict(&outcome)
}

fn verdict(outcome: &Outcome) -> ExitCode {
    if outcome.violation.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs seeds until one breaks a promise, or all of them.
fn many(seeds: std::ops::Range<u64>, all: bool) -> ExitCode {
    let (began, count) = (Instant::now(), seeds.clone().count());
    let (mut steps, mut virtual_us, mut tally, mut broken) = (0, 0, Tally::default(), 0);
    for seed in seeds {
        let outcome = if all { sim::run(seed, Keep::Nothing) } else { sim::examine(seed) };
        match &outcome.violation {
            Some(violation) if all => {
                let sim::Violation { invariant, at, why } = violation;
                println!("seed {seed} breaks {invariant} at {at}: {why}");
                broken += 1;
            }
            Some(_) => {
                println!("{outcome}");
                return ExitCode::FAILURE;
            }
            None => {}
        }
        steps += outcome.steps;
        virtual_us += outcome.lasted.0;
        tally.add(&outcome.tally);
    }
    let (wall, hours) = (began.elapsed().as_secs_f64(), virtual_us as f64 / 3.6e9);
    println!("{count} seeds, {steps} steps in {wall:.1} s: {:.0} seeds a second", count as f64 / wall);
    println!("{hours:.1} virtual hours, {:.1} for each minute of wall time", hours / (wall / 60.0));
    println!("{tally:?}");
    if broken == 0 {
        return ExitCode::SUCCESS;
    }
    println!("{broken} of {count} seeds break a promise");
    ExitCode::FAILURE
}
