//! The program of a game: verbs, configuration, telemetry, the ops port and signals around a provider.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::NodeId;
use clap::{Args, Parser, Subcommand};
use net::hello::Role;
use node::admin::{Drained, Operate, OperateError, topology_json};
use node::config::{self, NodeConfig, Sources};
use node::{Clock, Directory, Home, Join, Shutdown, ops, signal, telemetry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, PRESETS};
use crate::error::{Error, Result};
use crate::running::Status;
use crate::start::{Builder, Env, Linkds, StartError};
use crate::table::Table;

/// Where the ops port of a provider is unless configured.
const OPS_PORT: u16 = 7703;
/// A start that is not ready after this says what it waits for.
const LINKDS_EXPECTED: Duration = Duration::from_secs(1);
/// Sections of other roles, which may stand in a shared file.
const OTHERS: &[&str] = &["service_manager", "linkd", "global_cache", "control", "client", "up", "game"];

/// A provider of the game's modules.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    sources: SourceArgs,
}

#[derive(Debug, Args)]
struct SourceArgs {
    /// A TOML file; may be repeated, later ones win.
    #[arg(long, global = true, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// One value, such as provider.server_id=2; may be repeated.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Which profile is laid over the files.
    #[arg(long, global = true, value_name = "NAME")]
    profile: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve (the default).
    Run,
    /// Read the configuration, say what is wrong with it, and end.
    CheckConfig,
    /// Print the configuration as it is in force.
    PrintConfig,
    /// Print the lines of protocols.lock.
    Protocols,
    /// Print the protocols and their messages for clients in another language.
    Types {
        #[arg(value_enum)]
        language: Language,
    },
    /// Print the version.
    Version,
}

/// A language of clients.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Language {
    /// A module for `clients/js`, with types that editors understand.
    Js,
}

/// All sections that a provider reads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Root {
    /// Who this process is and how it lives.
    pub node: NodeConfig,
    /// How it serves its modules.
    pub provider: Config,
}

impl Builder {
    /// The whole program: parses the command line, reads the configuration, joins the cluster and serves until SIGTERM
    /// or SIGINT; a second signal skips the waits. Verbs beside the default: `check-config`, `print-config`,
    /// `protocols`, `types js`, `version`. Returns an error when it could not start or its stop was cut off.
    pub async fn run(self) -> Result<()> {
        let cli = Cli::parse();
        match cli.verb.unwrap_or(Verb::Run) {
            Verb::Version => say(&format!("{} {}", self.name, telemetry::BUILD.version)),
            Verb::Protocols => say(&Table::lock(&self.modules).join("\n")),
            Verb::Types { language: Language::Js } => {
                // As with a configuration: nothing was started, and it says what to mend.
                let text = self.types_js().unwrap_or_else(|error| {
                    eprintln!("{error}");
                    std::process::exit(2)
                });
                say(text.trim_end())
            }
            Verb::CheckConfig => {
                let mut root = load(&cli.sources);
                self.name(&mut root);
                if root.node.tls.is_set() {
                    let node = NodeId::new(&root.node.id).map_err(StartError::from)?;
                    node::tls::secure(&root.node, Role::Provider, &node).map_err(StartError::from)?;
                }
                say("the configuration is right")
            }
            Verb::PrintConfig => {
                let printed = config::print_config(&load(&cli.sources));
                say(printed.unwrap_or_else(|error| error.to_string()).trim_end())
            }
            Verb::Run => {
                let root = load(&cli.sources);
                self.serve(root).await
            }
        }
    }

    /// Without an id a provider is called as its program, with its number.
    fn name(&self, root: &mut Root) {
        if root.node.id.is_empty() {
            root.node.id = format!("{}-{}", self.name, root.provider.server_id);
        }
    }

