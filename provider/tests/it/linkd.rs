//! A linkd that does what a test says: it accepts providers, answers their calls, and shows every frame.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Epoch, Generation, LinkSid, NodeId, Role, TypeId};
use linkstead::{Builder, Config, Env, Linkd, Linkds, Push, Rpc, Running};
use net::hello::{self, Ours, Peer};
use net::link::{Closed, Handler, Link};
use net::{NetIo, Tcp};
use prost::Message;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::Code;
use wire::frame::{self, Decoded};
use wire::link::{self, Dispatch, LinkBroken, UserState, message};
use wire::node::{Frame, Kind, Meta, Owned};
use wire::payload::{self, Family, Head};

/// Whatever must happen happens within this, or the test fails.
pub const SOON: Duration = Duration::from_secs(10);

/// One provider's connection as the linkd holds it.
pub struct Provider {
    pub link: Link,
    frames: mpsc::Receiver<Owned>,
    running: JoinHandle<(Closed, OwnedReadHalf)>,
    pause: CancellationToken,
}

struct Show(mpsc::Sender<Owned>);

impl Handler for Show {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        self.0.try_send(frame.into()).expect("a test looks at its frames");
        Ok(())
    }
}

/// A client frame that the provider sent to sessions.
#[derive(Debug)]
pub struct Sent {
    pub sids: Vec<LinkSid>,
    pub type_id: TypeId,
    pub head: Head,
    pub body: Vec<u8>,
}

impl Sent {
    pub fn message<M: Message + Default>(&self) -> M {
        M::decode(&self.body[..]).expect("the message that was sent")
    }

    /// A reply's result code, after making sure that it answers `request`.
    pub fn result(&self, request: i64) -> i64 {
        assert_eq!((self.head.family, self.head.session), (Family::Response, request), "{self:?}");
        self.head.code
    }
}

impl Provider {
    /// Waits for the next frame.
    pub async fn frame(&mut self) -> Owned {
        let frame = tokio::time::timeout(SOON, self.frames.recv()).await;
        frame.expect("a frame comes soon").expect("the connection lives")
    }

    /// Waits for the next frame, or `None` at the connection's end.
    pub async fn frame_or_end(&mut self) -> Option<Owned> {
        tokio::time::timeout(SOON, self.frames.recv()).await.expect("a frame or the end comes soon")
    }

    /// Waits for the next frame that is no load report.
    pub async fn next(&mut self) -> Owned {
        loop {
            let frame = self.frame().await;
            if frame.meta.kind != link::LOAD {
                return frame;
            }
        }
    }

    /// Waits for a call, decodes it and answers it with success.
    pub async fn call<M: Message + Default>(&mut self, kind: Kind) -> M {
        let frame = self.next().await;
        assert_eq!(frame.meta.kind, kind, "{frame:?}");
        self.link.reply(frame.meta.call, &()).expect("it is connected");
        M::decode(frame.body).expect("the message of its kind")
    }

    pub async fn refuse(&mut self, kind: Kind, code: &Code) {
        let frame = self.next().await;
        assert_eq!(frame.meta.kind, kind, "{frame:?}");
        self.link.refuse(frame.meta.call, code, "the test says so").expect("it is connected");
    }

    /// Waits for the next Send, whatever else comes before it.
    pub async fn next_send(&mut self) -> Owned {
        loop {
            let frame = self.frame().await;
            if frame.meta.kind == link::SEND {
                return frame;
            }
        }
    }

    /// Waits for the next Send.
    pub async fn sent(&mut self) -> Sent {
        let frame = self.next().await;
        assert_eq!(frame.meta.kind, link::SEND, "{frame:?}");
        sent(&frame)
    }

    pub fn open(&self, sid: u64, account: &str, role: Option<u64>) {
        let opened = message::Opened {
            link_sid: sid,
            account: account.to_owned(),
            role,
            client_addr: "203.0.113.7:4000".to_owned(),
            app_version: 1 << 48,
        };
        self.link.push_message(&Meta::notice(link::OPENED), &opened).expect("it is connected");
        self.link.outbox.wake();
    }

    /// A client's request.
    pub fn request<Q: Message, A>(&self, sid: u64, rpc: Rpc<Q, A>, session: i64, request: &Q) {
        self.dispatch(sid, rpc.type_id, Head::request(session), &request.encode_to_vec());
    }

    pub fn notify<Q: Message, A>(&self, sid: u64, rpc: Rpc<Q, A>, notify: &Q) {
        self.dispatch(sid, rpc.type_id, Head::PROTOCOL, &notify.encode_to_vec());
    }

    pub fn dispatch(&self, sid: u64, type_id: TypeId, head: Head, body: &[u8]) {
        let mut payload = Vec::new();
        head.encode(&mut payload);
        payload.extend_from_slice(body);
        let dispatch = Dispatch { link_sid: LinkSid(sid), type_id };
        self.link.notice(link::DISPATCH, &dispatch.encode(), &payload).expect("it is connected");
    }

    pub fn user_state(&self, sid: u64, role: Option<u64>) {
        let state = UserState { link_sid: LinkSid(sid), role: role.map(Role) };
        self.link.notice(link::USER_STATE, &state.encode(), &[]).expect("it is connected");
    }

    pub fn broken(&self, sid: u64, cause: i32) {
        let broken = LinkBroken { link_sid: LinkSid(sid), cause };
        self.link.notice(link::LINK_BROKEN, &broken.encode(), &[]).expect("it is connected");
    }

    /// Waits for the end of the connection.
    pub async fn ended(self) -> Closed {
        tokio::time::timeout(SOON, self.running).await.expect("it ends soon").expect("no panic").0
    }

