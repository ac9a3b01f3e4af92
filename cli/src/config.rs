//! The whole configuration, and how a command line names its sources.

use std::path::PathBuf;

use base::NodeId;
use clap::Args;
use net::hello::Role;
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
    pub global_cache: global_cache::Config,
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
        let presets =
            [config::PRESETS, service_manager::PRESETS, global_cache::PRESETS, linkstead::PRESETS].concat();
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
        bad.extend(all.global_cache.check().err().unwrap_or_default());
        bad.extend(all.linkd.check().err());
        bad.extend(all.provider.check().err());
        problems.extend(bad.iter().map(|bad| loaded.problem(&bad.key, &bad.why)));
        if let Err(bad) = all.node.budgets().check() {
            problems.push(loaded.problem("node.grace", bad.to_string()));
        }
        let listens = [
            ("service_manager.listen", Some(all.service_manager.listen)),
            ("global_cache.listen", Some(all.global_cache.listen)),
            ("linkd.provider_listen", Some(all.linkd.provider_listen)),
        ];
        if let Some(why) = all.node.ops.and_then(|addr| all.node.refuse_ops(addr)) {
            problems.push(loaded.problem("node.ops", why));
        }
        for (key, addr) in listens {
            if let Some(why) = addr.and_then(|addr| all.node.refuse_beyond_loopback(addr)) {
                problems.push(loaded.problem(key, why));
            }
        }
        if problems.is_empty() { Ok(loaded) } else { Err(lines(problems)) }
    }

    /// As [`load`](Self::load), and judges the certificates that it names. With `role`, as that role's start does.
    pub fn check(&self, role: Option<Role>) -> Result<(), Failed> {
        let loaded = self.load()?;
        let (node, linkd) = (&loaded.config.node, &loaded.config.linkd);
        let certificates = match role {
            Some(role) => {
                let id = if node.id.is_empty() { default_id(role) } else { &node.id };
                let id = NodeId::new(id).map_err(|error| Failed::Usage(format!("node.id: {error}")))?;
                node::tls::secure(node, role, &id).map(|_| ())
            }
            None => node::tls::check(node),
        };
        let players = linkd.tls.load().map(|_| ());
        let bad: Vec<_> = [certificates.err(), players.err()].into_iter().flatten().collect();
        let lines: Vec<_> = bad.iter().map(|bad| loaded.problem(&bad.key, &bad.why).to_string()).collect();
        if lines.is_empty() { Ok(()) } else { Err(Failed::Usage(lines.join("\n"))) }
    }

    pub fn print(&self) -> Result<(), Failed> {
        let loaded = self.load()?;
        let text = config::print_config(&loaded.config).map_err(|error| Failed::Running(error.into()))?;
        print!("{text}");
        Ok(())
    }
}

/// The id of a node that is given none.
pub fn default_id(role: Role) -> &'static str {
    match role {
        Role::Directory => "service-manager-1",
        Role::Linkd => "linkd-1",
        Role::Provider => "provider-1",
        Role::Arbiter => "global-cache-1",
        Role::Control => "control-1",
    }
}
