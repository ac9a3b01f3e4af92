//! The commands of the `linkstead` binary. Each role is a command, and so is everything an operator asks.
//!
//! Exit codes: 0 it worked; 1 it failed while running; 2 the command line or the configuration is wrong, nothing was
//! started; 3 a node could not be reached or refused.

mod bench;
mod bot;
pub mod cert;
pub mod config;
mod game;
mod locks;
mod operate;
mod role;
mod steer;
mod store;
mod ticket;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use bench::{Bench, Part};
use config::Given;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "linkstead",
    version,
    about = "A distributed game server framework: gateways, providers, directory."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a whole cluster with the example game in this process.
    Up(up::Options),
    /// Run the directory.
    ServiceManager(Given),
    /// Run the arbiter of records.
    GlobalCache(Given),
    /// Run a gateway.
    Linkd(Given),
    /// Read the configuration and say what is wrong with it.
    CheckConfig(Check),
    /// Print the configuration in effect, secrets masked.
    PrintConfig(Given),
    /// Make the certificates with which nodes prove who they are.
    #[command(subcommand)]
    Cert(cert::Command),
    /// Ask every node of the cluster how it is.
    Status(operate::Ask),
    /// Show which nodes there are and what they offer.
    Topology(operate::Ask),
    /// End the sessions of an account, wherever they are.
    Kick(operate::Kick),
    /// Close a provider to new players; who is there stays.
    Drain(steer::Drain),
    /// Open a provider to new players again.
    Undrain(steer::Drain),
    /// Show where an account is logged in, or who holds a record.
    Lookup(steer::Lookup),
    /// Show the records that providers contend for.
    #[command(subcommand)]
    Locks(locks::Command),
    /// Stop a node, or the whole cluster in order.
    Stop(steer::Stop),
    /// Measure, beside a baseline.
    #[command(subcommand)]
    Bench(Bench),
    /// Play with many scripted players.
    #[command(subcommand)]
    Bot(bot::Command),
    /// Make keys and tickets for logging in.
    #[command(subcommand)]
    Ticket(ticket::Command),
    /// Check the store of a stopped node, save it to a file, or make one of a file.
    #[command(subcommand)]
    Store(store::Command),
    /// Print the version.
    Version {
        #[arg(long)]
        json: bool,
    },
    /// One process of a bench.
    #[command(subcommand, hide = true)]
    BenchPart(Part),
}

/// What `check-config` reads.
#[derive(Debug, clap::Args)]
struct Check {
    #[command(flatten)]
    given: Given,
    /// Judge the certificates as this role's start does: directory, arbiter, linkd, provider.
    #[arg(long, value_parser = cert::role)]
    role: Option<net::hello::Role>,
}

/// Why a command failed, as far as the exit code tells.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// Exit code 3.
    #[error("{0}")]
    Unreachable(String),
    /// Exit code 1.
    #[error("{0:#}")]
    Running(#[from] anyhow::Error),
}

impl Failed {
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failed::Running(_) => 1,
            Failed::Usage(_) => 2,
            Failed::Unreachable(_) => 3,
        })
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Clap prints help and version to standard output and mistakes to standard error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("{failed}");
            failed.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), Failed> {
    match command {
        Command::CheckConfig(Check { given, role }) => {
            given.check(role).map(|()| println!("the configuration is good"))
        }
        Command::Cert(command) => cert::run(command),
        Command::PrintConfig(given) => given.print(),
        Command::Version { json } => {
            version(json);
            Ok(())
        }
        Command::BenchPart(part) => bench::run_part(part).map_err(Failed::from),
        Command::Ticket(command) => ticket::run(command),
        Command::Store(command) => store::run(command),
        other => runtime()?.block_on(run_async(other)),
    }
}

async fn run_async(command: Command) -> Result<(), Failed> {
    match command {
        Command::Up(options) => up::run(options).await,
        Command::ServiceManager(given) => role::service_manager(&given).await,
        Command::GlobalCache(given) => role::global_cache(&given).await,
        Command::Linkd(given) => role::linkd(&given).await,
        Command::Status(ask) => operate::status(&ask).await,
        Command::Topology(ask) => operate::topology(&ask).await,
        Command::Kick(kick) => operate::kick(&kick).await,
        Command::Drain(drain) => steer::drain(&drain, true).await,
        Command::Undrain(drain) => steer::drain(&drain, false).await,
        Command::Lookup(lookup) => steer::lookup(&lookup).await,
        Command::Locks(command) => locks::run(command).await,
        Command::Stop(stop) => steer::stop(&stop).await,
        Command::Bench(bench) => bench::run(bench).await.map_err(Failed::from),
        Command::Bot(command) => bot::run(command).await,
        Command::CheckConfig(_)
        | Command::Ticket(_)
        | Command::Store(_)
        | Command::PrintConfig(_)
        | Command::Cert(_)
        | Command::Version { .. }
        | Command::BenchPart(_) => Ok(()),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failed::Running(error.into()))
}

fn version(json: bool) {
    let build = node::telemetry::BUILD;
    if json {
        println!("{}", serde_json::json!({ "version": build.version, "profile": build.profile }));
    } else {
        println!("linkstead {} ({})", build.version, build.profile);
    }
}

/// The pages whose Rust must compile.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/start.md")]
    struct Start;
    #[doc = include_str!("../../docs/guides/tls.md")]
    struct Tls;
    #[doc = include_str!("../../docs/guides/records.md")]
    struct Records;
    #[doc = include_str!("../../docs/guides/authentication.md")]
    struct Authentication;
}
