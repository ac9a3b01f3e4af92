//! One worker on a thread, raw clients, and a provider that records and answers.

use std::sync::Arc;
use std::time::Duration;

use base::{Epoch, Generation, LinkSid, NodeId, Span};
use bytes::BytesMut;
use linkd::admission::{Caps, Door};
use linkd::auth::Gate;
use linkd::counters::{Counters, Totals};
use linkd::mailbox::Mailbox;
use linkd::router::{Bounds, Judge, Rate, Rules};
use linkd::worker::{self, Guest, Layers, Letter, Settings, Shared, Transport};
use net::dial::Backoff;
use net::hello::{self, Ours, Proof, Role};
use net::link::{Closed, Handler, Link};
use net::strangers::Strangers;
use net::{NetIo, Peer, Security, Tcp, outbox};
use node::directory::{Directory, Join};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use wire::link;
use wire::link::message;
use wire::node::{Frame, Owned};
use wire::payload::{self, Head};

use crate::client::Client;
pub use crate::client::{SEVEN, auth, request};

/// Longer than anything here takes on a busy machine; a wait that reaches it is a failure, not a pace.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct World {
    mailbox: Mailbox<Letter<Tcp>>,
    counters: Arc<Counters>,
    pub door: Door,
    /// Connections begin with a PROXY line.
    behind_balancer: bool,
    thread: Option<std::thread::JoinHandle<()>>,
}

pub fn settings() -> Settings {
    let rules = Rules {
        worker: 0,
        region: String::new(),
        narrow: Default::default(),
        owed_max: 1_024,
        sessions_max: 10_000,
        auth_timeout: Span::secs(10),
        idle_timeout: Span::ZERO,
        judge: Judge::Nobody,
        unauthed_frames_max: 2,
        frames: Rate::OFF,
        bytes: Rate::OFF,
        out_bytes_per_second: 0,
        broadcasts_max: 16,
        broadcast_bytes_max: 64 * 1024,
        seed: 1,
    };
    let (frame_bytes_max, out_bytes_max) = (64 * 1024, 256 * 1024);
    let timeout = Duration::from_secs(10);
    let layers = Layers {
        handshake_timeout: timeout,
        proxy: false,
        origins: net::ws::Origins::Any,
        message_bytes_max: 256 * 1024,
    };
    Settings {
        rules,
        layers,
        bounds: Bounds { backlog_bytes_max: 8 << 20, requests_per_second_max: 0 },
        frame_bytes_max,
        out_bytes_max,
        frame_timeout: timeout,
        write_timeout: timeout,
        greet: true,
        tls: None,
    }
}

impl World {
    /// Everybody is believed.
    pub fn start(settings: Settings) -> Self {
        Self::guarded(settings, Gate::open())
    }

