//! A network whose far ends the test holds, and a server that says what the test tells it to.

use std::io;
use std::net::SocketAddr;

use base::{ModuleId, ProtocolId, TypeId};
use bytes::{Buf, Bytes, BytesMut};
use client::{Client, Options};
use net::NetIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use wire::auth::{AUTH, Auth};
use wire::code::Code;
use wire::frame::{self, Decoded};
use wire::payload::{self, Family, Head};
use wire::{Rpc, handshake, report};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Text {
    #[prost(string, tag = "1")]
    pub text: String,
}

impl wire::Push for Text {
    const TYPE_ID: TypeId = TypeId::new(ModuleId(2), ProtocolId(-9));
    const NAME: &'static str = "Rooms.Said";
}

pub const SAY: Rpc<Text, Text> = Rpc::new(2, 1, "Rooms.say");
pub const WAVE: Rpc<Text, ()> = Rpc::new(2, 2, "Rooms.wave");

pub fn text(text: &str) -> Text {
    Text { text: text.into() }
}

/// Dials lead to the test. An address that begins with "down" refuses, one with "mute" never answers the dial.
#[derive(Debug, Clone)]
pub struct Double {
    dialled: mpsc::Sender<Server>,
    pipe_bytes: usize,
}

/// Where the far ends of dials come out. At most 2,048 wait: dials beyond that wait too.
pub type Dials = mpsc::Receiver<Server>;

pub fn network(pipe_bytes: usize) -> (Double, Dials) {
    let (dialled, dials) = mpsc::channel(2048);
    (Double { dialled, pipe_bytes }, dials)
}

impl NetIo for Double {
    type Stream = DuplexStream;
    type Listener = ();
    type Detached = DuplexStream;

    async fn bind(&self, _: SocketAddr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn local_addr(&self, (): &()) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn accept(&self, (): &()) -> io::Result<(DuplexStream, SocketAddr)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn connect(&self, addr: &str) -> io::Result<DuplexStream> {
        if addr.starts_with("down") {
            return Err(io::Error::other("nobody listens"));
        }
        if addr.starts_with("mute") {
            std::future::pending::<()>().await;
        }
        let (near, far) = tokio::io::duplex(self.pipe_bytes);
        let server = Server { addr: addr.into(), stream: far, buf: BytesMut::new() };
        self.dialled.send(server).await.map_err(|_| io::Error::other("the test is over"))?;
        Ok(near)
    }

    fn detach(&self, stream: DuplexStream) -> io::Result<DuplexStream> {
        Ok(stream)
    }

    fn attach(&self, stream: DuplexStream) -> io::Result<DuplexStream> {
        Ok(stream)
    }
}

/// A server behind a port of this machine that takes one connection, and its address.
pub async fn listening() -> (String, impl Future<Output = Server>) {
    let listener = net::Tcp.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = net::Tcp.local_addr(&listener).unwrap().to_string();
    let accept = async move {
        let (mut socket, from) = net::Tcp.accept(&listener).await.unwrap();
        let (stream, mut pipe) = tokio::io::duplex(4096);
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut socket, &mut pipe).await });
        Server { addr: from.to_string(), stream, buf: BytesMut::new() }
    };
    (addr, accept)
}

/// The far end of one connection.
#[derive(Debug)]
pub struct Server {
    pub addr: String,
    stream: DuplexStream,
    buf: BytesMut,
}

/// What a client sent.
#[derive(Debug, PartialEq)]
pub struct Received {
    pub type_id: TypeId,
    pub head: Head,
    pub body: Bytes,
}

impl Server {
    pub async fn send(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let mut out = BytesMut::new();
        write(&mut out);
        self.stream.write_all(&out).await.unwrap();
    }

    /// The next frame; `None` when the client has closed.
    pub async fn next(&mut self) -> Option<Received> {
        loop {
            if let Decoded::Frame(frame) = frame::decode(&self.buf, frame::PAYLOAD_BYTES_DEFAULT).unwrap() {
                let (head, body) = payload::decode(frame.payload).unwrap();
                let received = Received { type_id: frame.type_id, head, body: Bytes::copy_from_slice(body) };
                let used = frame.whole.len();
                self.buf.advance(used);
                return Some(received);
            }
            if self.stream.read_buf(&mut self.buf).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    pub async fn greet(&mut self) {
        self.send(handshake::server_hello).await;
    }

    /// Greets and takes the login up to its answer. Returns its session id and account.
    pub async fn auth(&mut self) -> (i64, String) {
        self.greet().await;
        assert_eq!(self.next().await.unwrap().type_id, handshake::CHANDSHAKE_DONE);
        let auth = self.next().await.unwrap();
        assert_eq!((auth.type_id, auth.head.family), (AUTH, Family::Request));
        let account = Auth::decode(&auth.body).unwrap().account.to_vec();
        (auth.head.session, String::from_utf8(account).unwrap())
    }

    /// Lets the client in. Returns its account.
    pub async fn admit(&mut self) -> String {
        let (session, account) = self.auth().await;
        self.send(|out| payload::encode_refusal(out, AUTH, session, 0)).await;
        account
    }

    /// The next request, which must be `SAY`.
    pub async fn said(&mut self) -> (i64, Text) {
        let received = self.next().await.unwrap();
        assert_eq!((received.type_id, received.head.family), (SAY.type_id, Family::Request));
        (received.head.session, prost::Message::decode(received.body).unwrap())
    }

    pub async fn answer(&mut self, session: i64, reply: &str) {
        let body = prost::Message::encode_to_vec(&text(reply));
        let head = Head::response(session, 0);
        self.send(|out| payload::encode_frame(out, SAY.type_id, head, |out| out.extend_from_slice(&body)))
            .await;
    }

    pub async fn refuse(&mut self, session: i64, result: i64) {
        self.send(|out| payload::encode_refusal(out, SAY.type_id, session, result)).await;
    }

    pub async fn push(&mut self, said: &str) {
        self.send(|out| push(out, said)).await;
    }

    pub async fn report(&mut self, code: &Code) {
        self.send(|out| report::encode(out, report::From::Link, code.number, code.name)).await;
    }
}

pub fn push(out: &mut BytesMut, said: &str) {
    let body = prost::Message::encode_to_vec(&text(said));
    let type_id = <Text as wire::Push>::TYPE_ID;
    payload::encode_frame(out, type_id, Head::PROTOCOL, |out| out.extend_from_slice(&body));
}

/// A client that is let in, and its server.
pub async fn connected(options: Options) -> (Client, Server) {
    let (net, mut dials) = network(64 * 1024);
    let server = async {
        let mut server = dials.recv().await.unwrap();
        server.admit().await;
        server
    };
    let (client, server) = tokio::join!(Client::connect_over(net, options), server);
    (client.unwrap(), server)
}

pub fn alice() -> Options {
    Options::new("linkd-1:7710", "alice")
}