    async fn serve(self, root: Root) -> Result<()> {
        let mut root = root;
        self.name(&mut root);
        let Root { node: settings, provider } = root;
        telemetry::logs(&settings.log).map_err(StartError::from)?;
        let metrics = telemetry::metrics().map_err(StartError::from)?;
        let node = NodeId::new(&settings.id).map_err(StartError::from)?;
        let proven = node::tls::secure(&settings, Role::Provider, &node).map_err(StartError::from)?;
        let security = proven.security.clone();
        let taken = |error: io::Error| {
            StartError::from(node::config::BadSetting::new("node", "ops", error.to_string()))
        };
        let listener = net::Tcp::listen(settings.ops_or(OPS_PORT)).map_err(taken)?;
        let ops_address = listener.local_addr().map_err(StartError::from)?.to_string();
        let shutdown = Shutdown::new(settings.budgets(), Clock::start()).map_err(StartError::from)?;
        // From here on the first signal stops in order: before anything is begun that says so to whoever may send one.
        signal::take_over(shutdown.clone()).map_err(StartError::from)?;
        let cancel = CancellationToken::new();
        let directory = node::directory::join(
            Join {
                cluster: settings.cluster.clone(),
                node: node.clone(),
                role: "provider".into(),
                host: settings.host.clone(),
                directory: settings.directory.clone(),
                ops_address,
                reconnect: settings.backoff(&node),
                security: security.clone(),
            },
            cancel.clone(),
        );
        let mut env = Env::new(&settings.cluster, node.clone(), Linkds::Directory(directory.clone()));
        env.budgets = settings.budgets();
        env.reconnect = settings.backoff(&node);
        env.security = security;
        let readiness = ops::Readiness::new(&["linkds"]);
        readiness.unmet("linkds", "the directory has not let this node in yet");
        let keeping = proven.keep(readiness.clone());
        let shown =
            ops::Ops { shutdown: shutdown.clone(), readiness: readiness.clone(), metrics: Some(metrics) };
        let late = Arc::new(ops::Late::new(node.clone(), Role::Provider, shutdown.clone()));
        let serving = tokio::spawn(ops::serve_late(listener, shown, late.clone(), cancel.clone()));
        let running = tokio::select! {
            biased;
            () = shutdown.stopping().cancelled_owned() => {
                // Nothing was begun that would have to end.
                directory.leave().await;
                cancel.cancel();
                return Ok(());
            }
            running = self.begin(net::Tcp, Home::Threads, provider, env, shutdown.clone(), cancel.clone()) => running?,
        };
        late.serve(Operator { status: running.reader(), directory });
        let stopped = tokio::select! {
            biased;
            stopped = running.stopped() => stopped,
            () = follow(&node, &running, &readiness) => Ok(()),
        };
        cancel.cancel();
        if let Some(keeping) = keeping {
            keeping.abort();
        }
        if let Ok(Err(error)) = serving.await {
            tracing::warn!(%error, "the ops port failed");
        }
        stopped
    }
}

/// Keeps the readiness condition in step and says once that it is met; never ends.
async fn follow(node: &NodeId, running: &crate::Running, readiness: &ops::Readiness) {
    let mut changes = running.changes();
    let (mut said, mut warned) = (false, false);
    let patience = tokio::time::sleep(LINKDS_EXPECTED);
    tokio::pin!(patience);
    loop {
        match running.waits_for() {
            None => {
                readiness.met("linkds");
                if !std::mem::replace(&mut said, true) {
                    // A closed standard output is no reason not to serve.
                    let _ = say(&format!("{node} ready"));
                }
            }
            Some(why) => readiness.unmet("linkds", why),
        }
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return std::future::pending().await },
            () = &mut patience, if !said && !warned => {
                warned = true;
                let why = running.waits_for().unwrap_or_default();
                tracing::warn!(%node, %why, "waiting for linkds, without which no player reaches this provider");
            }
        }
    }
}

/// How long linkds have to say that they know; less than the operator waits.
const ACKNOWLEDGED: Duration = Duration::from_secs(3);

/// What operators may ask of a provider, for its ops port.
pub struct Operator {
    pub status: Status,
    pub directory: Directory,
}

impl Operate for Operator {
    fn status(&self) -> Value {
        self.status.status()
    }

    async fn topology(&self) -> Value {
        topology_json(&self.directory.nodes().await)
    }

    async fn drain(&self, closed: bool) -> Result<Drained, OperateError> {
        let told = self.status.set_disabled(closed, ACKNOWLEDGED).await;
        let failed = told.failed.into_iter().map(|(node, error)| (node.to_string(), error.to_string()));
        Ok(Drained {
            acknowledged: u32::try_from(told.workers).unwrap_or(u32::MAX),
            failed: failed.collect(),
        })
    }

    fn stop(&self, now: bool) -> bool {
        self.status.stop(now)
    }
}

/// The configuration, or the end of the program: exit code 2 says that nothing was started and what to mend.
fn load(args: &SourceArgs) -> Root {
    read(args).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2)
    })
}

fn read(args: &SourceArgs) -> Result<Root, StartError> {
    let sources = Sources {
        files: args.config.clone(),
        profile: args.profile.clone(),
        env: config::environment(),
        set: args.set.clone(),
        presets: node::config::PRESETS.iter().chain(PRESETS).copied().collect(),
        tolerated: OTHERS.iter().map(|name| (*name).to_owned()).collect(),
    };
    let loaded = config::load::<Root>(&sources).map_err(StartError::Config)?;
    loaded.config.provider.check()?;
    loaded.config.node.budgets().check()?;
    let node = &loaded.config.node;
    if let Some(why) = node.ops.and_then(|ops| node.refuse_ops(ops)) {
        return Err(StartError::Config(vec![loaded.problem("node.ops", why)]));
    }
    Ok(loaded.config)
}

/// Prints for whoever called the verb; a pipe that is closed early is their business.
fn say(text: &str) -> Result<()> {
    let written = writeln!(std::io::stdout().lock(), "{text}");
    written.map_err(|error| Error::from(StartError::from(error)))
}
