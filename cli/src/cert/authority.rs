//! A small certificate authority: a key that signs, and certificates that say which node is which. In memory; the files
//! are its neighbour's.

use std::time::Duration;

use anyhow::{Context, Result};
use base::NodeId;
use net::hello::Role;
use net::tls::{AUTHORITY, Identity, Material, NODE_NAME, NodeTls, SCHEME, Security};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// How long an authority holds.
const AUTHORITY_DAYS: u32 = 3_650;
/// New certificates hold from a little before now, for clocks that are behind.
const BACK: Duration = Duration::from_secs(300);
const DAY: Duration = Duration::from_secs(86_400);

/// Signs certificates for the nodes of one cluster.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub cluster: String,
    /// The certificate that everybody may see.
    pub pem: String,
}

/// A certificate and its key, PEM text.
pub struct Issued {
    pub cert: String,
    pub key: String,
}

impl Authority {
    /// A new one, whose key is not written anywhere.
    pub fn new(cluster: &str) -> Result<(Self, String)> {
        NodeId::new(cluster).ok().with_context(|| {
            format!("the cluster's name {cluster:?} can't stand in certificates: use letters, digits, '.', '_', '-'")
        })?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("linkstead authority of {cluster}"));
        let uri = format!("{SCHEME}{cluster}{AUTHORITY}");
        params.subject_alt_names.push(SanType::URI(uri.as_str().try_into()?));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        lasts(&mut params, AUTHORITY_DAYS);
        let key = KeyPair::generate()?;
        let (pem, secret) = (params.self_signed(&key)?.pem(), key.serialize_pem());
        let issuer = Issuer::new(params, key);
        Ok((Self { issuer, cluster: cluster.to_owned(), pem }, secret))
    }

    /// One that was made before.
    pub fn read(pem: &str, key: &str) -> Result<Self> {
        let cluster = Identity::cluster_of_authority(pem.as_bytes()).map_err(anyhow::Error::msg)?;
        // The error of a key that can't be read is not shown: it could quote it.
        let key = KeyPair::from_pem(key).ok().context("the authority's key can't be read")?;
        let issuer = Issuer::from_ca_cert_pem(pem, key)?;
        Ok(Self { issuer, cluster, pem: pem.to_owned() })
    }

    /// A certificate for one node, with further DNS names or addresses for players to check.
    pub fn issue(&self, role: Role, node: &NodeId, names: &[String], days: u32) -> Result<Issued> {
        let identity = Identity::new(&self.cluster, role, node.clone()).map_err(anyhow::Error::msg)?;
        self.sign(&identity, names, |params| lasts(params, days))
    }

    /// A certificate that says `identity`, changed as the caller likes.
    pub fn sign(
        &self,
        identity: &Identity,
        names: &[String],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Result<Issued> {
        let mut params = CertificateParams::new([&[NODE_NAME.to_owned()], names].concat())?;
        params.subject_alt_names.push(SanType::URI(identity.to_string().as_str().try_into()?));
        params.distinguished_name.push(DnType::CommonName, identity.node.as_str());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Each node dials and is dialled.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        change(&mut params);
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &self.issuer)?;
        Ok(Issued { cert: cert.pem(), key: key.serialize_pem() })
    }

    /// A node of this process, whose key is never written.
    pub fn security(&self, role: Role, node: &NodeId) -> Result<Security> {
        let issued = self.issue(role, node, &[], 365)?;
        let material = Material::node(self.pem.as_bytes(), issued.cert.as_bytes(), issued.key.as_bytes())?;
        Ok(Security::Tls(NodeTls::new(&material)?))
    }
}

fn lasts(params: &mut CertificateParams, days: u32) {
    let now = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_micros(node::clock::unix_micros());
    params.not_before = now - BACK;
    params.not_after = now + DAY * days;
}
