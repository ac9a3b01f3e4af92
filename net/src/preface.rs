//! The very first thing a provider says on a linkd's port: which worker it wants, in one bare header and in clear.
//!
//! The connection moves to that worker's own runtime before TLS begins, so this can't wait for TLS. It proves nothing
//! and decides nothing: hello repeats it, and both must be equal.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wire::node::{self, Decoded, HEADER_BYTES, Kind, Meta};

/// How long a stranger has to send its preface.
pub const PREFACE_TIMEOUT: Duration = Duration::from_secs(3);

/// Why no preface came.
#[derive(Debug, thiserror::Error)]
pub enum PrefaceError {
    #[error("the connection broke before its preface: {0}")]
    Io(#[from] io::Error),
    #[error("no preface came within {PREFACE_TIMEOUT:?}")]
    Timeout,
    #[error("the first bytes are no preface")]
    NotPreface,
}

impl PrefaceError {
    /// The value of a counter's label.
    pub const fn label(&self) -> &'static str {
        match self {
            PrefaceError::Io(_) => "broken",
            PrefaceError::Timeout => "preface_timeout",
            PrefaceError::NotPreface => "not_preface",
        }
    }
}

/// Asks for a worker.
pub async fn send(stream: &mut (impl AsyncWrite + Unpin), worker: u32) -> io::Result<()> {
    let mut out = BytesMut::with_capacity(HEADER_BYTES);
    node::encode(&mut out, &Meta::call(Kind::PREFACE, worker.into(), 0), &[], &[]);
    stream.write_all(&out).await?;
    stream.flush().await
}

/// Reads which worker is asked for: exactly one header, nothing behind it.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<u32, PrefaceError> {
    let mut header = [0; HEADER_BYTES];
    let read = tokio::time::timeout(PREFACE_TIMEOUT, stream.read_exact(&mut header)).await;
    read.map_err(|_| PrefaceError::Timeout)??;
    match node::decode(&header, HEADER_BYTES) {
        Ok(Decoded::Frame(frame)) if frame.meta.kind == Kind::PREFACE && frame.head.is_empty() => {
            u32::try_from(frame.meta.call).map_err(|_| PrefaceError::NotPreface)
        }
        _ => Err(PrefaceError::NotPreface),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_preface_names_a_worker_and_takes_nothing_behind_it() {
        let (mut near, mut far) = tokio::io::duplex(4096);
        send(&mut near, 7).await.unwrap();
        near.write_all(b"hello").await.unwrap();
        assert_eq!(read(&mut far).await.unwrap(), 7);
        let mut behind = [0; 5];
        far.read_exact(&mut behind).await.unwrap();
        assert_eq!(&behind, b"hello");
    }

    /// Holds: BI-050.
    #[tokio::test(start_paused = true)]
    async fn strangers_get_no_further() {
        for said in
            [&b"GET / HTTP/1.1\r\nHost: linkd\r\n"[..], &[0x16, 3, 1, 2, 0, 1, 0, 1, 252, 3][..], &[0xff; 20]]
        {
            let (mut near, mut far) = tokio::io::duplex(4096);
            near.write_all(said).await.unwrap();
            let error = read(&mut far).await.unwrap_err();
            assert!(matches!(error.label(), "not_preface" | "preface_timeout"), "{error}");
        }
        let (near, mut far) = tokio::io::duplex(4096);
        let began = tokio::time::Instant::now();
        assert!(matches!(read(&mut far).await, Err(PrefaceError::Timeout)));
        assert_eq!(began.elapsed(), PREFACE_TIMEOUT);
        drop(near);
    }
}
