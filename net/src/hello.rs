//! The first frame each way between nodes: who is at the other end. The dialling side speaks first.
//!
//! Without TLS the identity is only claimed, so such connections are taken from loopback alone.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use base::{Epoch, NodeId};
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wire::code::{self, Code};
use wire::hello::{Hello, Refusal};
use wire::node::{self, Kind, Meta};

/// How long each side waits for the other's hello.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// No hello is larger.
const HELLO_BYTES_MAX: usize = 4 * 1024;

/// What a node does in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Linkd,
    Provider,
    Arbiter,
    Directory,
    Control,
}

impl Role {
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Linkd => "linkd",
            Role::Provider => "provider",
            Role::Arbiter => "arbiter",
            Role::Directory => "directory",
            Role::Control => "control",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Role::Linkd, Role::Provider, Role::Arbiter, Role::Directory, Role::Control]
            .into_iter()
            .find(|role| role.as_str() == text)
    }
}

/// The node at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub node: NodeId,
    pub role: Role,
    pub epoch: Epoch,
    pub features: u64,
    /// For a provider at a linkd: the worker it wants.
    pub worker: u32,
}

/// How we introduce ourselves.
#[derive(Debug, Clone)]
pub struct Ours {
    pub cluster: String,
    pub node: NodeId,
    pub role: Role,
    pub epoch: Epoch,
    pub worker: u32,
}

/// Why no connection came of it.
#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    #[error("the connection broke during hello: {0}")]
    Io(#[from] io::Error),
    #[error("no hello came within {HELLO_TIMEOUT:?}")]
    Timeout,
    #[error("the first frame is no hello")]
    NotHello,
    #[error("refused by us: {}: {text}", .code.name)]
    Refused { code: &'static Code, text: String },
    #[error("refused by the peer with code {}: {}", .0.code, .0.text)]
    RefusedByPeer(Refusal),
}

impl Ours {
    fn message(&self) -> Hello {
        Hello {
            cluster: self.cluster.clone(),
            node: self.node.to_string(),
            role: self.role.as_str().into(),
            epoch: self.epoch.0,
            proto: node::PROTO,
            features: 0,
            worker: self.worker,
        }
    }

    /// Judges a peer's hello: same cluster, a role this port takes, a version at most one away.
    fn judge(&self, hello: Hello, roles: &[Role]) -> Result<Peer, HelloError> {
        let refuse = |text: String| Err(HelloError::Refused { code: &code::BAD_HELLO, text });
        if hello.cluster != self.cluster {
            return refuse(format!("cluster {:?} is not ours, {:?}", hello.cluster, self.cluster));
        }
        if hello.proto.abs_diff(node::PROTO) > 1 || hello.proto == 0 {
            return refuse(format!("wire version {} is too far from ours, {}", hello.proto, node::PROTO));
        }
        let Some(role) = Role::parse(&hello.role).filter(|role| roles.contains(role)) else {
            let text = format!("role {:?} does not belong on this port", hello.role);
            return Err(HelloError::Refused { code: &code::ROLE_VIOLATION, text });
        };
        let node = match NodeId::new(&hello.node) {
            Ok(node) => node,
            Err(error) => return refuse(error.to_string()),
        };
        if hello.epoch == 0 {
            return refuse(format!("node {node} has no epoch yet"));
        }
        let (epoch, features) = (Epoch(hello.epoch), hello.features);
        Ok(Peer { node, role, epoch, features, worker: hello.worker })
    }
}

/// The accepting side: reads the peer's hello and answers with ours, or with a goodbye that says why not.
pub async fn accept<S>(
    stream: &mut S,
    from: SocketAddr,
    ours: &Ours,
    roles: &[Role],
) -> Result<Peer, HelloError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let judged = match read(stream).await {
        Ok(hello) if from.ip().to_canonical().is_loopback() => ours.judge(hello, roles),
        Ok(hello) => {
            let text = format!("node {:?} came from {from} without TLS", hello.node);
            Err(HelloError::Refused { code: &code::NOT_LOOPBACK, text })
        }
        Err(error) => Err(error),
    };
    if let Err(HelloError::Refused { code, text }) = &judged {
        let refusal = Refusal { code: code.number, text: text.clone(), retry_after_ms: 0 };
        send(stream, Kind::GOODBYE, &refusal).await?;
        stream.shutdown().await?;
    }
    let peer = judged?;
    send(stream, Kind::HELLO, &ours.message()).await?;
    Ok(peer)
}

