//! A directory, two gateways as processes of their own, and a game in this process.

use std::path::Path;
use std::time::Duration;

use base::{ModuleId, TypeId};
use linkstead::{Cx, Env, Linkds, Running, module};
use tempfile::TempDir;
use wire::ticket::Signer;

use super::client::Client;
use crate::cluster::{ANY, Directory, join};
use crate::process::{Process, addr_after, linkstead};

pub use crate::cluster::within;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Word {
    #[prost(string, tag = "1")]
    pub text: String,
    #[prost(int64, repeated, tag = "2")]
    pub numbers: Vec<i64>,
}

struct Hall;

#[module(id = 7, choice = "hash_account")]
impl Hall {
    #[handler]
    async fn echo(&self, _cx: &Cx, word: Word) -> linkstead::Result<Word> {
        Ok(word)
    }
}

/// The request that is answered with itself.
pub const ECHO: TypeId = Hall::ECHO.type_id;
/// A module that nobody has ever announced.
pub const NOWHERE: TypeId = TypeId::new(ModuleId(4_242), base::ProtocolId(1));
/// Connections that one address may have at the first gateway.
pub const PER_ADDRESS: usize = 40;
/// How long a frame may take there, and a login.
pub const FRAME: Duration = Duration::from_millis(1_000);
pub const LOGIN: Duration = Duration::from_millis(3_000);

const GUARDED_LOG: &str = "guarded.log";

/// One gateway's process.
pub struct Gateway {
    process: Process,
    pub clients: String,
    pub providers: String,
}

pub struct World {
    /// Believes everybody.
    pub open: Gateway,
    /// Wants tickets.
    pub guarded: Gateway,
    pub signer: Signer,
    /// A key that has been given up.
    pub retired: Signer,
    _game: Running,
    /// What goes when the world goes.
    rest: (Directory, TempDir),
}

/// Starts one, which writes its log to a file.
fn gateway(directory: std::net::SocketAddr, name: &str, set: &[String], log: &Path) -> Gateway {
    let mut args = vec!["linkd".to_owned(), "--profile".to_owned(), "dev".to_owned()];
    let always = [
        "linkd.listen=127.0.0.1:0",
        "linkd.ws_listen=off",
        "linkd.provider_listen=127.0.0.1:0",
        "linkd.workers=1",
        "node.ops=127.0.0.1:0",
        "node.insecure=true",
        "node.cluster=test",
        "node.log.level=trace",
    ];
    let always = always.into_iter().map(str::to_owned);
    let named = [format!("node.id={name}"), format!("node.directory=[\"{directory}\"]")];
    for set in always.chain(named).chain(set.iter().cloned()) {
        args.extend(["--set".to_owned(), set]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = linkstead(&args);
    command.stderr(std::fs::File::create(log).unwrap());
    let mut process = Process::spawn(command);
    let line = process.wait_for("linkd ready");
    let (clients, providers) = (addr_after(&line, "clients on "), addr_after(&line, "providers on "));
    Gateway { process, clients, providers }
}

impl World {
    pub async fn start() -> Self {
        let directory = Directory::start(ANY);
        let addr = directory.addr;
        let dir = tempfile::tempdir().unwrap();
        let (signer, retired) = (Signer::new(1, &[8; 32]), Signer::new(2, &[7; 32]));
        let keys = [(signer.public(), "one"), (retired.public(), "two")].map(|(mut key, name)| {
            if name == "two" {
                key.retire_at = Some(1_000_000_000);
            }
            let path = dir.path().join(name);
            std::fs::write(&path, key.to_string()).unwrap();
            path
        });
        let open = [
            format!("linkd.per_address_max={PER_ADDRESS}"),
            format!("linkd.frame_timeout={}ms", FRAME.as_millis()),
            format!("linkd.auth_timeout={}ms", LOGIN.as_millis()),
        ];
        let log = dir.path().join("open.log");
        let open = tokio::task::spawn_blocking(move || gateway(addr, "linkd-1", &open, &log));
        let guarded = [
            "linkd.auth=ticket".to_owned(),
            format!("linkd.ticket.keys=[{:?}, {:?}]", keys[0], keys[1]),
            "linkd.ticket.replay=local".to_owned(),
            "linkd.auth_failures_per_second=1".to_owned(),
            "linkd.auth_failures_burst=200".to_owned(),
        ];
        let log = dir.path().join(GUARDED_LOG);
        let guarded = tokio::task::spawn_blocking(move || gateway(addr, "linkd-2", &guarded, &log));
        let (open, guarded) = (open.await.unwrap(), guarded.await.unwrap());
        let (node, joined, cancel) = join(addr, "game-1", "provider");
        let env = Env::new("test", node, Linkds::Directory(joined));
        let config = linkstead::Config {
            server_id: 1,
            app_version: "1.0.0.0".to_owned(),
            max_online_new: u32::MAX,
            ..linkstead::Config::default()
        };
        let starting = linkstead::provider("game").module(|_| Ok(Hall)).start(config, env, cancel);
        let game = within(starting).await.unwrap();
        within(game.ready()).await;
        Self { open, guarded, signer, retired, _game: game, rest: (directory, dir) }
    }

    pub fn directory(&self) -> std::net::SocketAddr {
        self.rest.0.addr
    }

    /// All that the second gateway has written so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.rest.1.path().join(GUARDED_LOG)).unwrap()
    }

    /// Somebody who has said nothing yet.
    pub async fn stranger(&self) -> Client {
        Client::connect(&self.open.clients).await
    }

    pub async fn player(&self, account: &str) -> Client {
        let mut client = self.stranger().await;
        assert_eq!(client.log_in(account, b"").await.code, "answered");
        client
    }

    /// What both gateways have in memory.
    pub fn kib(&self) -> i64 {
        let of = |gateway: &Gateway| -> i64 {
            let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.process.id())).unwrap();
            let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        of(&self.open) + of(&self.guarded)
    }
}
