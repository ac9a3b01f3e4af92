//! The processes of a bench, each on a current-thread runtime unless it is a server of ours with threads of its own.

use std::path::PathBuf;

use anyhow::Context;
use base::NodeId;
use clap::Subcommand;
use linkstead::{Cx, Env, Linkds, module};
use net::hello::Role;
use net::{Security, Tcp};
use node::config::NodeConfig;
use serde_json::{Value, json};
use service_manager::config::StoreKind;
use tokio_util::sync::CancellationToken;

use super::limits::{self, ANY};
use super::{
    acquire_load, directory_load, dirty_load, echo, flush_load, hold, load, node_echo, process, redis,
    txn_load,
};

/// What one process of a bench does.
#[derive(Debug, Subcommand)]
pub enum Part {
    /// The bare echo.
    Echo,
    /// The load; prints what it measured as JSON.
    Load(load::Plan),
    /// Connections that log in and say nothing more.
    Hold(hold::Plan),
    /// A directory.
    Directory(Directory),
    /// The load on a directory; prints what it measured as JSON.
    DirectoryLoad(directory_load::Plan),
    /// Transactions; prints what it measured as JSON.
    TxnLoad(txn_load::Plan),
    /// An arbiter of records.
    Arbiter,
    /// The bare echo between nodes.
    NodeEcho,
    /// The loads on an arbiter, the echo between nodes and redis; each prints what it measured as JSON.
    AcquireLoad(acquire_load::Plan),
    DirtyLoad(dirty_load::Plan),
    NodeEchoLoad(node_echo::Plan),
    RedisLoad(redis::Plan),
    /// Commits and what reaches the storage; prints what it measured as JSON.
    FlushLoad(flush_load::Plan),
    /// A linkd.
    Linkd {
        #[arg(long)]
        directory: String,
        #[command(flatten)]
        proof: Proof,
    },
    /// A provider with the echo module.
    Provider {
        #[arg(long)]
        directory: String,
        #[command(flatten)]
        proof: Proof,
    },
}

/// How a directory is started.
#[derive(Debug, clap::Args)]
pub struct Directory {
    #[command(flatten)]
    proof: Proof,
    #[arg(long, default_value = "memory", value_parser = store_kind)]
    store: StoreKind,
    /// The folder of a store on a disk.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// How long a node may be silent.
    #[arg(long, default_value_t = 15)]
    ttl_seconds: u64,
}

/// A store by its name in configuration.
pub fn store_kind(name: &str) -> Result<StoreKind, String> {
    serde_json::from_value(json!(name)).map_err(|error| error.to_string())
}

/// How a part proves who it is: with the certificates in a folder, or not at all.
#[derive(Debug, clap::Args)]
pub struct Proof {
    #[arg(long)]
    certs: Option<PathBuf>,
}

impl Proof {
    fn security(&self, role: Role) -> anyhow::Result<Security> {
        let mut config = NodeConfig { insecure: self.certs.is_none(), ..NodeConfig::default() };
        config.tls.dir = self.certs.clone().unwrap_or_default();
        Ok(node::tls::secure(&config, role, &NodeId::new(id(role))?)?.security)
    }
}

fn id(role: Role) -> &'static str {
    match role {
        Role::Provider => "game-1",
        other => crate::config::default_id(other),
    }
}

/// Certificates for all parts, in a folder that goes away with what is returned.
pub fn certificates() -> anyhow::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let roles = [Role::Directory, Role::Linkd, Role::Provider];
    let nodes: Result<Vec<_>, _> =
        roles.into_iter().map(|role| NodeId::new(id(role)).map(|node| (role, node))).collect();
    crate::cert::provide(folder.path(), &NodeConfig::default().cluster, &nodes?)?;
    Ok(folder)
}

