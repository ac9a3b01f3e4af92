//! The processes of `examples/configs`, with certificates and ports of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::NodeId;
use client::{Options, Reconnect, Token};
use net::Security;
use net::hello::Role;
use node::config::NodeConfig;
use serde_json::Value;

use crate::process::{Process, free_addr, linkstead, output};
use crate::tickets::{signer, ticket_for};

pub const DIRECTORY: &str = "service-manager";
pub const ARBITER: &str = "global-cache";
/// In the documented order.
pub const NODES: [&str; 6] = [DIRECTORY, ARBITER, "linkd-1", "linkd-2", "game-1", "game-2"];
const CLUSTER: &str = "isles";

pub fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/configs")
}

/// What a node prints when it serves.
pub fn ready(node: &str) -> String {
    match node {
        DIRECTORY => "service-manager ready".to_owned(),
        ARBITER => "global-cache ready".to_owned(),
        _ if node.starts_with("linkd") => "linkd ready".to_owned(),
        _ => format!("{node} ready"),
    }
}

pub struct World {
    dir: tempfile::TempDir,
    /// Settings of each node that differ from its file.
    sets: BTreeMap<&'static str, Vec<String>>,
    players: [String; 2],
    ops: BTreeMap<&'static str, String>,
}

impl World {
    /// Makes certificates and keys as the guide says, and starts nothing.
    pub fn new() -> Self {
        // Before anybody looks at a clock.
        tavern();
        let dir = tempfile::tempdir().unwrap();
        let certs = dir.path().join("certs");
        let certs_text = certs.to_str().unwrap();
        run(&["cert", "init", "--dir", certs_text, "--cluster", CLUSTER]);
        for node in NODES {
            let (role, id) = match node {
                DIRECTORY => ("directory", id(node)),
                ARBITER => ("arbiter", id(node)),
                _ if node.starts_with("linkd") => ("linkd", node),
                _ => ("provider", node),
            };
            let issue = ["cert", "issue", "--dir", certs_text, "--role", role, "--node", id];
            run(&[&issue[..], &["--name", "localhost"]].concat());
        }
        std::fs::write(certs.join("ticket-1.pub"), signer().public().to_string()).unwrap();
        let directory = free_addr();
        let players = [free_addr(), free_addr()];
        let ops: BTreeMap<_, _> = NODES.into_iter().map(|node| (node, free_addr())).collect();
        let sets = NODES.into_iter().map(|node| (node, sets(node, &directory, &players, &ops[node])));
        Self { sets: sets.collect(), dir, players, ops }
    }

    pub fn set(&mut self, node: &'static str, setting: &str) {
        self.sets.get_mut(node).unwrap().push(setting.to_owned());
    }

    /// The program of a node with its file; with `check`, to judge the file only.
    pub fn command(&self, node: &'static str, check: bool) -> Command {
        let mut command = match (node, check) {
            (_, true) if node.starts_with("game") => {
                let mut tavern = Command::new(tavern());
                tavern.arg("check-config");
                tavern
            }
            (DIRECTORY, true) => linkstead(&["check-config", "--role", "directory"]),
            (ARBITER, true) => linkstead(&["check-config", "--role", "arbiter"]),
            (_, true) => linkstead(&["check-config", "--role", "linkd"]),
            (DIRECTORY, false) => linkstead(&["service-manager"]),
            (ARBITER, false) => linkstead(&["global-cache"]),
            _ if node.starts_with("linkd") => linkstead(&["linkd"]),
            _ => Command::new(tavern()),
        };
        command.current_dir(self.dir.path()).arg("--config").arg(configs().join(format!("{node}.toml")));
        for set in &self.sets[node] {
            command.args(["--set", set]);
        }
        command
    }

    /// The program of a node that was started already, with an ops port of its own.
    pub fn beside(&self, node: &'static str) -> Command {
        let mut command = self.command(node, false);
        command.args(["--set", "node.ops=127.0.0.1:0"]);
        command
    }

    /// How a node of this id proves who it is.
    pub fn proven(&self, role: Role, id: &NodeId) -> Security {
        let mut config = NodeConfig { cluster: CLUSTER.to_owned(), ..NodeConfig::default() };
        config.tls.dir = self.dir.path().join("certs");
        node::tls::secure(&config, role, id).unwrap().security
    }

