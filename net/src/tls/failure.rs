//! Why a handshake came to nothing: one small cause for counters, and words for people.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// What went wrong, as a counter tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A certificate's time is over.
    Expired,
    /// A certificate's time has not begun, or a clock is wrong.
    NotYetValid,
    /// A certificate was signed by somebody else.
    UnknownAuthority,
    /// A certificate was asked for and none was shown.
    NoCertificate,
    /// The server's certificate is for another name.
    WrongName,
    /// A certificate of the right authority that does not say which node it is, or says another one.
    Identity,
    /// A certificate that can't be used for another reason.
    BadCertificate,
    /// The other end speaks no TLS 1.3.
    Version,
    /// What came is no TLS at all.
    NotTls,
    /// The handshake took too long.
    Deadline,
    /// The connection broke.
    Broken,
    /// The other end gave up for a reason of its own.
    Alert,
}

impl Cause {
    pub const ALL: [Cause; 12] = [
        Cause::Expired,
        Cause::NotYetValid,
        Cause::UnknownAuthority,
        Cause::NoCertificate,
        Cause::WrongName,
        Cause::Identity,
        Cause::BadCertificate,
        Cause::Version,
        Cause::NotTls,
        Cause::Deadline,
        Cause::Broken,
        Cause::Alert,
    ];

    /// The value of a counter's label.
    pub const fn label(self) -> &'static str {
        match self {
            Cause::Expired => "expired",
            Cause::NotYetValid => "not_yet_valid",
            Cause::UnknownAuthority => "unknown_authority",
            Cause::NoCertificate => "no_certificate",
            Cause::WrongName => "wrong_name",
            Cause::Identity => "identity",
            Cause::BadCertificate => "bad_certificate",
            Cause::Version => "version",
            Cause::NotTls => "not_tls",
            Cause::Deadline => "deadline",
            Cause::Broken => "broken",
            Cause::Alert => "alert",
        }
    }
}

/// No connection came of a TLS handshake. Trying again helps after [`Cause::Deadline`] and [`Cause::Broken`] only; else
/// a certificate must be changed, at this end or at the other, as the text says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("TLS: {}: {why}", cause.label())]
pub struct TlsError {
    pub cause: Cause,
    /// What happened, and at which end.
    pub why: String,
}

impl TlsError {
    pub fn new(cause: Cause, why: impl Into<String>) -> Self {
        Self { cause, why: why.into() }
    }

    /// What an I/O error of a TLS stream says about TLS; `None`: the connection broke by itself.
    pub fn find(error: &io::Error) -> Option<Self> {
        let error = error.get_ref()?.downcast_ref::<Error>()?;
        Some(Self::new(cause(error), words(error)))
    }
}

impl From<io::Error> for TlsError {
    fn from(error: io::Error) -> Self {
        Self::find(&error).unwrap_or_else(|| Self::new(Cause::Broken, error.to_string()))
    }
}

fn words(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => format!("the other end refuses ours: {alert:?}"),
        Error::NoCertificatesPresented => "the other end showed no certificate".to_owned(),
        Error::InvalidCertificate(why) => format!("the other end's certificate: {why}"),
        other => other.to_string(),
    }
}

fn cause(error: &Error) -> Cause {
    use CertificateError as C;
    match error {
        Error::InvalidCertificate(C::Expired | C::ExpiredContext { .. }) => Cause::Expired,
        Error::InvalidCertificate(C::NotValidYet | C::NotValidYetContext { .. }) => Cause::NotYetValid,
        // A stranger's authority may have our authority's name: then it is the signature that is wrong.
        Error::InvalidCertificate(C::UnknownIssuer | C::BadSignature) => Cause::UnknownAuthority,
        Error::InvalidCertificate(C::NotValidForName | C::NotValidForNameContext { .. }) => Cause::WrongName,
        Error::InvalidCertificate(_) => Cause::BadCertificate,
        Error::NoCertificatesPresented => Cause::NoCertificate,
        Error::PeerIncompatible(PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon) => {
            Cause::BadCertificate
        }
        Error::PeerIncompatible(_) | Error::PeerMisbehaved(_) => Cause::Version,
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => Cause::NotTls,
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateExpired => Cause::Expired,
            AlertDescription::UnknownCA | AlertDescription::DecryptError => Cause::UnknownAuthority,
            AlertDescription::CertificateRequired => Cause::NoCertificate,
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown => Cause::BadCertificate,
            AlertDescription::ProtocolVersion => Cause::Version,
            _ => Cause::Alert,
        },
        _ => Cause::Broken,
    }
}
