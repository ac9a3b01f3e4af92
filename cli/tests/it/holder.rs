//! What a provider says to the arbiter of records, word by word.

use std::time::Duration;

use base::{Generation, RequestId};
use net::calls::CallError;
use net::hello::{self, HelloError, Ours, Role};
use net::link::{Closed, Handler, Link};
use net::{Security, Tcp, outbox};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wire::cache::{self, Ask, Deny, Grant, Held, Reduce, Reduced, message, mode};
use wire::node::{Frame, Owned};

/// Whatever takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

pub struct Holder {
    pub link: Link,
    words: mpsc::Receiver<Owned>,
    pub ended: JoinHandle<String>,
}

struct Inbound(mpsc::Sender<Owned>);

impl Handler for Inbound {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        // Who does not read what it is told loses it.
        let _ = self.0.try_send(frame.into());
        Ok(())
    }
}

/// What an arbiter says.
#[derive(Debug, PartialEq, Eq)]
pub enum Word {
    Grant(Grant),
    Deny(&'static str),
    Reduce(Reduce),
    Held(Held),
}

impl Holder {
    /// Says hello and no more.
    pub async fn dial(addr: &str, security: &Security, ours: &Ours) -> Result<Self, HelloError> {
        let stream = within(Tcp::dial(addr)).await?;
        let (mut stream, proof) = security.dial(stream, addr, PATIENCE).await.map_err(HelloError::Tls)?;
        let peer = within(hello::offer(&mut stream, &proof, ours, &[Role::Arbiter])).await?;
        let (mut read, write) = tokio::io::split(stream);
        let link = Link::new(peer, Generation(1), write);
        tokio::spawn(outbox::drive(link.outbox.clone()));
        let (sender, words) = mpsc::channel(10_000);
        let running = link.clone();
        let ended = tokio::spawn(async move {
            net::link::run(&running, &mut read, &mut vec![0; 65_536], &mut Inbound(sender)).await.to_string()
        });
        Ok(Self { link, words, ended })
    }

    pub async fn login(&self) -> Result<message::Welcome, CallError> {
        self.link.call(cache::LOGIN, &message::Login::default(), PATIENCE).await
    }

    pub async fn renew(&self) -> Result<message::Done, CallError> {
        self.link.call(cache::RENEW, &message::Done {}, PATIENCE).await
    }

    pub fn ask(&self, request: u64, want: u8, key: &[u8]) {
        let mut body = Vec::new();
        Ask { request: RequestId(request), want, have: 0, key }.encode(&mut body);
        self.say(cache::ACQUIRE, &[], &body);
    }

    pub fn reduced(&self, key: &[u8], seq: u64, to: u8) {
        let head = Reduced { record: cache::record(key), seq, to, flushed: 0 }.encode();
        self.say(cache::REDUCED, &head, &[]);
    }

    /// It goes on changing this record.
    pub fn reassert(&self, key: &[u8]) {
        let held = Held { record: cache::record(key), mode: mode::MODIFY, seq: 0 };
        self.say(cache::REASSERT, &[], &held.encode());
    }

    pub fn say(&self, kind: wire::node::Kind, head: &[u8], body: &[u8]) {
        // Who was cut off already says nothing more.
        let _ = self.link.notice(kind, head, body);
    }

    pub async fn word(&mut self) -> Word {
        self.hear().await.expect("the arbiter goes on")
    }

    /// `None`: the connection is over.
    pub async fn hear(&mut self) -> Option<Word> {
        let frame = within(self.words.recv()).await?;
        Some(match frame.meta.kind {
            cache::GRANT => Word::Grant(Grant::decode(&frame.head).unwrap()),
            cache::DENY => {
                Word::Deny(wire::Code::find(Deny::decode(&frame.head).unwrap().code).unwrap().name)
            }
            cache::REDUCE => Word::Reduce(Reduce::decode(&frame.head).unwrap()),
            cache::REASSERTED => {
                let mut held = None;
                cache::held(&frame.body, |one| held = Some(one)).unwrap();
                Word::Held(held.unwrap())
            }
            kind => panic!("{kind:?}"),
        })
    }

    /// Asks for a record to change it, which nobody has.
    pub async fn modify(&mut self, request: u64, key: &[u8]) -> Grant {
        self.ask(request, mode::MODIFY, key);
        match self.word().await {
            Word::Grant(grant) => grant,
            other => panic!("{other:?}"),
        }
    }
}
