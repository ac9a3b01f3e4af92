//! A whole cluster in this process, whose parts come and go while a player plays.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{NodeId, Retry};
use client::{Client, Event, Options};
use linkstead::{Env, Linkds, Running};
use net::Tcp;
use node::config::{NodeConfig, Time};
use service_manager::ServiceManagerConfig;
use tavern::messages::{Enter, Login, Who};
use tavern::{Rooms, Tavern};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::process::PATIENCE;

pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

pub struct Directory {
    pub addr: SocketAddr,
    cancel: CancellationToken,
    over: JoinHandle<()>,
}

impl Directory {
    pub fn start(addr: SocketAddr) -> Self {
        let listener = Tcp::listen(addr).unwrap();
        let addr = listener.local_addr().unwrap();
        let parts = service_manager::server::Parts::new(
            &NodeConfig { cluster: "test".into(), ..NodeConfig::default() },
            None,
            None,
        )
        .unwrap();
        let config = ServiceManagerConfig {
            heartbeat: Time::millis(300),
            ttl: Time::millis(1_000),
            probe: Time::millis(300),
            ..ServiceManagerConfig::default()
        };
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let over = tokio::spawn(async move {
            service_manager::run(&config, listener, parts, stop).await.unwrap();
        });
        Self { addr, cancel, over }
    }

    pub async fn kill(self) -> SocketAddr {
        self.cancel.cancel();
        within(self.over).await.unwrap();
        self.addr
    }
}

pub fn join(directory: SocketAddr, name: &str, role: &str) -> (NodeId, node::Directory, CancellationToken) {
    let node = NodeId::new(name).unwrap();
    let (cancel, seed) = (CancellationToken::new(), base::hash::bytes(name.as_bytes()));
    let join = node::Join {
        cluster: "test".into(),
        node: node.clone(),
        role: role.into(),
        host: "here".into(),
        directory: vec![directory.to_string()],
        ops_address: String::new(),
        reconnect: net::dial::Backoff::new(Duration::from_millis(10), Duration::from_millis(100), seed),
        security: net::Security::Insecure,
    };
    (node, node::directory::join(join, cancel.clone()), cancel)
}

async fn linkd(directory: SocketAddr, name: &str) -> Arc<linkd::Linkd> {
    guarded_linkd(directory, name, linkd::config::Auth::Open, Vec::new()).await
}

/// A linkd that wants more than a name.
pub async fn guarded_linkd(
    directory: SocketAddr,
    name: &str,
    auth: linkd::config::Auth,
    ticket_keys: Vec<wire::ticket::Key>,
) -> Arc<linkd::Linkd> {
    let (node, directory, _) = join(directory, name, "linkd");
    let config = linkd::Config {
        listen: ANY,
        ws_listen: linkd::config::Listen::Off,
        provider_listen: ANY,
        workers: 2,
        auth,
        // All of a test comes from one address.
        auth_failures_per_second: 10_000,
        auth_failures_burst: 10_000,
        ..linkd::Config::default()
    };
    let env = linkd::Env { ticket_keys, ..linkd::Env::insecure("test", node, directory) };
    Arc::new(within(linkd::start(&config, env)).await.unwrap())
}

/// A provider, and what kills it without a word.
pub async fn provider(directory: SocketAddr, name: &str, server_id: u32) -> (Running, CancellationToken) {
    let (node, directory, membership) = join(directory, name, "provider");
    let env = Env::new("test", node, Linkds::Directory(directory));
    let config = linkstead::Config { server_id, max_online_new: u32::MAX, ..linkstead::Config::default() };
    let running = within(tavern::provider().start(config, env, membership.clone())).await.unwrap();
    within(running.ready()).await;
    (running, membership)
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it took too long")
}

async fn player(linkd: &linkd::Linkd, account: &str) -> Client {
    let client =
        within(Client::connect(Options::new(&linkd.client_addr.to_string(), account))).await.unwrap();
    patiently(&client, Tavern::LOGIN, Login::default()).await;
    client
}

/// Asks again as long as the refusal says so: a linkd may be up before its providers have found it.
async fn patiently<Q, A>(client: &Client, rpc: client::Rpc<Q, A>, request: Q) -> A
where
    Q: prost::Message + Clone,
    A: prost::Message + Default,
{
    let started = Instant::now();
    loop {
        match within(client.request(rpc, request.clone())).await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(!matches!(error.retry(), Retry::Never), "{error}");
                assert!(started.elapsed() < PATIENCE, "{error}");
                let wait = match error.retry() {
                    Retry::After(span) => Duration::from(span),
                    _ => Duration::from_millis(10),
                };
                // Sleep: the refusal says when to ask again; who asks at once is a flood.
                tokio::time::sleep(wait).await;
            }
        }
    }
}

async fn plays(client: &Client, room: &str) {
    patiently(client, Rooms::ENTER, Enter { room: room.into() }).await;
    let who = patiently(client, Rooms::WHO, Who { room: room.into() }).await;
    assert!(!who.members.is_empty());
}

