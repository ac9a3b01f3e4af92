//! The nodes of a run: the shells that production runs, each on a host of its own. One that ends is started again, as
//! whoever looks after processes does.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use base::{NodeId, hash};
use linkstead::Linkds;
use net::dial::Backoff;
use net::hello::Role;
use net::{NetIo, Security};
use node::config::NodeConfig;
use node::{Directory, Join};
use service_manager::ServiceManagerConfig;
use service_manager::server::Parts;
use tokio_util::sync::CancellationToken;

use crate::game::{Desk, Doorman};
use crate::ledger::Shared;
use crate::net::{Process, Simulated};
use crate::plan::{DIRECTORY, GAMES, LINKDS, Plan};

const CLUSTER: &str = "storm";
/// The wait before a node that has ended is started again.
const AGAIN: Duration = Duration::from_millis(500);

fn port(port: u16) -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, port).into()
}

/// The directory, until its host dies.
pub async fn directory() -> turmoil::Result {
    let config = ServiceManagerConfig { listen: port(7720), ..ServiceManagerConfig::default() };
    let process = Process::default();
    let listener = process.0.bind(config.listen).await?;
    let mut parts = Parts::new(&NodeConfig { cluster: CLUSTER.into(), ..NodeConfig::default() }, None, None)?;
    parts.security = Security::Simulated;
    let now = turmoil::since_epoch().ok_or("outside of a simulation")?;
    parts.epoch_start = u64::try_from(now.as_micros())?;
    service_manager::server::run_over(process.0.clone(), &config, listener, parts, CancellationToken::new())
        .await?;
    Err("the directory has ended".into())
}

/// A linkd, until its host dies.
pub async fn linkd(name: &'static str, plan: Plan, ledger: Shared) -> turmoil::Result {
    let config = linkd::Config {
        listen: port(7710),
        ws_listen: linkd::config::Listen::Off,
        provider_listen: port(7712),
        workers: 2,
        auth: linkd::config::Auth::Module,
        insecure_client: true,
        ..linkd::Config::default()
    };
    loop {
        let process = Process::default();
        let (node, directory, cancel) = join(&process.0, name, Role::Linkd)?;
        let env = linkd::Env {
            security: Security::Simulated,
            ..linkd::Env::insecure(CLUSTER, node, directory.clone())
        };
        let linkd = linkd::start_over(process.0.clone(), &config, env).await?;
        ledger.lock().started(name, directory.current_epoch());
        tokio::select! {
            biased;
            () = directory.outlived() => {}
            () = recovered(&plan) => {
                let providers = linkd.summary().providers;
                for game in GAMES.iter().filter(|game| !providers.keys().any(|node| node.as_str() == **game)) {
                    ledger.lock().wrong(format!("{name} has not got {game} back"));
                }
                look(name, &directory, &ledger).await;
                directory.outlived().await;
            }
        }
        linkd.stop().await;
        cancel.cancel();
        // Sleep: as long as a supervisor waits; time is virtual.
        tokio::time::sleep(AGAIN).await;
    }
}

/// A provider, until its host dies.
pub async fn game(name: &'static str, server_id: u32, plan: Plan, ledger: Shared) -> turmoil::Result {
    let config = linkstead::Config { server_id, max_online_new: u32::MAX, ..linkstead::Config::default() };
    loop {
        let process = Process::default();
        let (node, directory, cancel) = join(&process.0, name, Role::Provider)?;
        let env = linkstead::Env {
            security: Security::Simulated,
            ..linkstead::Env::new(CLUSTER, node, Linkds::Directory(directory.clone()))
        };
        let epoch = directory.epoch().await?;
        ledger.lock().started(name, epoch);
        let desk = Desk { ledger: ledger.clone(), node: name.to_owned(), epoch };
        let game = linkstead::provider("desk").authenticator(Doorman).module(move |_| Ok(desk));
        let running = game.start_over(process.0.clone(), config.clone(), env, cancel.clone()).await?;
        let stopped = tokio::select! {
            biased;
            stopped = running.stopped() => stopped,
            () = recovered(&plan) => {
                if !running.is_ready() {
                    ledger.lock().wrong(format!("{name} is not back at every linkd: {}", running.status()));
                }
                look(name, &directory, &ledger).await;
                running.stopped().await
            }
        };
        tracing::info!(name, ?stopped, "the game has stopped");
        cancel.cancel();
        // Sleep: as long as a supervisor waits; time is virtual.
        tokio::time::sleep(AGAIN).await;
    }
}

/// Waits for the time at which everything must work again.
async fn recovered(plan: &Plan) {
    let now = turmoil::sim_elapsed().unwrap_or_default();
    match plan.recovered().checked_sub(now) {
        // Sleep: until a time of the plan; time is virtual.
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

/// Every node must see every other.
async fn look(name: &str, directory: &Directory, ledger: &Shared) {
    let nodes = directory.nodes().await;
    for other in LINKDS.into_iter().chain(GAMES) {
        if !nodes.iter().any(|node| node.node.as_str() == other) {
            ledger.lock().wrong(format!("{name} does not see {other} in the directory"));
        }
    }
    if !directory.connected() {
        ledger.lock().wrong(format!("{name} is not back at the directory"));
    }
}

fn join(
    net: &Simulated,
    name: &str,
    role: Role,
) -> Result<(NodeId, Directory, CancellationToken), Box<dyn std::error::Error>> {
    let (node, cancel) = (NodeId::new(name)?, CancellationToken::new());
    let millis = Duration::from_millis;
    let join = Join {
        cluster: CLUSTER.into(),
        node: node.clone(),
        role: role.as_str().into(),
        host: name.into(),
        directory: vec![format!("{DIRECTORY}:7720")],
        ops_address: String::new(),
        reconnect: Backoff::new(millis(50), millis(1_000), hash::bytes(name.as_bytes())),
        security: Security::Simulated,
    };
    Ok((node, node::directory::join_over(net.clone(), join, cancel.clone()), cancel))
}
