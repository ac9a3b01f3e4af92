//! TLS under any stream: who is at the other end is proven before a byte of ours is read. It opens no socket and reads
//! no file.
//!
//! Two uses. *Nodes* show each other certificates of one authority, and the certificate says which node of which cluster
//! in which role it is ([`Identity`]). *Players* show none; they see the server's own certificate. Both are TLS 1.3 only.
//!
//! | item | is |
//! |---|---|
//! | [`Secured`] | a stream, plain or inside TLS |
//! | [`ServerTls`], [`ClientTls`] | one end's settings; replacing them changes new handshakes only |
//! | [`Security`] | how a node proves itself to others: certificates, or loopback alone |
//! | [`Material`] | certificates and key, read from PEM |
//! | [`TlsError`], [`Cause`] | why a handshake came to nothing |

mod ends;
mod failure;
mod identity;
mod material;
mod security;

#[cfg(test)]
mod tests;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsStream;

pub use ends::{ClientTls, ServerTls};
pub use failure::{Cause, TlsError};
pub use identity::{AUTHORITY, Identity, NODE_NAME, SCHEME};
pub use material::{Material, MaterialError};
pub use security::{HANDSHAKE_TIMEOUT, NodeTls, Security, is_loopback};

/// A stream, plain or inside TLS.
///
/// TLS holds back what was written until it is flushed: whoever writes flushes, as [`Outbox`](crate::Outbox) does.
#[derive(Debug)]
pub enum Secured<S> {
    Plain(S),
    Tls(Box<TlsStream<S>>),
}

impl<S> Secured<S> {
    pub fn is_tls(&self) -> bool {
        matches!(self, Secured::Tls(_))
    }

    /// The stream below: for looking at its addresses, not for reading.
    pub fn transport(&self) -> &S {
        match self {
            Secured::Plain(stream) => stream,
            Secured::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Who the other end's certificate says it is. The certificate itself was checked in the handshake.
    pub fn identity(&self) -> Result<Identity, TlsError> {
        let Secured::Tls(stream) = self else {
            return Err(TlsError::new(Cause::NoCertificate, "the connection is not inside TLS"));
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let Some(certificate) = certificates.first() else {
            return Err(TlsError::new(Cause::NoCertificate, "the peer showed no certificate"));
        };
        Identity::of_certificate(certificate).map_err(|why| TlsError::new(Cause::Identity, why))
    }
}

macro_rules! either {
    ($secured:expr, $stream:ident => $call:expr) => {
        match $secured.get_mut() {
            Secured::Plain($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Secured::Tls($stream) => {
                let $stream = Pin::new($stream.as_mut());
                $call
            }
        }
    };
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secured<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buf))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secured<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Secured::Plain(stream) => stream.is_write_vectored(),
            Secured::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}
