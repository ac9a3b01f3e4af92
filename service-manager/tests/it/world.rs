//! A directory on a free port and nodes that join it. Every wait is for a condition, bounded by [`LIMIT`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::NodeId;
use net::dial::Backoff;
use node::config::{NodeConfig, Time};
use node::directory::{Directory, Join, Service, Services, join};
use service_manager::server::Parts;
use service_manager::{ServiceManagerConfig, run};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Nothing here takes longer unless it is broken.
pub const LIMIT: Duration = Duration::from_secs(20);

pub struct Server {
    pub addr: SocketAddr,
    pub ops: SocketAddr,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

/// Beats fast, so that leases run out within a test; `ttl` is also how long it warms.
pub fn config(ttl: Duration) -> ServiceManagerConfig {
    let (heartbeat, ttl) = (Time(ttl / 10), Time(ttl));
    ServiceManagerConfig { heartbeat, ttl, probe: Time(ttl.0 / 2), ..ServiceManagerConfig::default() }
}

impl Server {
    pub async fn start(addr: &str, config: ServiceManagerConfig) -> Self {
        let addr: SocketAddr = addr.parse().unwrap();
        let listener = net::Tcp::listen(addr).unwrap();
        let ops = net::Tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let (addr, ops_addr) = (listener.local_addr().unwrap(), ops.local_addr().unwrap());
        let mut node = NodeConfig::default();
        node.stop.propagation = Time::secs(0);
        let parts = Parts::new(&node, Some(ops), None).unwrap();
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let task = tokio::spawn(async move { run(&config, listener, parts, stop).await.unwrap() });
        Self { addr, ops: ops_addr, cancel, task }
    }

    /// Ends it at once and gives its port free.
    pub async fn kill(self) -> SocketAddr {
        self.cancel.cancel();
        self.task.await.unwrap();
        self.addr
    }

    /// Waits until it ends by itself.
    pub async fn ended(self) {
        tokio::time::timeout(LIMIT, self.task).await.unwrap().unwrap();
    }

    pub fn join(&self, node: &str, host: &str) -> Node {
        self.join_cluster(node, host, "linkstead")
    }

    pub fn join_cluster(&self, node: &str, host: &str, cluster: &str) -> Node {
        let cancel = CancellationToken::new();
        let node = NodeId::new(node).unwrap();
        let seed = base::hash::bytes(node.as_str().as_bytes());
        let joining = Join {
            cluster: cluster.to_owned(),
            node,
            role: "provider".to_owned(),
            host: host.to_owned(),
            directory: vec![self.addr.to_string()],
            ops_address: format!("{host}:7703"),
            reconnect: Backoff::new(Duration::from_millis(5), Duration::from_millis(50), seed),
            security: net::Security::Insecure,
        };
        Node { directory: join(joining, cancel.clone()), cancel }
    }
}

pub struct Node {
    pub directory: Directory,
    cancel: CancellationToken,
}

impl Node {
    /// As `kill -9` does: no Bye.
    pub fn kill(&self) {
        self.cancel.cancel();
    }

    pub fn offer(&self, names: &[&str]) {
        let service = |name: &&str| Service { name: (*name).to_owned(), ..Service::default() };
        self.directory.register(names.iter().map(service).collect());
    }
}

/// `name@node` of each instance.
pub fn names(services: &Services) -> Vec<String> {
    services.keys().map(|(name, node)| format!("{name}@{node}")).collect()
}

/// Waits until the list is exactly `expected`; returns every list seen on the way, the last included.
pub async fn until(list: &mut watch::Receiver<Arc<Services>>, expected: &[&str]) -> Vec<Vec<String>> {
    let mut seen = Vec::new();
    let waiting = async {
        loop {
            seen.push(names(&list.borrow_and_update()));
            if seen.last().is_some_and(|last| last == expected) {
                return;
            }
            list.changed().await.unwrap();
        }
    };
    let waited = tokio::time::timeout(LIMIT, waiting).await;
    assert!(waited.is_ok(), "never {expected:?}; seen {seen:?}");
    seen
}
