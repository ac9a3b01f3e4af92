//! A cluster whose nodes prove who they are, in this process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Epoch, NodeId};
use cli::cert::{Authority, Issued};
use client::{Client, Options};
use linkstead::{Env, Linkds, Running};
use net::hello::{Ours, Role};
use net::tls::{Material, NODE_NAME, NodeTls, Secured, Security, ServerTls};
use net::{Tcp, preface};
use node::config::{NodeConfig, Time};
use service_manager::ServiceManagerConfig;
use tokio_util::sync::CancellationToken;

use crate::process::PATIENCE;

pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
pub const SOON: Duration = Duration::from_secs(10);

pub fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it took too long")
}

pub fn authority() -> Authority {
    Authority::new("test").unwrap().0
}

/// What a node shows and whom it believes, which may be two authorities.
pub fn security(believes: &Authority, issued: &Issued) -> Security {
    let (ca, cert, key) = (believes.pem.as_bytes(), issued.cert.as_bytes(), issued.key.as_bytes());
    Security::Tls(NodeTls::new(&Material::node(ca, cert, key).unwrap()).unwrap())
}

/// A directory, a gateway and a provider that prove to each other who they are.
pub struct World {
    pub authority: Authority,
    pub directory: SocketAddr,
    pub linkd: Arc<linkd::Linkd>,
    pub game: Running,
    pub arbiter: global_cache::Server,
    _over: CancellationToken,
}

impl World {
    pub async fn start() -> Self {
        let authority = authority();
        let linkd = authority.security(Role::Linkd, &id("linkd-1")).unwrap();
        Self::start_with(authority, linkd).await
    }

    pub async fn start_with(authority: Authority, of_linkd: Security) -> Self {
        let listener = Tcp::listen(ANY).unwrap();
        let directory = listener.local_addr().unwrap();
        let config = NodeConfig { cluster: "test".into(), ..NodeConfig::default() };
        let mut parts = service_manager::server::Parts::new(&config, None, None).unwrap();
        parts.security = authority.security(Role::Directory, &parts.node).unwrap();
        let over = CancellationToken::new();
        let stop = over.clone();
        tokio::spawn(async move {
            let config = ServiceManagerConfig { warming: Some(Time::secs(0)), ..Default::default() };
            service_manager::run(&config, listener, parts, stop).await.unwrap();
        });
        let player = authority.issue(Role::Linkd, &id("linkd-1"), &[], 1).unwrap();
        let tls = Material::players(player.cert.as_bytes(), player.key.as_bytes()).unwrap();
        let tls = Some(ServerTls::players(&tls).unwrap());
        let joined = join(directory, "linkd-1", Role::Linkd, of_linkd.clone());
        let env =
            linkd::Env { security: of_linkd, tls, ..linkd::Env::insecure("test", id("linkd-1"), joined) };
        let ws_listen = linkd::config::Listen::Off;
        let config =
            linkd::Config { listen: ANY, ws_listen, provider_listen: ANY, workers: 2, ..Default::default() };
        // Players here ask as fast as they are answered.
        let config = linkd::Config { frames_per_second: 0, ..config };
        let linkd = Arc::new(within(linkd::start(&config, env)).await.unwrap());
        let of_game = authority.security(Role::Provider, &id("game-1")).unwrap();
        let joined = join(directory, "game-1", Role::Provider, of_game.clone());
        let mut env = Env::new("test", id("game-1"), Linkds::Directory(joined));
        env.security = of_game;
        let config = linkstead::Config { max_online_new: u32::MAX, ..linkstead::Config::default() };
        let game = within(tavern::provider().start(config, env, over.clone())).await.unwrap();
        within(game.ready()).await;
        let env = global_cache::Env {
            cluster: "test".into(),
            node: id("global-cache-1"),
            epoch: Epoch(1),
            security: authority.security(Role::Arbiter, &id("global-cache-1")).unwrap(),
        };
        let config = global_cache::Config { listen: ANY, ..global_cache::Config::default() };
        let arbiter = within(global_cache::start(&config, env)).await.unwrap();
        Self { authority, directory, linkd, game, arbiter, _over: over }
    }

    pub async fn player(&self, account: &str) -> Result<Client, client::Error> {
        let options = Options::new(&self.linkd.client_addr.to_string(), account);
        within(Client::connect(options.tls(&self.authority.pem, NODE_NAME)?)).await
    }
}

pub fn join(directory: SocketAddr, name: &str, role: Role, security: Security) -> node::Directory {
    let joining = node::Join {
        cluster: "test".into(),
        node: id(name),
        role: role.as_str().into(),
        host: "here".into(),
        directory: vec![directory.to_string()],
        ops_address: String::new(),
        reconnect: net::dial::Backoff::new(Duration::from_millis(10), Duration::from_millis(100), 1),
        security,
    };
    node::directory::join(joining, CancellationToken::new())
}

pub fn ours((role, node): (Role, &str)) -> Ours {
    Ours { cluster: "test".into(), node: id(node), role, epoch: Epoch(1), worker: 0 }
}

/// The certificate that the other end of a provider port shows now.
pub async fn shown(world: &World, dialler: &Security) -> Vec<u8> {
    let mut stream = Tcp::dial(&world.linkd.provider_addr.to_string()).await.unwrap();
    preface::send(&mut stream, 0).await.unwrap();
    let (stream, _) = dialler.dial(stream, "localhost:1", SOON).await.unwrap();
    let Secured::Tls(stream) = stream else { panic!("in clear") };
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}