/// The directory dies, and for longer than every lease nobody notices: not those inside, not newcomers. When it is back,
/// everybody is listed again and a new linkd is found by the providers without any change of configuration.
///
/// Holds: Q30, Z-20, Z-23, H-13, H-15, Z-19.
#[tokio::test(flavor = "multi_thread")]
async fn losing_the_directory_cuts_nobody_off() {
    let directory = Directory::start(ANY);
    let addr = directory.addr;
    let first = linkd(addr, "linkd-1").await;
    let (one, _one) = provider(addr, "game-1", 1).await;
    let (_two, _) = provider(addr, "game-2", 2).await;
    let ann = player(&first, "ann").await;
    plays(&ann, "attic").await;

    directory.kill().await;
    let dead_since = Instant::now();
    // Longer than the lease of every node.
    while dead_since.elapsed() < Duration::from_millis(2_500) {
        plays(&ann, "attic").await;
        // Sleep: the time without a directory is what is tested.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let bob = player(&first, "bob").await;
    plays(&bob, "cellar").await;

    let _directory = Directory::start(addr);
    let second = linkd(addr, "linkd-2").await;
    let started = Instant::now();
    let cid = player(&second, "cid").await;
    plays(&cid, "attic").await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(ann.closed().is_none() && bob.closed().is_none());
    assert!(one.is_ready());
}

/// A provider is gone without a word: its players hear it, and a new start of the same node serves them, under a newer
/// epoch.
///
/// Holds: Z-08, H-09, Z-24.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_provider_is_told_and_its_next_start_serves_again() {
    let directory = Directory::start(ANY);
    let linkd = linkd(directory.addr, "linkd-1").await;
    let (game, kill) = provider(directory.addr, "game-1", 1).await;
    let ann = player(&linkd, "ann").await;
    plays(&ann, "attic").await;
    let old = game.status()["epoch"].as_str().unwrap().parse::<u64>().unwrap();
    kill.cancel();
    within(game.stopped()).await.ok();
    drop(game);
    loop {
        match within(ann.events().next()).await {
            Some(Event::Report(report)) if report.code() == Some(&wire::code::PROVIDER_BROKEN) => break,
            Some(_) => {}
            None => panic!("the connection ended"),
        }
    }
    let (again, _keep) = provider(directory.addr, "game-1", 1).await;
    assert!(again.status()["epoch"].as_str().unwrap().parse::<u64>().unwrap() > old);
    within(ann.request(Tavern::LOGIN, Login::default())).await.unwrap();
    plays(&ann, "attic").await;
}

/// A hundred players on two linkds with two workers each: every account is served by the same provider whichever linkd
/// it came through, and nobody's room is split.
///
/// Holds: Z-12, Z-05.
#[tokio::test(flavor = "multi_thread")]
async fn every_room_is_one_room_whichever_linkd_its_guests_came_through() {
    let directory = Directory::start(ANY);
    let linkds = [linkd(directory.addr, "linkd-1").await, linkd(directory.addr, "linkd-2").await];
    let _games = [provider(directory.addr, "game-1", 1).await, provider(directory.addr, "game-2", 2).await];
    let mut players = Vec::new();
    for n in 0..100 {
        let client = player(&linkds[n % 2], &format!("p{n}")).await;
        patiently(&client, Rooms::ENTER, Enter { room: format!("room-{}", n % 10) }).await;
        players.push(client);
    }
    for room in 0..10 {
        let who = within(players[0].request(Rooms::WHO, Who { room: format!("room-{room}") })).await.unwrap();
        assert_eq!(who.members.len(), 10, "room-{room}: {:?}", who.members);
    }
}

/// Who comes is given to the worker with the fewest sessions, each with a thread of its own, so a linkd uses as many cores as
/// it has workers.
///
/// Holds: Q54.
#[tokio::test(flavor = "multi_thread")]
async fn the_workers_of_a_linkd_share_its_sessions() {
    let directory = Directory::start(ANY);
    let linkd = linkd(directory.addr, "linkd-1").await;
    let _game = provider(directory.addr, "game-1", 1).await;
    let (mut players, mut sessions) = (Vec::new(), [0; 2]);
    for n in 0..20 {
        let account = format!("p{n}");
        // Each has come before the next one knocks.
        players.push(player(&linkd, &account).await);
        let who = linkd::router::Who::Account(base::Account::new(&account).unwrap());
        let found = linkd.lookup(who).await;
        assert_eq!(found.len(), 1, "{found:?}");
        sessions[usize::from(found[0].sid.worker())] += 1;
    }
    assert_eq!(sessions, [10, 10]);
}

/// A provider that wants a module routed otherwise than the one that is there is refused, and the linkd's status names both,
/// once, whatever number of workers has refused it.
#[tokio::test(flavor = "multi_thread")]
async fn two_providers_that_differ_about_a_choice_are_shown_to_the_operator() {
    let directory = Directory::start(ANY);
    let linkd = linkd(directory.addr, "linkd-1").await;
    let _first = provider(directory.addr, "game-1", 1).await;
    assert_eq!(linkd.status()["clashes"], serde_json::json!([]));
    let (node, membership, cancel) = join(directory.addr, "game-2", "provider");
    let env = Env::new("test", node, Linkds::Directory(membership));
    let mut config = linkstead::Config { server_id: 2, ..linkstead::Config::default() };
    let choice = linkstead::ModuleConfig { choice: Some(linkstead::Choice::Load) };
    config.modules.insert("Tavern".into(), choice);
    let second = within(tavern::provider().start(config, env, cancel.clone())).await.unwrap();
    let shown = async {
        loop {
            let clashes = linkd.status()["clashes"].clone();
            match clashes.as_array().map(Vec::as_slice) {
                Some([]) => {}
                Some([one]) => break one.as_str().unwrap().to_owned(),
                _ => panic!("{clashes}"),
            }
            // Sleep: the status is a page that operators poll, and so does this.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let text = within(shown).await;
    assert!(text.contains("game-1 routes module Tavern by") && text.contains("game-2 by Load"), "{text}");
    assert!(!second.is_ready());
}
