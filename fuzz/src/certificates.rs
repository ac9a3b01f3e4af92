//! Certificates: as the other end shows them, and as files hold them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use net::tls::{Identity, Material};
use rustls::pki_types::CertificateDer;

/// A certificate as it comes over a connection.
pub fn der(bytes: &[u8]) {
    let identity = Identity::of_certificate(&CertificateDer::from(bytes));
    if let Ok(identity) = &identity {
        assert_eq!(Identity::parse(&identity.to_string()).as_ref(), Ok(identity));
        let uri = identity.to_string();
        assert!(bytes.windows(uri.len()).any(|window| window == uri.as_bytes()), "it says so itself");
    }
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(bytes));
    pem_file(pem.as_bytes());
    if let Ok(cluster) = Identity::cluster_of_authority(pem.as_bytes()) {
        assert!(identity.is_err(), "an authority of {cluster:?} is no node");
    }
}

/// A file of certificates, or of a key.
pub fn pem(bytes: &[u8]) {
    pem_file(bytes);
    let _ = Identity::cluster_of_authority(bytes);
}

fn pem_file(bytes: &[u8]) {
    let whole = [bytes, b"\n", KEY.as_bytes()].concat();
    for (cert, key) in [(bytes, KEY.as_bytes()), (bytes, bytes), (&whole, &whole)] {
        match Material::node(bytes, cert, key) {
            Ok(material) => {
                assert!(material.identity().is_ok());
                assert!(format!("{material:?}").contains("***"));
            }
            Err(error) => quotes_nothing(&error.to_string()),
        }
        if let Err(error) = Material::players(cert, key) {
            quotes_nothing(&error.to_string());
        }
    }
}

/// A key is never quoted, not even one that can't be read.
fn quotes_nothing(error: &str) {
    assert!(!error.contains(SECRET), "{error}");
}

/// Nobody's key: only its form is looked at.
const KEY: &str = concat!(
    "-----BEGIN PRIV",
    "ATE KEY-----\n",
    "AAECAwQFBgcICQoLDA0ODwABAgMEBQYHCAkKCwwNDg8=\n",
    "-----END PRIV",
    "ATE KEY-----\n"
);
const SECRET: &str = "AAECAwQFBgcICQoLDA0O";