    /// The gate lets players in.
    pub fn guarded(mut settings: Settings, gate: Gate) -> Self {
        settings.rules.judge = gate.judge();
        let behind_balancer = settings.layers.proxy;
        let (mailbox, counters) = (Mailbox::new(1_024), Arc::new(Counters::default()));
        let (theirs, counts) = (mailbox.clone(), counters.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let work = worker::run(Tcp, settings, Shared::new(1, gate), counts, theirs);
            tokio::task::LocalSet::new().block_on(&runtime, work);
        });
        let door = Door::new(Caps { connections_max: 10_000, per_address_max: 10_000, unauthed_max: 10_000 });
        Self { mailbox, counters, door, behind_balancer, thread: Some(thread) }
    }

    /// Both ends of a loopback connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = Tcp::listen(([127, 0, 0, 1], 0).into()).unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let (ours, theirs) = tokio::join!(Tcp::dial(&addr), Tcp.accept(&listener));
        (ours.unwrap(), theirs.unwrap().0)
    }

    /// A connection that has said nothing yet, not even what its transport begins with.
    pub async fn knock(&self, transport: Transport) -> TcpStream {
        let (ours, theirs) = Self::pair().await;
        let addr = ours.local_addr().unwrap();
        let stream = Tcp.detach(theirs).unwrap();
        let admission = match self.behind_balancer {
            false => self.door.admit(addr.ip()).unwrap(),
            true => self.door.admit_unknown().unwrap(),
        };
        assert!(self.mailbox.post(Letter::Client { stream, addr, admission, transport }).is_ok());
        ours
    }

    /// A connection that has said nothing yet.
    pub async fn connect(&self) -> Client {
        self.connect_by(Transport::Tcp).await
    }

    pub async fn connect_by(&self, transport: Transport) -> Client {
        let stream = self.knock(transport).await;
        match transport {
            Transport::Tcp => Client::plain(stream),
            Transport::WebSocket => Client::upgrade(stream).await,
        }
    }

    /// A client that has shaken hands and logged in.
    pub async fn login(&self, account: &str) -> Client {
        self.login_by(Transport::Tcp, account).await
    }

    pub async fn login_by(&self, transport: Transport, account: &str) -> Client {
        let mut client = self.connect_by(transport).await;
        client.login(account).await;
        client
    }

    /// A provider of static module 7 that answers every request with its own body, as Send.
    pub async fn provider(&self, node: &str, echo: bool) -> Provider {
        let conn = Generation(base::hash::bytes(node.as_bytes()));
        self.announced(node, conn, false, echo).await
    }

    /// The same, under a connection of the test's, and perhaps one that judges logins.
    pub async fn announced(&self, node: &str, conn: Generation, authenticator: bool, echo: bool) -> Provider {
        let (ours, peer) = self.greeted(node, conn).await;
        let (mut read, write) = tokio::io::split(ours);
        let link = Link::new(peer, Generation(1), write);
        tokio::spawn(outbox::drive(link.outbox.clone()));
        let (frames, seen) = mpsc::channel(100_000);
        let mut inbound = Inbound { link: link.clone(), frames, echo };
        let running = link.clone();
        let ended = tokio::spawn(async move {
            net::link::run(&running, &mut read, &mut vec![0; 65_536], &mut inbound).await.to_string()
        });
        let server_id = base::hash::bytes(node.as_bytes()) as u32;
        let announce = message::Announce { server_id, authenticator, ..Default::default() };
        link.call::<()>(link::ANNOUNCE, &announce, PATIENCE).await.unwrap();
        let modules = vec![message::Module {
            id: 7,
            name: "Seven".into(),
            choice: "hash_account".into(),
            contract: 7,
            ..Default::default()
        }];
        link.call::<()>(link::BIND, &message::Bind { modules, link_sids: vec![] }, PATIENCE).await.unwrap();
        Provider { link, seen, ended }
    }

    /// A provider's connection after its hello.
    async fn greeted(&self, node: &str, conn: Generation) -> (TcpStream, Peer) {
        let (mut stream, theirs) = Self::pair().await;
        let addr = stream.local_addr().unwrap();
        let ours = |node: &str, role| Ours {
            cluster: "dev".into(),
            node: NodeId::new(node).unwrap(),
            role,
            epoch: Epoch(1),
            worker: 0,
        };
        let place = Strangers::new(1, 1).enter(addr.ip()).unwrap();
        let (security, linkd) = (Security::Insecure, ours("linkd-1", Role::Linkd));
        let directory = alone(&linkd.node);
        let guest =
            Box::new(Guest { addr, wanted: 0, workers: 1, conn, ours: linkd, security, directory, place });
        let letter = Letter::Provider { stream: Tcp.detach(theirs).unwrap(), guest };
        assert!(self.mailbox.post(letter).is_ok());
        let (proof, provider) = (Proof::Loopback(addr), ours(node, Role::Provider));
        let peer = within(hello::offer(&mut stream, &proof, &provider, &[Role::Linkd])).await.unwrap();
        (stream, peer)
    }

    /// A provider of static module 9 that says who it is and then never reads again.
    pub async fn mute_provider(&self, node: &str) -> TcpStream {
        let (mut ours, _) = self.greeted(node, Generation(999)).await;
        let mut out = BytesMut::new();
        let announce = message::Announce { server_id: 999, ..Default::default() };
        wire::node::encode_message(&mut out, &wire::node::Meta::call(link::ANNOUNCE, 1, 0), &announce);
        let nine = message::Module { id: 9, name: "Nine".into(), contract: 9, ..Default::default() };
        let bind = message::Bind { modules: vec![nine], link_sids: vec![] };
        wire::node::encode_message(&mut out, &wire::node::Meta::call(link::BIND, 2, 0), &bind);
        ours.write_all(&out).await.unwrap();
        ours
    }

    /// Waits for what has no event of its own.
    pub async fn until(&self, is: impl Fn(&Self) -> bool) {
        let waited = async {
            while !is(self) {
                // Sleep: the system's own bookkeeping rings no bell.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(waited).await;
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.counters.add_to(&mut totals);
        totals
    }

    /// Stops the worker and answers what it counted.
    pub async fn stop(mut self) -> Totals {
        let (done, wait) = oneshot::channel();
        assert!(self.mailbox.post(Letter::Stop(done)).is_ok());
        within(wait).await.unwrap();
        let thread = self.thread.take().unwrap();
        within(tokio::task::spawn_blocking(move || thread.join())).await.unwrap().unwrap();
        self.totals()
    }
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it took too long")
}

struct Inbound {
    link: Link,
    frames: mpsc::Sender<Owned>,
    echo: bool,
}

impl Handler for Inbound {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        if frame.meta.kind == link::DISPATCH && self.echo {
            let dispatch = link::Dispatch::decode(frame.head).unwrap();
            let (head, body) = payload::decode(frame.body).unwrap();
            let mut answer = BytesMut::new();
            payload::encode_frame(&mut answer, dispatch.type_id, Head::response(head.session, 0), |out| {
                out.extend_from_slice(body);
            });
            let sid = dispatch.link_sid.0.to_le_bytes();
            self.link.notice(link::SEND, &sid, &answer).unwrap();
        }
        // A test that doesn't look loses nothing but its own view.
        let _ = self.frames.try_send(frame.into());
        Ok(())
    }
}

