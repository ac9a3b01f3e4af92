//! The two ends of a handshake. Their settings stand behind an `ArcSwap`: replaced ones hold for the next handshake,
//! and no connection that lives notices.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, ConfigBuilder, ServerConfig, WantsVerifier};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::material::{self, Material, MaterialError};
use super::{Cause, NODE_NAME, Secured, TlsError};

/// The accepting end. A clone is the same end: replacing the settings of one replaces those of all.
#[derive(Clone)]
pub struct ServerTls(Arc<ArcSwap<ServerConfig>>);

/// The dialling end. A clone is the same end.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ArcSwap<ClientConfig>>,
    name: ServerName<'static>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls(***)")
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ServerTls {
    /// A players' port: TLS 1.3, no client certificates, no early data.
    pub fn players(material: &Material) -> Result<Self, MaterialError> {
        Ok(Self(Arc::new(ArcSwap::new(players(material)?))))
    }

    /// New handshakes of a players' port use these. On an error the ones before stay.
    pub fn replace_players(&self, material: &Material) -> Result<(), MaterialError> {
        self.0.store(players(material)?);
        Ok(())
    }

    pub(super) fn nodes(material: &Material) -> Result<Self, MaterialError> {
        Ok(Self(Arc::new(ArcSwap::new(nodes(material)?))))
    }

    /// Shakes hands within `deadline`. Whoever fails gets the TLS alert that says why.
    pub async fn accept<S>(&self, stream: S, deadline: Duration) -> Result<Secured<S>, TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(self.0.load_full());
        let shaken = within(deadline, acceptor.accept(stream)).await?;
        Ok(Secured::Tls(Box::new(shaken.into())))
    }
}

impl ClientTls {
    /// A player's end: `roots` is PEM text with the authorities to believe, `name` the server's DNS name or address as
    /// its certificate carries it.
    pub fn player(roots: &[u8], name: &str) -> Result<Self, MaterialError> {
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| MaterialError::Identity(format!("{name:?} is neither a DNS name nor an address")))?;
        let config = builder(ClientConfig::builder_with_provider(provider()))?
            .with_root_certificates(material::roots(roots)?)
            .with_no_client_auth();
        Ok(Self { config: Arc::new(ArcSwap::from_pointee(config)), name })
    }

    pub(super) fn node(material: &Material) -> Result<Self, MaterialError> {
        let config = builder(ClientConfig::builder_with_provider(provider()))?
            .with_root_certificates(material.roots.clone())
            .with_client_auth_cert(material.chain.clone(), material.key.clone_key())
            .map_err(unusable)?;
        let name = ServerName::try_from(NODE_NAME).map_err(unusable)?;
        Ok(Self { config: Arc::new(ArcSwap::from_pointee(config)), name })
    }

    /// Shakes hands within `deadline`.
    pub async fn connect<S>(&self, stream: S, deadline: Duration) -> Result<Secured<S>, TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let connector = TlsConnector::from(self.config.load_full());
        let shaken = within(deadline, connector.connect(self.name.clone(), stream)).await?;
        Ok(Secured::Tls(Box::new(shaken.into())))
    }
}

async fn within<T>(
    deadline: Duration,
    shaking: impl Future<Output = std::io::Result<T>>,
) -> Result<T, TlsError> {
    match tokio::time::timeout(deadline, shaking).await {
        Ok(shaken) => shaken.map_err(TlsError::from),
        Err(_) => Err(TlsError::new(Cause::Deadline, format!("no handshake within {deadline:?}"))),
    }
}

fn players(material: &Material) -> Result<Arc<ServerConfig>, MaterialError> {
    let config = builder(ServerConfig::builder_with_provider(provider()))?
        .with_no_client_auth()
        .with_single_cert(material.chain.clone(), material.key.clone_key());
    Ok(lean(config.map_err(unusable)?))
}

fn nodes(material: &Material) -> Result<Arc<ServerConfig>, MaterialError> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(material.roots.clone()), provider());
    let verifier = if base::planted::is("certificate_not_required") {
        verifier.allow_unauthenticated().build()
    } else {
        verifier.build()
    };
    let config = builder(ServerConfig::builder_with_provider(provider()))?
        .with_client_cert_verifier(verifier.map_err(unusable)?)
        .with_single_cert(material.chain.clone(), material.key.clone_key());
    Ok(lean(config.map_err(unusable)?))
}

/// Without resumption: nothing is kept per client, and each connection is judged by the certificates of its own moment.
fn lean(mut config: ServerConfig) -> Arc<ServerConfig> {
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

fn builder<Side: rustls::ConfigSide>(
    builder: ConfigBuilder<Side, rustls::WantsVersions>,
) -> Result<ConfigBuilder<Side, WantsVerifier>, MaterialError> {
    builder.with_protocol_versions(&[&TLS13]).map_err(unusable)
}

fn unusable(error: impl fmt::Display) -> MaterialError {
    MaterialError::Unusable(error.to_string())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
