//! `cargo sim SEED`: replays one seed of the simulator of clusters, `cargo sim --records=SETTING SEED` one of the simulator
//! of records; `cargo sim --smoke` runs many of both.

use std::fmt::Display;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tests::records::{self, Setting};
use tests::sim::{self, Keep};

/// How many seeds `--smoke` runs of clusters.
const SMOKE: u64 = 2_000;
/// And of each setting of records.
const SMOKE_RECORDS: u64 = 20;

#[derive(Parser)]
#[command(name = "cargo sim", about = "Runs cores in virtual time, out of a seed")]
struct Options {
    /// The seed to replay.
    seed: Option<u64>,
    /// Of records and who may hold them, in this setting; without one in each.
    #[arg(long, value_name = "SETTING", num_args = 0..=1, require_equals = true, default_missing_value = "each")]
    records: Option<String>,
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

/// One run of either simulator, as far as a report needs it.
struct Ran {
    text: String,
    short: Option<String>,
    steps: u64,
    lasted_us: u64,
    hash: u64,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let (all, settings) = (options.all, settings(options.records.as_deref())?);
    let range = options.seeds.as_deref().map(range).transpose()?;
    let keep = if options.trace { Keep::Print } else { Keep::Tail };
    if let Some(seed) = options.seed {
        let runs: Vec<Ran> = match &settings[..] {
            [] => vec![cluster(seed, keep)],
            settings => settings.iter().map(|setting| record(*setting, seed, keep)).collect(),
        };
        return Ok(replayed(&runs));
    }
    let mut good = true;
    if settings.is_empty() {
        let seeds = range.clone().or_else(|| options.smoke.then_some(0..SMOKE));
        let seeds = seeds.context("name a seed, `--seeds A..B` or `--smoke`")?;
        good &= many(
            "clusters",
            seeds,
            all,
            |seed| cluster(seed, Keep::Nothing),
            |seed| cluster(seed, Keep::Tail),
        );
    }
    let settings = if options.smoke && settings.is_empty() { Setting::EACH.to_vec() } else { settings };
    for setting in settings {
        let seeds = range.clone().unwrap_or(0..SMOKE_RECORDS);
        let run = |keep| move |seed| record(setting, seed, keep);
        good &= many(&setting.name(), seeds, all, run(Keep::Nothing), run(Keep::Tail));
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn settings(name: Option<&str>) -> Result<Vec<Setting>> {
    Ok(match name {
        None => Vec::new(),
        Some("each") => Setting::EACH.to_vec(),
        Some(name) => match Setting::find(name) {
            Some(setting) => vec![setting],
            None => {
                let names: Vec<String> = Setting::EACH.iter().map(|setting| setting.name()).collect();
                bail!("no setting is called {name}; there are {}", names.join(", "));
            }
        },
    })
}

fn range(text: &str) -> Result<Range<u64>> {
    let (from, to) = text.split_once("..").context("write the seeds as A..B")?;
    Ok(from.parse().context("A is no number")?..to.parse().context("B is no number")?)
}

fn cluster(seed: u64, keep: Keep) -> Ran {
    let outcome = sim::run(seed, keep);
    let short = outcome.violation.as_ref().map(|why| broken(why.invariant, why.at, &why.why));
    let (steps, lasted_us, hash) = (outcome.steps, outcome.lasted.0, outcome.hash);
    Ran { text: format!("{outcome}\n{:?}", outcome.tally), short, steps, lasted_us, hash }
}

fn record(setting: Setting, seed: u64, keep: Keep) -> Ran {
    let outcome = records::run(setting, seed, keep);
    let short = outcome.violation.as_ref().map(|why| broken(why.invariant, why.at, &why.why));
    let (steps, lasted_us, hash) = (outcome.steps, outcome.lasted.0, outcome.hash);
    Ran { text: format!("{outcome}\n{:?}", outcome.tally), short, steps, lasted_us, hash }
}

fn broken(invariant: &str, at: impl Display, why: &str) -> String {
    format!("breaks {invariant} at {at}: {why}")
}

fn replayed(runs: &[Ran]) -> ExitCode {
    for run in runs {
        println!("{}\ntrace {:016x}", run.text, run.hash);
    }
    let good = runs.iter().all(|run| run.short.is_none());
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs seeds until one breaks a promise, or all of them. Whether none did.
fn many(
    of: &str,
    seeds: Range<u64>,
    all: bool,
    run: impl Fn(u64) -> Ran,
    again: impl Fn(u64) -> Ran,
) -> bool {
    let (began, count) = (Instant::now(), seeds.clone().count());
    let (mut steps, mut virtual_us, mut bad) = (0, 0, 0);
    for seed in seeds {
        let ran = run(seed);
        if let Some(short) = &ran.short {
            if !all {
                println!("{}", again(seed).text);
                return false;
            }
            println!("seed {seed} of {of} {short}");
            bad += 1;
        }
        steps += ran.steps;
        virtual_us += ran.lasted_us;
    }
    let (wall, hours) = (began.elapsed().as_secs_f64(), virtual_us as f64 / 3.6e9);
    println!("{of}: {count} seeds, {steps} steps in {wall:.1} s: {:.0} seeds a second", count as f64 / wall);
    println!("  {hours:.1} virtual hours, {:.1} for each minute of wall time", hours / (wall / 60.0));
    if bad > 0 {
        println!("  {bad} of {count} seeds break a promise");
    }
    bad == 0
}