/// Runs a part until the bench kills it.
pub fn run(part: Part) -> anyhow::Result<()> {
    // Ten thousand sessions are ten thousand files.
    node::descriptors::raise();
    // The directory has threads where its own command has some, and transactions run on threads of their own.
    let runtime = match part {
        Part::Directory(_) | Part::TxnLoad(_) => {
            tokio::runtime::Builder::new_multi_thread().enable_all().build()?
        }
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
    };
    let measured = runtime.block_on(async {
        Ok::<_, anyhow::Error>(match part {
            Part::Echo => return serves(echo::serve(ANY).await),
            Part::Hold(plan) => return serves(hold::run(&plan).await),
            Part::Directory(options) => return serves(directory(options).await),
            Part::Arbiter => return serves(acquire_load::serve_arbiter(ANY).await),
            Part::NodeEcho => return serves(node_echo::serve(ANY).await),
            Part::Linkd { directory, proof } => return serves(linkd(&directory, &proof).await),
            Part::Provider { directory, proof } => return serves(provider(&directory, &proof).await),
            Part::Load(plan) => json!(load::run(&plan).await?),
            Part::DirectoryLoad(plan) => json!(directory_load::run(&plan).await?),
            Part::AcquireLoad(plan) => json!(acquire_load::run(&plan).await?),
            Part::DirtyLoad(plan) => json!(dirty_load::run(&plan).await?),
            Part::NodeEchoLoad(plan) => json!(node_echo::run(&plan).await?),
            Part::RedisLoad(plan) => json!(redis::run(&plan).await?),
            Part::FlushLoad(plan) => json!(flush_load::run(&plan).await?),
            Part::TxnLoad(plan) => json!(tokio::task::block_in_place(|| txn_load::run(&plan))?),
        })
    })?;
    if !measured.is_null() {
        println!("{measured}");
    }
    Ok(())
}

/// A part that prints nothing at its end.
fn serves(ended: anyhow::Result<()>) -> anyhow::Result<Value> {
    ended.map(|()| Value::Null)
}

async fn directory(options: Directory) -> anyhow::Result<()> {
    let Directory { proof, store, data_dir, ttl_seconds } = options;
    let listener = Tcp::listen(ANY)?;
    process::say_ready(&listener.local_addr()?.to_string());
    let mut parts = service_manager::server::Parts::new(&NodeConfig::default(), None, None)?;
    parts.security = proof.security(Role::Directory)?;
    let config = service_manager::ServiceManagerConfig {
        warming: Some(node::config::Time::millis(0)),
        store,
        data_dir: data_dir.unwrap_or_default(),
        ttl: node::config::Time::secs(ttl_seconds),
        ..Default::default()
    };
    service_manager::run(&config, listener, parts, CancellationToken::new()).await?;
    Ok(())
}

fn join(directory: &str, role: Role, security: Security) -> anyhow::Result<(NodeId, node::Directory)> {
    let node = NodeId::new(id(role))?;
    let config = NodeConfig { directory: vec![directory.to_string()], ..NodeConfig::default() };
    let cancel = CancellationToken::new();
    let joined = crate::role::join(&config, &node, role, String::new(), security, cancel);
    Ok((node, joined))
}

async fn linkd(directory: &str, proof: &Proof) -> anyhow::Result<()> {
    let security = proof.security(Role::Linkd)?;
    let (node, directory) = join(directory, Role::Linkd, security.clone())?;
    let config = limits::linkd();
    let files = |end: &str| {
        proof.certs.as_ref().map(|folder| folder.join(format!("{node}.{end}"))).unwrap_or_default()
    };
    // A node's certificate serves players just as well.
    let players =
        linkd::config::Tls { cert: files("pem"), key: files("key"), ..Default::default() }.load()?;
    let tls = players.map(|players| players.tls);
    let cluster = NodeConfig::default().cluster;
    let env = linkd::Env { security, tls, ..linkd::Env::insecure(&cluster, node, directory) };
    let linkd = linkd::start(&config, env).await?;
    process::say_ready(&linkd.client_addr.to_string());
    std::future::pending().await
}

async fn provider(directory: &str, proof: &Proof) -> anyhow::Result<()> {
    let security = proof.security(Role::Provider)?;
    let (node, directory) = join(directory, Role::Provider, security.clone())?;
    let mut env = Env::new(&NodeConfig::default().cluster, node, Linkds::Directory(directory));
    env.security = security;
    let running = linkstead::provider("echo")
        .module(|_| Ok(Echo))
        .start(limits::provider(), env, CancellationToken::new())
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
