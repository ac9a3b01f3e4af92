//! Certificates and keys as they are read from PEM text. The key never shows: not in `Debug`, not in an error.

use std::fmt;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Identity;

/// Certificates or a key that can't be used. Whoever made the files must change them; the text names the part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MaterialError {
    #[error("no {what} in it; it must be PEM text")]
    Missing { what: &'static str },
    #[error("the {what} can't be read: {why}")]
    Unreadable { what: &'static str, why: String },
    #[error("the certificate and the key can't be used together: {0}")]
    Unusable(String),
    #[error("{0}")]
    Identity(String),
}

/// What one end shows and believes.
pub struct Material {
    /// The authorities that this end believes; empty when it asks nobody.
    pub(super) roots: RootCertStore,
    /// The end's own certificate first, then those between it and an authority.
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    not_before: i64,
    not_after: i64,
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Material").field("chain", &self.chain.len()).field("key", &"***").finish()
    }
}

impl Material {
    /// For a players' port: the chain and its key.
    pub fn players(cert: &[u8], key: &[u8]) -> Result<Self, MaterialError> {
        Self::read(RootCertStore::empty(), cert, key)
    }

    /// For a node: the authorities it believes, its own chain and its key. `ca` may hold several authorities, so that
    /// one can be exchanged for another without a moment in which neither is believed.
    pub fn node(ca: &[u8], cert: &[u8], key: &[u8]) -> Result<Self, MaterialError> {
        let material = Self::read(roots(ca)?, cert, key)?;
        material.identity()?;
        Ok(material)
    }

    fn read(roots: RootCertStore, cert: &[u8], key: &[u8]) -> Result<Self, MaterialError> {
        let chain = certificates(cert, "certificate")?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => MaterialError::Missing { what: "private key" },
            // The error's own text could quote the file.
            _ => MaterialError::Unreadable { what: "private key", why: "it is no PEM".to_owned() },
        })?;
        let unreadable = |why: String| MaterialError::Unreadable { what: "certificate", why };
        let first = chain.first().ok_or(MaterialError::Missing { what: "certificate" })?;
        let (_, parsed) = X509Certificate::from_der(first).map_err(|error| unreadable(error.to_string()))?;
        let validity = parsed.validity();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Ok(Self { roots, chain, key, not_before, not_after })
    }

    /// Which node the certificate says this is.
    pub fn identity(&self) -> Result<Identity, MaterialError> {
        let first = self.chain.first().ok_or(MaterialError::Missing { what: "certificate" })?;
        Identity::of_certificate(first).map_err(MaterialError::Identity)
    }

    /// Unix seconds from which and until which the end's own certificate holds.
    pub fn validity(&self) -> (i64, i64) {
        (self.not_before, self.not_after)
    }
}

/// The authorities in a PEM text.
pub(super) fn roots(pem: &[u8]) -> Result<RootCertStore, MaterialError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, "authority's certificate")? {
        roots.add(certificate).map_err(|error| MaterialError::Unreadable {
            what: "authority's certificate",
            why: error.to_string(),
        })?;
    }
    Ok(roots)
}

fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, MaterialError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|_| MaterialError::Unreadable { what, why: "it is no PEM".to_owned() })?;
    if read.is_empty() { Err(MaterialError::Missing { what }) } else { Ok(read) }
}
