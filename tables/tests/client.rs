//! A provider's session with an arbiter in another thread, over real sockets.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Epoch, Fence, Mono, NodeId};
use bytes::Bytes;
use global_cache::{Config, Env as ArbiterEnv, Server};
use net::{Security, Tcp};
use node::Clock;
use node::config::Time;
use parking_lot::Mutex;
use store::StoreId;
use tables::arbiter::client::{Client, Env, Place};
use tables::{Arbiter, Hear, Heard, Mode, Word};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use wire::code;

/// Whatever takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Any port, no grace, and a lease of a second.
fn config() -> Config {
    Config {
        listen: ([127, 0, 0, 1], 0).into(),
        grace: Some(Time::secs(0)),
        renew: Time::millis(100),
        self_release: Time::millis(1_000),
        flush: Time::millis(500),
        ping: Time::millis(50),
        eviction: Time::millis(2_600),
        ..Config::default()
    }
}

/// The default lease, for what must not end by chance on a busy machine.
fn patient() -> Config {
    Config { listen: ([127, 0, 0, 1], 0).into(), grace: Some(Time::secs(0)), ..Config::default() }
}

async fn arbiter(config: &Config, epoch: u64) -> Server {
    let node = NodeId::new("global-cache-1").unwrap();
    let env = ArbiterEnv { cluster: "test".into(), node, epoch: Epoch(epoch), security: Security::Insecure };
    global_cache::start(config, env).await.unwrap()
}

/// What a session has called.
#[derive(Debug, PartialEq)]
enum Call {
    Heard(Heard),
    Opened(Fence),
    Reopened(Fence),
    Resumed,
    Extended,
    Released,
    Lost,
}

/// Notes what it hears.
struct Ear {
    calls: mpsc::UnboundedSender<Call>,
    held: Mutex<Vec<Word>>,
}

impl Ear {
    fn note(&self, call: Call) {
        // A test that has ended listens no more.
        let _ = self.calls.send(call);
    }
}

impl Hear for Ear {
    fn heard(&self, words: &mut Vec<Heard>) {
        words.drain(..).for_each(|word| self.note(Call::Heard(word)));
    }

    fn opened(&self, epoch: Epoch, fence: Fence, until: Mono) {
        assert!(epoch == fence.epoch && until > Mono::ZERO);
        self.note(Call::Opened(fence));
    }

    fn reopened(&self, _epoch: Epoch, fence: Fence) -> Vec<Word> {
        self.note(Call::Reopened(fence));
        self.held.lock().clone()
    }

    fn resumed(&self) {
        self.note(Call::Resumed);
    }

    fn extended(&self, _until: Mono) {
        self.note(Call::Extended);
    }

    fn released(&self) {
        self.note(Call::Released);
    }

    fn lost(&self) {
        self.note(Call::Lost);
    }
}

struct Provider {
    client: Client,
    ear: Arc<Ear>,
    calls: mpsc::UnboundedReceiver<Call>,
}

impl Provider {
    fn start(addr: SocketAddr, node: &str, epoch: u64) -> Self {
        Self::with(Place::Listed(vec![addr.to_string()]), node, epoch, Vec::new())
    }

    fn with(place: Place, node: &str, epoch: u64, storages: Vec<(String, StoreId)>) -> Self {
        let (cluster, node) = ("test".to_owned(), NodeId::new(node).unwrap());
        let (security, clock, epoch) = (Security::Insecure, Clock::start(), Epoch(epoch));
        let client = Client::new(Env { cluster, node, epoch, security, clock, storages, place });
        let (sender, calls) = mpsc::unbounded_channel();
        let ear = Arc::new(Ear { calls: sender, held: Mutex::default() });
        client.start(ear.clone()).unwrap();
        Self { client, ear, calls }
    }

    /// The next call, renewals left out.
    async fn call(&mut self) -> Call {
        loop {
            match within(self.calls.recv()).await.expect("the session goes on") {
                Call::Extended => {}
                call => return call,
            }
        }
    }

    async fn opened(&mut self) -> Fence {
        match self.call().await {
            Call::Opened(fence) => fence,
            other => panic!("{other:?}"),
        }
    }

    fn say(&self, word: Word) {
        self.client.say(&mut vec![word]);
        self.client.send();
    }

    fn ask(&self, request: u64, key: &'static [u8]) {
        self.say(Word::Ask { request, want: Mode::Modify, have: 0, key: Bytes::from_static(key) });
    }

    /// The number of the grant that answers the next request.
    async fn granted(&mut self) -> u64 {
        match self.call().await {
            Call::Heard(Heard::Granted { mode: Mode::Modify, seq, .. }) => seq,
            other => panic!("{other:?}"),
        }
    }
}

