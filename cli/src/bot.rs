//! `linkstead bot run`: the bots of an example game against a cluster that runs already.

use std::path::PathBuf;

use bazaar::audit::Audit;
use clap::{Args, Subcommand};
use client::bots::{Plan, Summary, Tokens};
use serde::Serialize;

use crate::Failed;
use crate::game::Game;
use crate::ticket::{self, Booth};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play until the time is up and print one summary.
    Run(Options),
}

/// How many, how long, where.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The game that the cluster serves.
    #[arg(long, value_enum, default_value_t = Game::Tavern)]
    pub game: Game,
    /// Addresses of linkds, separated by commas.
    #[arg(long, default_value = "127.0.0.1:7710,127.0.0.1:7810")]
    pub addrs: String,
    #[arg(long, default_value_t = 100)]
    pub bots: u32,
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// The same seed makes each bot draw the same numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
    /// Log in with tickets that this private key signs.
    #[arg(long)]
    pub ticket_key: Option<PathBuf>,
    /// The cluster's name, for the tickets.
    #[arg(long, default_value = "linkstead")]
    pub audience: String,
    /// Connect inside TLS, and believe the authorities in this file; without it everything goes in clear.
    #[arg(long)]
    pub tls_ca: Option<PathBuf>,
    /// The name that a gateway's certificate must carry.
    #[arg(long, default_value = "localhost")]
    pub tls_name: String,
}

impl Options {
    /// What each bot's connection is made with.
    fn client(&self) -> Result<client::Options, Failed> {
        let options = client::Options::new(&self.addrs, "bot");
        let Some(path) = &self.tls_ca else { return Ok(options) };
        let refuse = |why: String| Failed::Usage(format!("--tls-ca {}: {why}", path.display()));
        let roots = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        options.tls(&roots, &self.tls_name).map_err(|error| refuse(error.to_string()))
    }
}

pub async fn run(command: Command) -> Result<(), Failed> {
    let Command::Run(options) = command;
    let tokens = match &options.ticket_key {
        Some(key) => {
            let booth = Booth { signer: ticket::read_signer(key)?, audience: options.audience.clone() };
            Some(booth.tokens())
        }
        None => None,
    };
    let client = options.client()?;
    let summary = play(&options, client, tokens).await;
    report(&summary, None, options.json)
}

/// Lets the bots play to the end.
pub async fn play(options: &Options, client: client::Options, tokens: Option<Tokens>) -> Summary {
    let plan = Plan {
        bots: options.bots,
        seconds: options.seconds,
        seed: options.seed,
        tokens,
        options: client,
        ..Plan::new(&options.addrs)
    };
    options.game.play(plan.ramped_within_a_fifth()).await
}

/// A summary, and what the game's records say to it.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<&'a Audit>,
}

/// Prints the summary; an error when any bot saw something wrong.
pub fn report(summary: &Summary, audit: Option<&Audit>, json: bool) -> Result<(), Failed> {
    if json {
        let report = Report { summary, audit };
        println!("{}", serde_json::to_string(&report).map_err(|error| Failed::Running(error.into()))?);
    } else {
        println!(
            "{} bots, {} logins, {} requests, {} pushes, {} errors, p50 {} us, p99 {} us",
            summary.bots,
            summary.logins,
            summary.requests,
            summary.pushes,
            summary.errors,
            summary.p50_us,
            summary.p99_us
        );
    }
    if summary.passed() {
        return Ok(());
    }
    for failure in &summary.failures {
        eprintln!("  {failure}");
    }
    Err(Failed::Running(anyhow::anyhow!(
        "{} errors, {} failed assertions",
        summary.errors,
        summary.failed_assertions
    )))
}
