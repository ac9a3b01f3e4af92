//! The first frame each way between nodes: who is at the other end. The dialling side speaks first.
//!
//! What a hello says must be what the certificate says ([`Proof`]). Without TLS it is only claimed, so such connections
//! are taken from loopback alone.

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

use crate::tls::{Identity, TlsError};

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

    /// The role of this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Role::Linkd, Role::Provider, Role::Arbiter, Role::Directory, Role::Control]
            .into_iter()
            .find(|role| role.as_str() == text)
    }
}

/// What a connection itself says of its other end, before anything is said on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// A certificate of our authority says who it is.
    Certificate(Identity),
    /// Nothing but an address; it is believed when that is loopback.
    Loopback(SocketAddr),
    /// A simulated network, whose nodes are believed.
    Simulated,
}

impl Proof {
    /// Whether `cluster`, `role` and `node` may be said on this connection. A node speaks for itself only.
    pub fn judge(&self, cluster: &str, role: &str, node: &str) -> Result<(), (&'static Code, String)> {
        let said = || format!("cluster {cluster:?}, role {role:?}, node {node:?}");
        match self {
            Proof::Simulated => Ok(()),
            Proof::Loopback(from) if from.ip().to_canonical().is_loopback() => Ok(()),
            Proof::Loopback(from) => {
                Err((&code::NOT_LOOPBACK, format!("node {node:?} came from {from} without TLS")))
            }
            Proof::Certificate(_) if base::planted::is("identity_not_compared") => Ok(()),
            Proof::Certificate(is) if is.role.as_str() != role => {
                Err((&code::ROLE_VIOLATION, format!("{} says, and its certificate is {is}", said())))
            }
            Proof::Certificate(is) if is.cluster != cluster || is.node.as_str() != node => {
                Err((&code::IDENTITY_MISMATCH, format!("{} says, and its certificate is {is}", said())))
            }
            Proof::Certificate(_) => Ok(()),
        }
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
    Io(io::Error),
    #[error(transparent)]
    Tls(TlsError),
    #[error("no hello came within {HELLO_TIMEOUT:?}")]
    Timeout,
    #[error("the first frame is no hello")]
    NotHello,
    #[error("refused by us: {}: {text}", .code.name)]
    Refused { code: &'static Code, text: String },
    #[error("refused by the peer with code {}: {}", .0.code, .0.text)]
    RefusedByPeer(Refusal),
}

impl From<io::Error> for HelloError {
    /// In TLS 1.3 the dialling side hears first here that its certificate was refused.
    fn from(error: io::Error) -> Self {
        TlsError::find(&error).map_or(Self::Io(error), Self::Tls)
    }
}

impl HelloError {
    /// The value of a counter's label.
    pub fn label(&self) -> &'static str {
        match self {
            HelloError::Io(_) => "broken",
            HelloError::Tls(error) => error.cause.label(),
            HelloError::Timeout => "hello_timeout",
            HelloError::NotHello => "not_hello",
            HelloError::Refused { code, .. } => code.name,
            HelloError::RefusedByPeer(_) => "refused_by_peer",
        }
    }
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

    /// Judges a peer's hello: what its connection proves, same cluster, a role this port takes, a version at most one
    /// away.
    fn judge(&self, hello: Hello, proof: &Proof, roles: &[Role]) -> Result<Peer, HelloError> {
        proof
            .judge(&hello.cluster, &hello.role, &hello.node)
            .map_err(|(code, text)| HelloError::Refused { code, text })?;
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
pub async fn accept<S>(stream: &mut S, proof: &Proof, ours: &Ours, roles: &[Role]) -> Result<Peer, HelloError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    accept_if(stream, proof, ours, roles, |_| Ok(())).await
}

/// As [`accept`], with a last word of the caller's before the peer is told that it is welcome: `Err` says why not.
pub async fn accept_if<S>(
    stream: &mut S,
    proof: &Proof,
    ours: &Ours,
    roles: &[Role],
    welcome: impl FnOnce(&Peer) -> Result<(), String>,
) -> Result<Peer, HelloError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let judged = read(stream).await.and_then(|hello| ours.judge(hello, proof, roles)).and_then(|peer| {
        let refused = |text| HelloError::Refused { code: &code::BAD_HELLO, text };
        welcome(&peer).map(|()| peer).map_err(refused)
    });
    if let Err(HelloError::Refused { code, text }) = &judged {
        let refusal = Refusal { code: code.number, text: text.clone(), retry_after_ms: 0 };
        send(stream, Kind::GOODBYE, &refusal).await?;
        stream.shutdown().await?;
    }
    let peer = judged?;
    send(stream, Kind::HELLO, &ours.message()).await?;
    Ok(peer)
}

/// The dialling side. `proof` is the accepting side's.
pub async fn offer<S>(stream: &mut S, proof: &Proof, ours: &Ours, roles: &[Role]) -> Result<Peer, HelloError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    send(stream, Kind::HELLO, &ours.message()).await?;
    ours.judge(read(stream).await?, proof, roles)
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), kind: Kind, message: &impl Message) -> io::Result<()> {
    let mut out = BytesMut::new();
    node::encode_message(&mut out, &Meta::notice(kind), message);
    stream.write_all(&out).await?;
    // TLS keeps back what is not flushed.
    stream.flush().await
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
        let (from, to) = (from.parse().unwrap(), "127.0.0.1:7712".parse().unwrap());
        meet_with(a, b, (Proof::Loopback(to), Proof::Loopback(from)), &mut near, &mut far).await
    }

    /// `proofs`: what is known of `b`, and what is known of `a`.
    async fn meet_with<S: AsyncRead + AsyncWrite + Unpin>(
        a: Ours,
        b: Ours,
        proofs: (Proof, Proof),
        near: &mut S,
        far: &mut S,
    ) -> (Result<Peer, HelloError>, Result<Peer, HelloError>) {
        tokio::join!(
            offer(near, &proofs.0, &a, &[Role::Linkd]),
            accept(far, &proofs.1, &b, &[Role::Provider])
        )
    }

    /// Holds: D92.
    #[tokio::test]
    async fn a_node_speaks_only_for_itself() {
        let identity = |cluster: &str, role, node: &str| {
            let node = NodeId::new(node).unwrap();
            Proof::Certificate(Identity { cluster: cluster.into(), role, node })
        };
        let linkd = || identity("dev", Role::Linkd, "linkd-1");
        let game = || identity("dev", Role::Provider, "game-1");
        let cases = [
            (linkd(), game(), None),
            (linkd(), identity("dev", Role::Provider, "game-2"), Some(&code::IDENTITY_MISMATCH)),
            (linkd(), identity("live", Role::Provider, "game-1"), Some(&code::IDENTITY_MISMATCH)),
            (linkd(), identity("dev", Role::Arbiter, "game-1"), Some(&code::ROLE_VIOLATION)),
        ];
        for (of_b, of_a, expected) in cases {
            let (mut near, mut far) = tokio::io::duplex(4096);
            let (a, b) = (ours("game-1", Role::Provider), ours("linkd-1", Role::Linkd));
            let (_, accepted) = meet_with(a, b, (of_b, of_a.clone()), &mut near, &mut far).await;
            match (accepted, expected) {
                (Ok(_), None) => {}
                (Err(HelloError::Refused { code, .. }), Some(expected)) => assert_eq!(code, expected),
                other => panic!("{of_a:?}: {other:?}"),
            }
        }
        // The dialling side judges too: another linkd answers in linkd-1's place.
        let (mut near, mut far) = tokio::io::duplex(4096);
        let (a, b) = (ours("game-1", Role::Provider), ours("linkd-1", Role::Linkd));
        let other = identity("dev", Role::Linkd, "linkd-2");
        let (offered, _) = meet_with(a, b, (other, game()), &mut near, &mut far).await;
        assert!(
            matches!(&offered, Err(HelloError::Refused { code, .. }) if *code == &code::IDENTITY_MISMATCH),
            "{offered:?}"
        );
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
        let from = Proof::Loopback("127.0.0.1:9".parse().unwrap());
        let met = accept(&mut far, &from, &ours("linkd-1", Role::Linkd), &[Role::Provider]).await;
        assert!(matches!(met, Err(HelloError::NotHello)), "{met:?}");
    }
}
