//! The whole configuration, and how a command line names its sources.

use std::path::PathBuf;

use clap::Args;
use node::config::{self, Loaded, NodeConfig, Problem, Sources};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use service_manager::ServiceManagerConfig;

use crate::Failed;

/// Every section that a file may have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    pub node: NodeConfig,
    pub service_manager: ServiceManagerConfig,
    pub linkd: linkd::Config,
    pub provider: linkstead::Config,
}

/// Where a command takes its configuration from.
#[derive(Debug, Clone, Default, Args)]
pub struct Given {
    /// A TOML file; may be given more than once, later ones win.
    #[arg(long)]
    pub config: Vec<PathBuf>,
    /// The profile to lay over the files; `dev` is built in.
    #[arg(long)]
    pub profile: Option<String>,
    /// One setting, such as `linkd.listen=127.0.0.1:7810`; may be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl Given {
    fn sources(&self) -> Sources {
        let presets = [config::PRESETS, service_manager::PRESETS, linkstead::PRESETS].concat();
        Sources {
            files: self.config.clone(),
            profile: self.profile.clone(),
            env: config::environment(),
            set: self.set.clone(),
            presets,
            tolerated: Vec::new(),
        }
    }

    /// Reads and judges everything; all mistakes come out together.
    pub fn load(&self) -> Result<Loaded<Config>, Failed> {
        let lines = |problems: Vec<Problem>| {
            let lines: Vec<_> = problems.iter().map(Problem::to_string).collect();
            Failed::Usage(lines.join("\n"))
        };
        let loaded = config::load::<Config>(&self.sources()).map_err(lines)?;
        let mut problems = Vec::new();
        let all = &loaded.config;
        let mut bad = all.service_manager.check().err().unwrap_or_default();
        bad.extend(all.linkd.check().err());
        bad.extend(all.provider.check().err());
        problems.extend(bad.iter().map(|bad| loaded.problem(&bad.key, &bad.why)));
        if let Err(bad) = all.node.budgets().check() {
            problems.push(loaded.problem("node.grace", bad.to_string()));
        }
        let listens = [
            ("service_manager.listen", Some(all.service_manager.listen)),
            ("linkd.provider_listen", Some(all.linkd.provider_listen)),
            ("node.ops", all.node.ops),
        ];
        for (key, addr) in listens {
            if let Some(why) = addr.and_then(|addr| all.node.refuse_beyond_loopback(addr)) {
                problems.push(loaded.problem(key, why));
            }
        }
        if problems.is_empty() { Ok(loaded) } else { Err(lines(problems)) }
    }

    pub fn print(&self) -> Result<(), Failed> {
        let loaded = self.load()?;
        let text = config::print_config(&loaded.config).map_err(|error| Failed::Running(error.into()))?;
        print!("{text}");
        Ok(())
    }
}