pub struct Provider {
    pub link: Link,
    seen: mpsc::Receiver<Owned>,
    ended: tokio::task::JoinHandle<String>,
}

impl Provider {
    /// Why its connection ended, in words, with the code's name.
    pub async fn closed(self) -> String {
        let text = within(self.ended).await.unwrap();
        let number = text.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
        let name = number.and_then(wire::Code::find).map_or("", |code| code.name);
        format!("{name} {text}")
    }

    /// The next frame of this kind; others before it are skipped.
    pub async fn next(&mut self, kind: wire::node::Kind) -> Owned {
        loop {
            let frame = within(self.seen.recv()).await.expect("the connection ended");
            if frame.meta.kind == kind {
                return frame;
            }
        }
    }

    /// The sid of the next session that is introduced.
    pub async fn opened(&mut self) -> LinkSid {
        LinkSid(self.introduced().await.link_sid)
    }

    /// The next introduction.
    pub async fn introduced(&mut self) -> message::Opened {
        prost::Message::decode(self.next(link::OPENED).await.body).unwrap()
    }
}

/// A membership that no directory hears of.
fn alone(node: &NodeId) -> Directory {
    Directory::alone(Join {
        cluster: "dev".into(),
        node: node.clone(),
        role: "linkd".into(),
        host: "here".into(),
        directory: Vec::new(),
        ops_address: String::new(),
        reconnect: Backoff::new(Duration::from_millis(100), Duration::from_secs(2), 1),
        security: Security::Insecure,
    })
}