    /// Stops reading. Nothing may be on its way.
    pub async fn stop_reading(self) -> (Link, OwnedReadHalf) {
        self.pause.cancel();
        (self.link, self.running.await.expect("no panic").1)
    }

    /// Answers the introduction of a provider.
    pub async fn introduce(&mut self) -> (message::Announce, message::Bind, Option<message::Subscribe>) {
        let announce = self.call(link::ANNOUNCE).await;
        let bind = self.call(link::BIND).await;
        let frame = self.frame().await;
        if frame.meta.kind != link::SUBSCRIBE {
            assert_eq!(frame.meta.kind, link::LOAD, "{frame:?}");
            return (announce, bind, None);
        }
        self.link.reply(frame.meta.call, &()).expect("it is connected");
        let subscribe = message::Subscribe::decode(frame.body).expect("the message of its kind");
        assert_eq!(self.frame().await.meta.kind, link::LOAD);
        (announce, bind, Some(subscribe))
    }
}

pub fn sent(frame: &Owned) -> Sent {
    let sids = link::send_sids(&frame.head).expect("sids").collect();
    let Ok(Decoded::Frame(whole)) = frame::decode(&frame.body, frame::PAYLOAD_BYTES_CEILING) else {
        panic!("not a client frame: {frame:?}")
    };
    let (head, body) = payload::decode(whole.payload).expect("a payload");
    Sent { sids, type_id: whole.type_id, head, body: body.to_vec() }
}

/// Where providers find the linkd.
pub struct Gateway {
    listener: tokio::net::TcpListener,
    pub addr: SocketAddr,
    ours: Ours,
}

impl Gateway {
    pub async fn new(name: &str, epoch: u64) -> Self {
        let listener = Tcp.bind(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let node = NodeId::new(name).expect("a plain name");
        let (cluster, role) = ("test".to_owned(), hello::Role::Linkd);
        Self { listener, addr, ours: Ours { cluster, node, role, epoch: Epoch(epoch), worker: 0 } }
    }

    pub fn listed(&self, workers: u16) -> Linkd {
        let address = self.addr.to_string();
        Linkd { node: self.ours.node.clone(), epoch: self.ours.epoch, address, workers }
    }

    /// Waits for a provider's hello.
    pub async fn accept(&self) -> Provider {
        tokio::time::timeout(SOON, self.take()).await.expect("a provider dials soon")
    }

    async fn take(&self) -> Provider {
        let (mut stream, from) = self.listener.accept().await.expect("a connection");
        net::preface::read(&mut stream).await.expect("a preface");
        let peer =
            hello::accept(&mut stream, &hello::Proof::Loopback(from), &self.ours, &[hello::Role::Provider])
                .await;
        self.serve(stream, peer.expect("a hello"))
    }

    fn serve(&self, stream: tokio::net::TcpStream, peer: Peer) -> Provider {
        let (mut read, write) = stream.into_split();
        let link = Link::new(peer, Generation(1), write);
        let (sender, frames) = mpsc::channel(65_536);
        tokio::spawn(net::outbox::drive(link.outbox.clone()));
        let (pause, running) = (CancellationToken::new(), link.clone());
        let paused = pause.clone();
        let running = tokio::spawn(async move {
            let (mut scratch, mut show) = (vec![0; 65_536], Show(sender));
            let closed = tokio::select! {
                closed = net::link::run(&running, &mut read, &mut scratch, &mut show) => closed,
                () = paused.cancelled() => Closed::Silent,
            };
            (closed, read)
        });
        Provider { link, frames, running, pause }
    }
}

/// A provider of `builder`'s modules that knows these linkds, and the list for changing it.
pub async fn start(
    builder: Builder,
    config: Config,
    linkds: Vec<Linkd>,
) -> (Running, watch::Sender<Arc<Vec<Linkd>>>) {
    let (sender, linkds) = watch::channel(Arc::new(linkds));
    let node = NodeId::new("game-1").expect("a plain name");
    let env = Env::new("test", node, Linkds::Fixed { epoch: Epoch(7), linkds });
    let running = builder.start(config, env, Default::default()).await.expect("it starts");
    (running, sender)
}

/// One linkd with one provider, introduced.
pub async fn pair(builder: Builder, config: Config) -> (Running, Gateway, Provider) {
    let gateway = Gateway::new("linkd-1", 3).await;
    let (running, _) = start(builder, config, vec![gateway.listed(1)]).await;
    let mut provider = gateway.accept().await;
    provider.introduce().await;
    running.ready().await;
    (running, gateway, provider)
}

/// A client's request as its linkd forwards it, for a link without a [`Provider`].
pub fn request<Q: Message, A>(link: &Link, sid: u64, rpc: Rpc<Q, A>, session: i64, request: &Q) {
    let mut payload = Vec::new();
    Head::request(session).encode(&mut payload);
    payload.extend_from_slice(&request.encode_to_vec());
    let dispatch = Dispatch { link_sid: LinkSid(sid), type_id: rpc.type_id };
    link.notice(link::DISPATCH, &dispatch.encode(), &payload).expect("it is connected");
}

/// The type id of a push, for comparing.
pub fn type_of<P: Push>() -> TypeId {
    P::TYPE_ID
}

/// Waits until the status says so.
pub async fn until(running: &Running, what: &str, is: impl Fn(&serde_json::Value) -> bool) {
    let waiting = async {
        while !is(&running.status()) {
            // Sleep: the status is a page that operators poll, and so does this.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let said = tokio::time::timeout(SOON, waiting).await;
    assert!(said.is_ok(), "not {what}: {}", running.status());
}
