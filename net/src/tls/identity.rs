//! Who a node is, as its certificate says it: the URI `linkstead://CLUSTER/ROLE/NODE` among its subject alternative names.

use std::fmt;

use base::NodeId;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::hello::Role;

/// What identity URIs begin with.
pub const SCHEME: &str = "linkstead://";
/// The DNS name that every node's certificate carries too, so that the usual checks of a server's name hold.
pub const NODE_NAME: &str = "node.linkstead";
/// What follows the cluster's name in an authority's URI: no node has such a role.
pub const AUTHORITY: &str = "/authority";

/// One node of one cluster in one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub cluster: String,
    pub role: Role,
    pub node: NodeId,
}

impl Identity {
    /// Refuses a cluster's name that a certificate can't carry: 1 to 128 letters, digits, '.', '_' and '-'.
    pub fn new(cluster: &str, role: Role, node: NodeId) -> Result<Self, String> {
        NodeId::new(cluster)
            .map_err(|error| error.to_string().replace("the node id", "the cluster's name"))?;
        Ok(Self { cluster: cluster.to_owned(), role, node })
    }

    /// Reads `linkstead://CLUSTER/ROLE/NODE`.
    pub fn parse(uri: &str) -> Result<Self, String> {
        let bad = || format!("{uri:?} is not {SCHEME}CLUSTER/ROLE/NODE");
        let mut parts = uri.strip_prefix(SCHEME).ok_or_else(bad)?.split('/');
        let (Some(cluster), Some(role), Some(node), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        let role = Role::parse(role).ok_or_else(|| format!("{uri:?} names no role: {role:?}"))?;
        let node = NodeId::new(node).map_err(|error| format!("{uri:?}: {error}"))?;
        Self::new(cluster, role, node).map_err(|error| format!("{uri:?}: {error}"))
    }

    /// The one identity in a certificate; none or several are refused.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        Self::parse(&uri(certificate)?)
    }

    /// The cluster that an authority made by `linkstead cert init` is of.
    pub fn cluster_of_authority(pem: &[u8]) -> Result<String, String> {
        let unread = |_| "there is no certificate in it".to_owned();
        let uri = uri(&CertificateDer::from_pem_slice(pem).map_err(unread)?)?;
        let cluster = uri.strip_prefix(SCHEME).and_then(|rest| rest.strip_suffix(AUTHORITY));
        cluster.map(str::to_owned).ok_or_else(|| format!("{uri:?} is not {SCHEME}CLUSTER{AUTHORITY}"))
    }
}

/// The one URI of ours among a certificate's names.
fn uri(certificate: &CertificateDer<'_>) -> Result<String, String> {
    let parsed = X509Certificate::from_der(certificate);
    let (_, parsed) = parsed.map_err(|_| "the certificate can't be read".to_owned())?;
    let names = parsed.subject_alternative_name();
    let names = names.map_err(|_| "the certificate's names can't be read".to_owned())?;
    let names = names.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
    let mut uris = names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) if uri.starts_with(SCHEME) => Some(*uri),
        _ => None,
    });
    match (uris.next(), uris.next()) {
        (Some(uri), None) => Ok(uri.to_owned()),
        (None, _) => Err(format!("the certificate carries no {SCHEME}CLUSTER/ROLE/NODE")),
        (Some(one), Some(other)) => Err(format!("the certificate says both {one:?} and {other:?}")),
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}/{}", self.cluster, self.role.as_str(), self.node)
    }
}
