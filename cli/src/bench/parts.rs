//! The processes of a bench, each on a current-thread runtime unless it is a server of ours with threads of its own.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use base::NodeId;
use clap::Subcommand;
use linkstead::{Cx, Env, Linkds, module};
use net::hello::Role;
use net::{Security, Tcp};
use node::config::NodeConfig;
use tokio_util::sync::CancellationToken;

use super::{echo, load, process};

/// What one process of a bench does.
#[derive(Debug, Subcommand)]
pub enum Part {
    /// The bare echo.
    Echo,
    /// The load; prints what it measured as JSON.
    Load(load::Plan),
    /// A directory.
    Directory,
    /// A linkd.
    Linkd {
        #[arg(long)]
        directory: String,
    },
    /// A provider with the echo module.
    Provider {
        #[arg(long)]
        directory: String,
    },
}

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Runs a part until the bench kills it.
pub fn run(part: Part) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match part {
            Part::Echo => echo::serve(ANY).await,
            Part::Load(plan) => {
                println!("{}", serde_json::to_string(&load::run(&plan).await?)?);
                Ok(())
            }
            Part::Directory => directory().await,
            Part::Linkd { directory } => linkd(&directory).await,
            Part::Provider { directory } => provider(&directory).await,
        }
    })
}

async fn directory() -> anyhow::Result<()> {
    let listener = Tcp::listen(ANY)?;
    process::say_ready(&listener.local_addr()?.to_string());
    let parts = service_manager::server::Parts::new(&NodeConfig::default(), None, None)?;
    let config = service_manager::ServiceManagerConfig {
        warming: Some(node::config::Time::millis(0)),
        ..Default::default()
    };
    service_manager::run(&config, listener, parts, CancellationToken::new()).await?;
    Ok(())
}

fn join(directory: &str, name: &str, role: Role) -> anyhow::Result<(NodeId, node::Directory)> {
    let node = NodeId::new(name)?;
    let config = NodeConfig { directory: vec![directory.to_string()], ..NodeConfig::default() };
    let cancel = CancellationToken::new();
    let joined = crate::role::join(&config, &node, role, String::new(), Security::Insecure, cancel);
    Ok((node, joined))
}

async fn linkd(directory: &str) -> anyhow::Result<()> {
    let (node, directory) = join(directory, "linkd-1", Role::Linkd)?;
    let caps = 100_000;
    let config = linkd::Config {
        listen: ANY,
        provider_listen: ANY,
        workers: 1,
        connections_max: caps,
        per_address_max: caps,
        unauthed_max: caps,
        ..linkd::Config::default()
    };
    let env = linkd::Env::insecure(&NodeConfig::default().cluster, node, directory);
    let linkd = linkd::start(&config, env).await?;
    process::say_ready(&linkd.client_addr.to_string());
    std::future::pending().await
}

async fn provider(directory: &str) -> anyhow::Result<()> {
    let (node, directory) = join(directory, "game-1", Role::Provider)?;
    let env = Env::new(&NodeConfig::default().cluster, node, Linkds::Directory(directory));
    // A bench logs everybody in at once.
    let config = linkstead::Config { max_online_new: u32::MAX, ..linkstead::Config::default() };
    let running = linkstead::provider("echo")
        .module(|_| Ok(Echo))
        .start(config, env, CancellationToken::new())
        .await
        .context("the echo provider")?;
    running.ready().await;
    process::say_ready("");
    std::future::pending().await
}

/// What the load sends and gets back.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Payload {
    #[prost(bytes = "bytes", tag = "1")]
    pub bytes: bytes::Bytes,
}

struct Echo;

#[module(id = 900, choice = "hash_account")]
impl Echo {
    #[handler]
    async fn echo(&self, _cx: &Cx, request: Payload) -> linkstead::Result<Payload> {
        Ok(request)
    }
}