/// The dialling side.
pub async fn offer<S>(stream: &mut S, ours: &Ours, roles: &[Role]) -> Result<Peer, HelloError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    send(stream, Kind::HELLO, &ours.message()).await?;
    ours.judge(read(stream).await?, roles)
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), kind: Kind, message: &impl Message) -> io::Result<()> {
    let mut out = BytesMut::new();
    node::encode_message(&mut out, &Meta::notice(kind), message);
    stream.write_all(&out).await
}

/// Reads exactly one frame, so that nothing behind it is swallowed.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Hello, HelloError> {
    let frame = async {
        let mut buf = vec![0; node::HEADER_BYTES];
        stream.read_exact(&mut buf).await?;
        loop {
            let (have, need) = match node::decode(&buf, HELLO_BYTES_MAX).map_err(|_| HelloError::NotHello)? {
                node::Decoded::Incomplete { need } => (buf.len(), need),
                node::Decoded::Frame(frame) => return decode(frame),
            };
            buf.resize(need, 0);
            stream.read_exact(&mut buf[have..]).await?;
        }
    };
    tokio::time::timeout(HELLO_TIMEOUT, frame).await.map_err(|_| HelloError::Timeout)?
}

fn decode(frame: node::Frame<'_>) -> Result<Hello, HelloError> {
    match frame.meta.kind {
        Kind::HELLO => Hello::decode(frame.body).map_err(|_| HelloError::NotHello),
        Kind::GOODBYE => {
            let refusal = Refusal::decode(frame.body).map_err(|_| HelloError::NotHello)?;
            Err(HelloError::RefusedByPeer(refusal))
        }
        _ => Err(HelloError::NotHello),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(node: &str, role: Role) -> Ours {
        let node = NodeId::new(node).unwrap();
        Ours { cluster: "dev".into(), node, role, epoch: Epoch(7), worker: 0 }
    }

    async fn meet(a: Ours, b: Ours, from: &str) -> (Result<Peer, HelloError>, Result<Peer, HelloError>) {
        let (mut near, mut far) = tokio::io::duplex(4096);
        let from = from.parse().unwrap();
        tokio::join!(async { offer(&mut near, &a, &[Role::Linkd]).await }, async {
            accept(&mut far, from, &b, &[Role::Provider]).await
        },)
    }

    #[tokio::test]
    async fn two_nodes_learn_who_they_are() {
        let (a, b) = meet(ours("game-1", Role::Provider), ours("linkd-1", Role::Linkd), "127.0.0.1:9").await;
        assert_eq!(a.unwrap().node.as_str(), "linkd-1");
        let peer = b.unwrap();
        assert_eq!((peer.node.as_str(), peer.role, peer.epoch), ("game-1", Role::Provider, Epoch(7)));
    }

    /// Holds: BI-052.
    #[tokio::test]
    async fn strangers_are_told_why_not() {
        let refused = |answer: Result<Peer, HelloError>| match answer {
            Err(HelloError::RefusedByPeer(refusal)) => refusal.code,
            other => panic!("{other:?}"),
        };
        let (a, _) = meet(ours("gcm-1", Role::Arbiter), ours("linkd-1", Role::Linkd), "127.0.0.1:9").await;
        assert_eq!(refused(a), code::ROLE_VIOLATION.number);
        let (a, _) = meet(ours("game-1", Role::Provider), ours("linkd-1", Role::Linkd), "10.1.2.3:9").await;
        assert_eq!(refused(a), code::NOT_LOOPBACK.number);
        let other = Ours { cluster: "live".into(), ..ours("game-1", Role::Provider) };
        let (a, _) = meet(other, ours("linkd-1", Role::Linkd), "127.0.0.1:9").await;
        assert_eq!(refused(a), code::BAD_HELLO.number);
        let newborn = Ours { epoch: Epoch::NONE, ..ours("game-1", Role::Provider) };
        let (a, _) = meet(newborn, ours("linkd-1", Role::Linkd), "127.0.0.1:9").await;
        assert_eq!(refused(a), code::BAD_HELLO.number);
    }

    #[tokio::test]
    async fn a_web_browser_is_no_peer() {
        let (mut near, mut far) = tokio::io::duplex(4096);
        near.write_all(b"GET / HTTP/1.1\r\nHost: linkd\r\n\r\n").await.unwrap();
        let from = "127.0.0.1:9".parse().unwrap();
        let met = accept(&mut far, from, &ours("linkd-1", Role::Linkd), &[Role::Provider]).await;
        assert!(matches!(met, Err(HelloError::NotHello)), "{met:?}");
    }
}
