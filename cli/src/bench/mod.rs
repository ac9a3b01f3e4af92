//! `linkstead bench`: measured in processes of their own, beside a baseline in the same run, as ratios.

mod acquire;
mod acquire_load;
mod callgrind;
mod connections;
mod directory;
mod directory_load;
mod dirty_load;
mod echo;
mod flush;
mod flush_load;
mod forward;
mod haproxy;
mod hold;
mod limits;
mod load;
mod node_echo;
mod parts;
mod process;
mod records;
mod redis;
mod report;
mod tally;
mod txn;
mod txn_load;

use base::{ModuleId, ProtocolId, TypeId, hash};
use clap::{Args, Subcommand};

/// The echo's request: handler `echo` of module `Echo`.
const ECHO: TypeId = TypeId::new(ModuleId(900), ProtocolId(hash::hash32("Echo.echo")));

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Client, linkd, provider echo, linkd, client.
    Forward(Options),
    /// What an idle, logged-in connection costs a linkd, and how fast they come.
    Connections(connections::Options),
    /// Registrations at one directory, and how fast a thousand subscribers see a change.
    Directory(directory::Options),
    /// Transactions on records in memory, a second.
    Txn(txn::Options),
    /// Records granted by an arbiter in another process, a second.
    Acquire(acquire::Options),
    /// Commits that reach the storage, a second, and how long one waits for it.
    Flush(flush::Options),
}

/// How to measure.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Measured seconds per workload and subject, in 3 interleaved rounds.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Only this workload; may be given more than once.
    #[arg(long)]
    pub workload: Vec<String>,
    /// TLS for the players and between the nodes; without it everything goes in clear over loopback.
    #[arg(long)]
    pub tls: bool,
    /// Measure a baseline beside us.
    #[arg(long)]
    pub baseline: Option<Baseline>,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Baseline {
    /// Debian's haproxy in TCP mode before the same echo.
    Haproxy,
}

/// Runs a bench.
pub async fn run(bench: Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Forward(options) => forward::run(&options).await,
        Bench::Connections(options) => connections::run(&options).await,
        Bench::Directory(options) => directory::run(&options).await,
        Bench::Txn(options) => txn::run(&options),
        Bench::Acquire(options) => acquire::run(&options).await,
        Bench::Flush(options) => flush::run(&options),
    }
}

/// A process of a bench. Hidden: benches start these themselves.
pub use parts::{Part, run as run_part};
