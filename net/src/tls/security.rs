//! How a node proves itself to other nodes and asks them to: certificates, or loopback alone.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Cause, ClientTls, Identity, Material, MaterialError, Secured, ServerTls, TlsError};
use crate::hello::Proof;

/// How long a handshake between nodes may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// One node's way to talk to others. A clone is the same.
#[derive(Debug, Clone)]
pub enum Security {
    /// In clear; whoever calls is believed, so both ends are on loopback.
    Insecure,
    Tls(NodeTls),
    /// In clear, and whoever calls is believed wherever it is: for simulated networks, whose addresses are no loopback.
    /// No configuration leads here.
    Simulated,
}

/// A node's certificates, at both ends. A clone is the same: replaced ones hold for the next handshake of all.
#[derive(Debug, Clone)]
pub struct NodeTls(Arc<ArcSwap<Ends>>);

#[derive(Debug)]
struct Ends {
    server: ServerTls,
    client: ClientTls,
    identity: Identity,
}

impl NodeTls {
    pub fn new(material: &Material) -> Result<Self, MaterialError> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(Ends::new(material)?))))
    }

    /// The next handshakes use these; connections that live go on. A certificate of another identity is refused, and
    /// then as with every other error the ones before stay.
    pub fn replace(&self, material: &Material) -> Result<(), MaterialError> {
        let (ends, now) = (Ends::new(material)?, self.identity());
        if ends.identity != now {
            let why = format!("the certificate is {}, and this node is {now}", ends.identity);
            return Err(MaterialError::Identity(why));
        }
        self.0.store(Arc::new(ends));
        Ok(())
    }

    /// Who this node is.
    pub fn identity(&self) -> Identity {
        self.0.load().identity.clone()
    }
}

impl Ends {
    fn new(material: &Material) -> Result<Self, MaterialError> {
        let (server, client) = (ServerTls::nodes(material)?, ClientTls::node(material)?);
        Ok(Self { server, client, identity: material.identity()? })
    }
}

impl Security {
    /// The accepting side: the stream to go on with, and what it proves of the other end.
    pub async fn accept<S>(
        &self,
        stream: S,
        from: SocketAddr,
        deadline: Duration,
    ) -> Result<(Secured<S>, Proof), TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let tls = match self {
            Security::Insecure => return Ok((Secured::Plain(stream), Proof::Loopback(from))),
            Security::Simulated => return Ok((Secured::Plain(stream), Proof::Simulated)),
            Security::Tls(tls) => tls,
        };
        let server = tls.0.load().server.clone();
        let secured = server.accept(stream, deadline).await?;
        match secured.identity() {
            Err(error)
                if error.cause == Cause::NoCertificate && base::planted::is("certificate_not_required") =>
            {
                Ok((secured, Proof::Loopback(from)))
            }
            identity => Ok((secured, Proof::Certificate(identity?))),
        }
    }

    /// The dialling side, on a stream to `addr` (`host:port`).
    pub async fn dial<S>(
        &self,
        stream: S,
        addr: &str,
        deadline: Duration,
    ) -> Result<(Secured<S>, Proof), TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.may_dial(addr)?;
        let tls = match self {
            Security::Insecure => {
                let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
                return Ok((Secured::Plain(stream), Proof::Loopback(loopback)));
            }
            Security::Simulated => return Ok((Secured::Plain(stream), Proof::Simulated)),
            Security::Tls(tls) => tls,
        };
        let client = tls.0.load().client.clone();
        let secured = client.connect(stream, deadline).await?;
        let identity = secured.identity()?;
        Ok((secured, Proof::Certificate(identity)))
    }

    /// Whether a node may dial `addr`: without certificates only what is loopback by its very name. To be asked before
    /// the dial.
    pub fn may_dial(&self, addr: &str) -> Result<(), TlsError> {
        match self {
            Security::Insecure if !is_loopback(addr) => Err(TlsError::new(
                Cause::NoCertificate,
                format!("{addr} is beyond loopback and node.insecure is true; give this node certificates"),
            )),
            _ => Ok(()),
        }
    }

    /// Whether a node may take others on `addr`.
    pub fn may_listen(&self, addr: SocketAddr) -> bool {
        !matches!(self, Security::Insecure) || addr.ip().to_canonical().is_loopback()
    }

    pub fn is_tls(&self) -> bool {
        matches!(self, Security::Tls(_))
    }
}

/// Whether `host:port` is this machine by its very name: `localhost` or an address of loopback. Nothing is looked up.
pub fn is_loopback(addr: &str) -> bool {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}
