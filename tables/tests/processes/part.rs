//! A process of the test: this test's own program, told by its environment what it is.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use base::{Epoch, NodeId};
use global_cache::{Config, Env as ArbiterEnv};
use net::Security;
use node::Clock;
use node::config::Time;
use std::sync::Arc;
use tables::arbiter::client::{Client, Env, Place};
use tables::{Db, Settings};

use crate::bank::Bank;
use crate::storage::Remote;

/// What a process is: `arbiter ADDR EPOCH` or `provider NODE EPOCH ARBITER STORAGE`. Without it a child's test does nothing.
const PART: &str = "LINKSTEAD_TABLES_TEST_PART";
/// Whatever must happen happens within this, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Who is silent for so long is evicted.
pub const EVICTION: Duration = Duration::from_millis(3_500);

pub fn config(listen: SocketAddr) -> Config {
    Config {
        listen,
        renew: Time::millis(200),
        self_release: Time::millis(1_200),
        flush: Time::millis(600),
        ping: Time::millis(100),
        eviction: Time(EVICTION),
        ..Config::default()
    }
}

/// Not a test by itself: what the others start, freeze and kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(part) = std::env::var(PART) else { return };
    let words: Vec<&str> = part.split(' ').collect();
    match words[..] {
        ["arbiter", addr, epoch] => arbiter(addr.parse().unwrap(), epoch.parse().unwrap()).await,
        ["provider", node, epoch, arbiter, storage] => {
            let db = connect(node, epoch.parse().unwrap(), arbiter, storage.parse().unwrap());
            trade(node, Bank::new(db)).await;
        }
        _ => panic!("{part}"),
    }
}

async fn arbiter(addr: SocketAddr, epoch: u64) {
    let node = NodeId::new("global-cache-1").unwrap();
    let env = ArbiterEnv { cluster: "test".into(), node, epoch: Epoch(epoch), security: Security::Insecure };
    let server = global_cache::start(&config(addr), env).await.unwrap();
    say(&format!("arbiter {}", server.addr));
    std::future::pending().await
}

/// A provider's database over the shared storage.
pub fn connect(node: &str, epoch: u64, arbiter: &str, storage: SocketAddr) -> Db {
    let (cluster, node, clock) = ("test".to_owned(), NodeId::new(node).unwrap(), Clock::start());
    let (security, place) = (Security::Insecure, Place::Listed(vec![arbiter.to_owned()]));
    let storages = Vec::new();
    let env = Env { cluster, node: node.clone(), epoch: Epoch(epoch), security, clock, storages, place };
    let client = Arc::new(Client::new(env));
    let opening =
        Db::with(Settings::new(node), Arc::new(Remote::new(storage)), client.clone(), clock).unwrap();
    client.start(opening.hear()).unwrap();
    opening.done()
}

async fn trade(node: &str, bank: Bank) {
    for number in 0.. {
        match bank.trade(node, number).await {
            Ok(count) => say(&format!("acknowledged {count}")),
            Err(error) => say(&format!("failed: {error}")),
        }
    }
}

/// Its parent may be gone.
fn say(line: &str) {
    let mut out = std::io::stdout();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// A process that runs, and what it says.
pub struct Part {
    child: Child,
    lines: Receiver<String>,
    /// The last trade that it has acknowledged.
    pub acknowledged: u64,
}

impl Part {
    pub fn start(what: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["part::child", "--exact", "--nocapture"])
            .env(PART, what)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let (sender, lines) = sync_channel(1_000_000);
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, acknowledged: 0 }
    }

    /// Waits for a line that begins with this, and gives the rest of it.
    pub fn wait_for(&mut self, begin: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let line = self.line(until.saturating_duration_since(Instant::now())).unwrap();
            if let Some(at) = line.find(begin) {
                return line[at + begin.len()..].to_owned();
            }
        }
    }

    fn line(&mut self, within: Duration) -> Result<String, RecvTimeoutError> {
        let line = self.lines.recv_timeout(within)?;
        if let Some(count) = line.split("acknowledged ").nth(1).and_then(|count| count.parse().ok()) {
            self.acknowledged = count;
        }
        Ok(line)
    }

    /// Waits until it has acknowledged so many trades more, from now on.
    pub fn trades(&mut self, more: u64) {
        while self.line(Duration::ZERO).is_ok() {}
        let (until, wanted) = (Instant::now() + PATIENCE, self.acknowledged + more);
        let mut last = String::new();
        while self.acknowledged < wanted {
            match self.line(until.saturating_duration_since(Instant::now())) {
                Ok(line) => last = line,
                Err(error) => panic!("{error}: {} of {wanted} trades; last {last:?}", self.acknowledged),
            }
        }
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// `kill -9`; gives the last trade that it has acknowledged.
    pub fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while self.line(Duration::from_secs(1)).is_ok() {}
        self.acknowledged
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