    /// Starts a node; it may have to wait.
    pub fn start(&self, node: &'static str) -> Process {
        Process::spawn_with_log(self.command(node, false))
    }

    /// Starts everything in the documented order.
    pub fn start_all(&self) -> BTreeMap<&'static str, Process> {
        let begun = NODES.into_iter().map(|node| {
            let mut process = self.start(node);
            process.wait_for(&ready(node));
            (node, process)
        });
        begun.collect()
    }

    /// A player's way in: TLS, a new ticket for each login, either gateway.
    pub fn options(&self, account: &str) -> Options {
        static TICKETS: AtomicU64 = AtomicU64::new(0);
        let owner = account.to_owned();
        let token = Token::fresh(move || {
            let id = TICKETS.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok(ticket_for(CLUSTER, id, &owner)))
        });
        let roots = std::fs::read_to_string(self.dir.path().join("certs/ca.pem")).unwrap();
        let options = Options {
            deadline: Duration::from_secs(3),
            reconnect: Some(Reconnect { wait_max: Duration::from_secs(1), ..Reconnect::default() }),
            ..Options::new(&self.players.join(","), account).token(token)
        };
        options.tls(&roots, "localhost").unwrap()
    }

    /// The players' address of the first or the second linkd.
    pub fn gateway(&self, index: usize) -> &str {
        &self.players[index]
    }

    pub fn ops(&self, node: &str) -> &str {
        &self.ops[node]
    }

    /// What a node says of itself.
    pub fn status(&self, node: &str) -> Value {
        let (code, out, err) = output(&["status", "--ops", self.ops(node), "--json"]);
        let status: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{code}: {out}{err}"));
        status[id(node)].clone()
    }

    /// The epoch of each node that the directory lists.
    pub fn epochs(&self) -> BTreeMap<String, u64> {
        let (_, out, err) = output(&["topology", "--ops", self.ops(DIRECTORY), "--json"]);
        let nodes: Vec<Value> = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        let epoch = |node: &Value| {
            (node["node"].as_str().unwrap().to_owned(), node["epoch"].as_str().unwrap().parse().unwrap())
        };
        nodes.iter().map(epoch).collect()
    }
}

/// The id of a node by the name of its file.
pub fn id(node: &str) -> &str {
    match node {
        DIRECTORY => "service-manager-1",
        ARBITER => "global-cache-1",
        _ => node,
    }
}

fn sets(node: &str, directory: &str, players: &[String; 2], ops: &str) -> Vec<String> {
    let mut sets = vec![
        format!("node.directory=[\"{directory}\"]"),
        format!("node.ops={ops}"),
        // No balancer has to notice that a node of a test stops.
        "node.stop.propagation=200ms".to_owned(),
    ];
    match node {
        DIRECTORY => sets.push(format!("service_manager.listen={directory}")),
        ARBITER => sets.push("global_cache.listen=127.0.0.1:0".to_owned()),
        "linkd-1" | "linkd-2" => {
            let own = &players[usize::from(node == "linkd-2")];
            sets.push(format!("linkd.listen={own}"));
            sets.push("linkd.ws_listen=127.0.0.1:0".to_owned());
            sets.push("linkd.provider_listen=127.0.0.1:0".to_owned());
        }
        _ => {}
    }
    sets
}

fn run(args: &[&str]) {
    let (code, out, err) = output(args);
    assert_eq!(code, 0, "{args:?}: {out}{err}");
}

/// The provider's program, built from this tree: it is another package's, which cargo builds for no test of ours.
fn tavern() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let own = Path::new(env!("CARGO_BIN_EXE_linkstead"));
        let target = own.parent().and_then(Path::parent).unwrap();
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build
            .args(["build", "-q", "-p", "cli", "-p", "tavern", "--bin", "tavern", "--target-dir"])
            .arg(target);
        let profile = own.parent().and_then(Path::file_name).unwrap();
        if profile == "release" {
            build.arg("--release");
        }
        let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        own.with_file_name("tavern")
    })
}
