//! An arbiter, and providers that say what a test wants them to say.

use std::time::Duration;

use base::{Epoch, Generation, NodeId, RequestId};
use global_cache::Config;
use global_cache::server::{self, Env, Server};
use net::calls::CallError;
use net::hello::{self, Ours, Proof, Role};
use net::link::{Closed, Handler, Link};
use net::{Security, Tcp, outbox};
use node::config::Time;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wire::cache::{self, Ask, Deny, Grant, Reduce, Reduced, message, mode};
use wire::node::{Frame, Owned};

/// Whatever takes longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(10);

pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Any port, no grace.
pub fn config() -> Config {
    Config { listen: ([127, 0, 0, 1], 0).into(), grace: Some(Time::secs(0)), ..Config::default() }
}

pub async fn arbiter(config: &Config) -> Server {
    let node = NodeId::new("global-cache-1").unwrap();
    let env = Env { cluster: "test".into(), node, epoch: Epoch(7), security: Security::Insecure };
    server::start(config, env).await.unwrap()
}

/// A provider's connection.
pub struct Provider {
    pub link: Link,
    words: mpsc::Receiver<Owned>,
    pub ended: JoinHandle<String>,
}

struct Inbound(mpsc::Sender<Owned>);

impl Handler for Inbound {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        self.0.try_send(frame.into()).expect("a test reads what it is told");
        Ok(())
    }
}

/// What an arbiter says.
#[derive(Debug, PartialEq, Eq)]
pub enum Word {
    Grant(Grant, Vec<message::Eviction>),
    Deny(Deny),
    Reduce(Reduce),
    Held(cache::Held),
}

impl Provider {
    /// Says hello and no more.
    pub async fn dial(arbiter: &Server, node: &str, epoch: u64) -> Self {
        let mut stream = Tcp::dial(&arbiter.addr.to_string()).await.unwrap();
        let (cluster, node) = ("test".to_owned(), NodeId::new(node).unwrap());
        let ours = Ours { cluster, node, role: Role::Provider, epoch: Epoch(epoch), worker: 0 };
        let proof = Proof::Loopback(arbiter.addr);
        let peer = within(hello::offer(&mut stream, &proof, &ours, &[Role::Arbiter])).await.unwrap();
        let (mut read, write) = tokio::io::split(stream);
        let link = Link::new(peer, Generation(1), write);
        tokio::spawn(outbox::drive(link.outbox.clone()));
        let (sender, words) = mpsc::channel(10_000);
        let running = link.clone();
        let ended = tokio::spawn(async move {
            net::link::run(&running, &mut read, &mut vec![0; 65_536], &mut Inbound(sender)).await.to_string()
        });
        Self { link, words, ended }
    }

    pub async fn login(&self, storages: Vec<message::Storage>) -> Result<message::Welcome, CallError> {
        self.link.call(cache::LOGIN, &message::Login { storages }, PATIENCE).await
    }

    /// One that has logged in.
    pub async fn join(arbiter: &Server, node: &str, epoch: u64) -> Self {
        let provider = Self::dial(arbiter, node, epoch).await;
        provider.login(Vec::new()).await.unwrap();
        provider
    }

    pub fn ask(&self, request: u64, want: u8, have: u64, key: &[u8]) {
        let mut body = Vec::new();
        Ask { request: RequestId(request), want, have, key }.encode(&mut body);
        self.link.notice(cache::ACQUIRE, &[], &body).unwrap();
    }

    pub fn reduced(&self, key: &[u8], seq: u64, to: u8, flushed: u64) {
        let head = Reduced { record: cache::record(key), seq, to, flushed }.encode();
        self.link.notice(cache::REDUCED, &head, &[]).unwrap();
    }

    pub async fn word(&mut self) -> Word {
        let frame = within(self.words.recv()).await.expect("the arbiter goes on");
        match frame.meta.kind {
            cache::GRANT => {
                let evictions = <message::Evictions as prost::Message>::decode(frame.body).unwrap();
                Word::Grant(Grant::decode(&frame.head).unwrap(), evictions.evictions)
            }
            cache::DENY => Word::Deny(Deny::decode(&frame.head).unwrap()),
            cache::REDUCE => Word::Reduce(Reduce::decode(&frame.head).unwrap()),
            cache::REASSERTED => {
                let mut held = None;
                cache::held(&frame.body, |one| held = Some(one)).unwrap();
                Word::Held(held.unwrap())
            }
            kind => panic!("{kind:?}"),
        }
    }

    pub async fn granted(&mut self) -> Grant {
        match self.word().await {
            Word::Grant(grant, _) => grant,
            other => panic!("{other:?}"),
        }
    }

    /// Why it is granted nothing.
    pub async fn denied(&mut self) -> (u64, &'static str) {
        match self.word().await {
            Word::Deny(deny) => (deny.request, wire::Code::find(deny.code).unwrap().name),
            other => panic!("{other:?}"),
        }
    }

    /// Asks for a record to change it, and is granted it.
    pub async fn modify(&mut self, request: u64, key: &[u8]) -> Grant {
        self.ask(request, mode::MODIFY, 0, key);
        self.granted().await
    }
}