/// What a relay does with the bytes of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relaying {
    On,
    Frozen,
    Cut,
}

/// A way to the arbiter that can be cut or frozen.
struct Relay {
    addr: SocketAddr,
    mode: watch::Sender<Relaying>,
}

impl Relay {
    fn new(to: SocketAddr) -> Self {
        let listener: TcpListener = Tcp::listen(([127, 0, 0, 1], 0).into()).unwrap();
        let addr = listener.local_addr().unwrap();
        let (mode, modes) = watch::channel(Relaying::On);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(relay(stream, to, modes.clone()));
            }
        });
        Self { addr, mode }
    }
}

async fn relay(mut near: TcpStream, to: SocketAddr, mut modes: watch::Receiver<Relaying>) {
    if *modes.borrow() == Relaying::Cut {
        return;
    }
    let mut far = Tcp::dial(&to.to_string()).await.unwrap();
    loop {
        let mode = *modes.borrow_and_update();
        tokio::select! {
            biased;
            changed = modes.changed() => if changed.is_err() { return },
            _ = tokio::io::copy_bidirectional(&mut near, &mut far), if mode == Relaying::On => return,
        }
        if *modes.borrow() == Relaying::Cut {
            return;
        }
    }
}

#[tokio::test]
async fn a_record_is_asked_for_granted_and_handed_over() {
    let arbiter = arbiter(&patient(), 7).await;
    let mut a = Provider::start(arbiter.addr, "game-1", 1);
    let mut b = Provider::start(arbiter.addr, "game-2", 2);
    let fence = a.opened().await;
    b.opened().await;
    a.ask(1, b"role/1");
    let seq = a.granted().await;
    b.ask(9, b"role/1");
    let Call::Heard(Heard::Reduce { record, seq: of, to, .. }) = a.call().await else { panic!("not asked") };
    assert_eq!((record, of, to), (wire::cache::record(b"role/1"), seq, Mode::Invalid));
    a.say(Word::Refused { record, seq, until: base::Span::millis(1) });
    a.say(Word::Reduced { record, seq, to: Mode::Invalid, flushed: 40 });
    match b.call().await {
        Call::Heard(Heard::Granted { request: 9, version_min: 40, must_reload: true, .. }) => {}
        other => panic!("{other:?}"),
    }
    let status = a.client.status();
    assert!(status.connected && status.fence == Some(fence) && !status.outlived, "{status:?}");
    assert!(status.left > base::Span::ZERO && status.words_dropped == 0, "{status:?}");
    // Many keys in one call travel in frames that are not too large and name not too many, and in their order.
    for (first, width) in [(100, 1_000), (10_000, 1)] {
        let key = |request: u64| Bytes::from(format!("{request:0width$}"));
        let ask = |request| Word::Ask { request, want: Mode::Modify, have: 0, key: key(request) };
        a.client.say(&mut (first..first + 5_000).map(ask).collect());
        a.client.send();
        for request in first..first + 5_000 {
            match a.call().await {
                Call::Heard(Heard::Granted { request: granted, .. }) => assert_eq!(granted, request),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn what_is_said_without_a_session_is_counted_and_what_is_no_key_is_not_sent() {
    let arbiter = arbiter(&patient(), 7).await;
    let (place, known) = watch::channel(None);
    let mut a = Provider::with(Place::Watched(known), "game-1", 1, Vec::new());
    a.ask(1, b"role/1");
    assert_eq!(a.client.status().words_dropped, 1);
    place.send_replace(Some(arbiter.addr.to_string()));
    a.opened().await;
    a.ask(2, b"");
    a.ask(3, b"role/3");
    a.granted().await;
    assert_eq!(a.client.status().words_dropped, 2);
}

#[tokio::test]
async fn a_cut_connection_is_replaced_and_the_session_goes_on() {
    let arbiter = arbiter(&patient(), 7).await;
    let relay = Relay::new(arbiter.addr);
    let mut a = Provider::start(relay.addr, "game-1", 1);
    let fence = a.opened().await;
    a.ask(1, b"role/1");
    let seq = a.granted().await;
    relay.mode.send_replace(Relaying::Cut);
    // Whoever wants it meanwhile is heard of when the session goes on.
    let mut b = Provider::start(arbiter.addr, "game-2", 2);
    b.opened().await;
    b.ask(1, b"role/1");
    relay.mode.send_replace(Relaying::On);
    assert_eq!(a.call().await, Call::Resumed);
    let Call::Heard(Heard::Reduce { seq: of, .. }) = a.call().await else { panic!("not asked") };
    assert_eq!((of, a.client.status().fence), (seq, Some(fence)));
}

#[tokio::test]
async fn an_arbiter_that_restarts_within_the_lease_is_told_what_is_held() {
    let config = patient();
    let before = arbiter(&config, 7).await;
    let addr = before.addr;
    let mut a = Provider::start(addr, "game-1", 1);
    a.opened().await;
    let record = wire::cache::record(b"role/1");
    // More than one frame of them.
    let word = |record| Word::Reassert { record, mode: Mode::Modify };
    *a.ear.held.lock() = (0..5_000).map(|n| word(record.wrapping_add(n))).collect();
    before.stop().await;
    let after = arbiter(&Config { listen: addr, grace: Some(Time::secs(10)), ..config }, 8).await;
    assert_eq!(a.call().await, Call::Reopened(Fence::new(Epoch(8), 1)));
    for n in 0..5_000 {
        match within(a.calls.recv()).await.unwrap() {
            // Commits rest until the last one.
            Call::Heard(Heard::Reasserted { record: of, seq: Some(_) }) => {
                assert_eq!(of, record.wrapping_add(n))
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(within(a.calls.recv()).await, Some(Call::Extended));
    within(after.statuses().wait_for(|status| status.keys == 5_000)).await.unwrap();
}

/// The session whose records were dropped is not gone on with, although the arbiter has it still: it is evicted first.
#[tokio::test]
async fn a_silent_arbiter_is_released_and_lost_and_joined_anew() {
    let arbiter = arbiter(&config(), 7).await;
    let relay = Relay::new(arbiter.addr);
    let mut a = Provider::start(relay.addr, "game-1", 1);
    let first = a.opened().await;
    relay.mode.send_replace(Relaying::Frozen);
    assert_eq!(a.call().await, Call::Released);
    assert_eq!(a.call().await, Call::Lost);
    assert_eq!(a.client.status().left, base::Span::ZERO);
    // What waited on the way reaches the arbiter now, and renews a lease that nobody holds.
    relay.mode.send_replace(Relaying::On);
    let second = a.opened().await;
    assert!(second > first, "{second}");
}

#[tokio::test]
async fn who_keeps_records_elsewhere_is_refused_until_the_others_are_gone() {
    let arbiter = arbiter(&patient(), 7).await;
    let place = || Place::Listed(vec![arbiter.addr.to_string()]);
    let storage = |id| vec![("sled".to_owned(), StoreId(id))];
    let mut a = Provider::with(place(), "game-1", 1, storage(1));
    a.opened().await;
    let mut b = Provider::with(place(), "game-2", 2, storage(2));
    while b.client.status().refused != Some(code::OTHER_STORAGE.number) {
        // Sleep: nothing tells of a refusal but the status, which an operator looks at.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(b.calls.try_recv().is_err() && !b.client.status().connected);
    within(a.client.leave()).await;
    b.opened().await;
    assert_eq!(b.client.status().refused, None);
}

#[tokio::test]
async fn a_later_start_of_the_node_ends_it() {
    let arbiter = arbiter(&patient(), 7).await;
    let mut before = Provider::start(arbiter.addr, "game-1", 1);
    before.opened().await;
    let mut after = Provider::start(arbiter.addr, "game-1", 2);
    after.opened().await;
    assert_eq!(before.call().await, Call::Lost);
    within(before.client.outlived()).await;
    assert!(before.client.status().outlived && !before.client.status().connected);
}

#[tokio::test]
async fn who_leaves_leaves_everything_to_others_at_once() {
    let arbiter = arbiter(&patient(), 7).await;
    let mut a = Provider::start(arbiter.addr, "game-1", 1);
    a.opened().await;
    a.ask(1, b"role/1");
    a.granted().await;
    within(a.client.leave()).await;
    assert_eq!(a.call().await, Call::Lost);
    within(arbiter.statuses().wait_for(|status| status.sessions == 0)).await.unwrap();
    let mut b = Provider::start(arbiter.addr, "game-2", 2);
    b.opened().await;
    b.ask(1, b"role/1");
    b.granted().await;
}

/// What the storage has refused is not written again under the same fence.
#[tokio::test]
async fn an_abandoned_session_is_followed_by_another() {
    let arbiter = arbiter(&config(), 7).await;
    let mut a = Provider::start(arbiter.addr, "game-1", 1);
    let first = a.opened().await;
    a.client.abandon();
    assert_eq!(a.call().await, Call::Lost);
    assert!(a.opened().await > first);
}
