//! `linkstead up`: a whole cluster in this process, started in the documented order and stopped in its reverse.

mod books;
mod certs;
mod cluster;
mod ports;
mod web;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use base::Span;
use bazaar::audit::Audit;
use client::bots::Summary;
use node::config::{Log, LogFormat};
use node::lifecycle::Budgets;
use node::{Clock, Shutdown, descriptors, signal, telemetry};

use crate::game::Game;
use crate::ticket::Booth;
use crate::{Failed, bot};
use books::Books;
use cluster::Cluster;
use ports::Ports;
use web::Web;

/// How large, and whether bots play.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Gateways.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub linkds: u16,
    /// Providers of the example game.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub providers: u16,
    /// The example game that they serve.
    #[arg(long, value_enum, default_value_t = Game::Tavern)]
    pub game: Game,
    /// A folder for the bazaar's records, which it has again when it is started again; without it they are lost with this
    /// process.
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// Bots that play; the cluster stops when they have ended.
    #[arg(long)]
    pub bots: Option<u32>,
    /// How long the bots play.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// The same seed makes each bot draw the same numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How players log in: as whoever they say they are, or with tickets of a key that lives in this process only. The
    /// page gives itself one for any name.
    #[arg(long, value_enum, default_value_t = AuthWay::Open)]
    pub auth: AuthWay,
    /// Only the bots' summary on standard output, as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// The first of the ports: gateways on +10 and +12, the directory on +20, the arbiter on +30, ops from +0. 0 takes free ones.
    #[arg(long, default_value_t = 7700)]
    pub base_port: u16,
    /// A folder of certificates, made when it is empty, so that other processes can join. Without it the nodes'
    /// certificates exist in memory only, and nobody can.
    #[arg(long)]
    pub certs: Option<PathBuf>,
    /// Where the tavern's page is served, or `off`; +80 unless given.
    #[arg(long, value_name = "ADDR|off")]
    web: Option<Web>,
    /// What is logged to standard error. That the directory keeps nothing is no news here.
    #[arg(long, default_value = "warn,service_manager=error")]
    pub log: String,
}

/// How players of `up` log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AuthWay {
    Open,
    Ticket,
}

/// How long a stop may take in all; a second signal ends it at once.
const STOP: Budgets = Budgets {
    propagation: Span::ZERO,
    close: Span::secs(1),
    drain: Span::secs(20),
    save: Span::secs(1),
    grace: Span::secs(30),
};

/// Tells the person at the terminal; silent when standard output is for a program.
#[derive(Clone, Copy)]
struct Say {
    quiet: bool,
}

impl Say {
    fn line(self, text: &str) {
        if !self.quiet {
            println!("{text}");
        }
    }
}

/// Runs until the bots have ended or a signal comes.
pub async fn run(options: Options) -> Result<(), Failed> {
    let log = Log { level: options.log.clone(), format: LogFormat::Text };
    telemetry::logs(&log).map_err(|error| Failed::Usage(error.to_string()))?;
    // Players, bots and all nodes are in this process.
    descriptors::raise();
    let shutdown = Shutdown::new(STOP, Clock::start()).context("the stop's budgets")?;
    signal::take_over(shutdown.clone()).context("signals")?;
    // The cluster is one request in flight of its own lifecycle: the drain waits for it, a second signal doesn't. It is
    // taken before anybody hears that the cluster is up, since who hears it may stop it at once.
    let Ok(pass) = shutdown.enter() else { return without_summary(&options) };
    let say = Say { quiet: options.json };
    let ports = Ports::new(options.base_port);
    let books = Books::open(&options, say).await?;
    let started = tokio::select! {
        biased;
        started = Cluster::start(&options, books.as_ref(), ports, say) => started,
        () = shutdown.stopping().cancelled_owned() => return without_summary(&options),
    };
    let cluster = started?;
    let page = match options.web.unwrap_or(Web::At(ports.web())) {
        // The page is the tavern's.
        Web::At(addr) if options.game == Game::Tavern => {
            Some(web::serve(addr, &cluster.ws_addrs(), cluster.booth())?)
        }
        Web::At(_) | Web::Off => None,
    };
    greet(&cluster, page.as_ref(), options.game, say);

    let live = async {
        let summary = tokio::select! {
            biased;
            summary = play(&options, &cluster) => Some(summary),
            () = shutdown.stopping().cancelled_owned() => None,
        };
        shutdown.stop();
        shutdown.stopping().cancelled_owned().await;
        cluster.stop(say).await;
        drop(pass);
        summary
    };
    let stopped = shutdown.run(|| async { cluster.close_ports() }, || async { Ok(()) });
    let (summary, stopped) = end(live, stopped).await;
    if let Err(error) = stopped {
        say.line(&format!("stopped without waiting: {error}"));
    } else {
        say.line("stopped");
    }
    let audit = match books {
        Some(books) => Some(books.audit().await?),
        None => None,
    };
    if let Some(audit) = &audit {
        say.line(&format!("audit             {audit}"));
    }
    match summary.flatten() {
        Some(summary) => bot::report(&summary, audit.as_ref(), options.json),
        None => without_summary(&options),
    }?;
    check(audit.as_ref())
}

/// What is not there, or is there twice, is an error of ours.
fn check(audit: Option<&Audit>) -> Result<(), Failed> {
    match audit {
        Some(audit) if !audit.holds() => Err(Failed::Running(anyhow::anyhow!("the audit failed: {audit}"))),
        _ => Ok(()),
    }
}

/// The end of a run that was interrupted: without bots that is how it ends, with bots something is missing.
fn without_summary(options: &Options) -> Result<(), Failed> {
    match options.bots {
        Some(_) => Err(Failed::Running(anyhow::anyhow!(
            "interrupted before the bots had ended; there is no summary"
        ))),
        None => Ok(()),
    }
}

/// Runs both to their ends; when the lifecycle is over first, the cluster is not waited for.
async fn end<A, B>(live: impl Future<Output = A>, stopped: impl Future<Output = B>) -> (Option<A>, B) {
    tokio::pin!(live, stopped);
    tokio::select! {
        biased;
        result = &mut live => {
            let stopped = stopped.await;
            (Some(result), stopped)
        }
        stopped = &mut stopped => (None, stopped),
    }
}

/// Lets the bots play; without bots, for ever.
async fn play(options: &Options, cluster: &Cluster) -> Summary {
    let Some(bots) = options.bots else { return std::future::pending().await };
    let (seconds, seed, json) = (options.seconds, options.seed, options.json);
    let (addrs, audience) = (cluster.client_addrs().join(","), cluster.name().to_owned());
    let tokens = cluster.booth().map(Booth::tokens);
    let client = client::Options::new(&addrs, "bot");
    let (ticket_key, tls_ca, tls_name) = Default::default();
    let game = options.game;
    let options =
        bot::Options { game, addrs, bots, seconds, seed, json, ticket_key, audience, tls_ca, tls_name };
    bot::play(&options, client, tokens).await
}

fn greet(cluster: &Cluster, page: Option<&web::Page>, game: Game, say: Say) {
    let addrs = cluster.client_addrs();
    say.line("");
    say.line(&format!("the cluster is up; clients connect to {}", addrs.join(" or ")));
    // The chat in a terminal has no ticket.
    if let (Some(addr), None, Game::Tavern) = (addrs.first(), cluster.booth(), game) {
        say.line(&format!("  play:   cargo run --release -p tavern -- chat NAME --addr {addr}"));
    }
    if let Some(page) = page {
        say.line(&format!("  page:   http://{}", page.addr));
    }
    say.line(&format!("  look:   linkstead status --ops {}", cluster.ops_addr()));
    say.line("  stop:   Ctrl-C; once more skips the waits");
}

/// Longer than any part takes to come up on a busy machine.
const READY: Duration = Duration::from_secs(30);
