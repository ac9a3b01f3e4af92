//! WebSocket: binary messages as a byte stream, so that a session is the same on every transport.
//!
//! | module | is |
//! |---|---|
//! | [`upgrade`](mod@upgrade) | the HTTP request that begins it |
//! | [`decode`] | the client's frames, read in place |
//! | [`stream`] | [`WebSocket`]: reads and writes bytes |
//!
//! `tungstenite` parses the upgrade; the frames are read here, since its reader keeps a buffer of the largest message
//! for each connection. Messages are only envelopes: where one ends means nothing to the bytes in it.

pub mod decode;
pub mod stream;
pub mod upgrade;

pub use decode::Violation;
pub use stream::{Pulse, WebSocket, violation};
pub use upgrade::{Origins, Refused};

use tokio::io::{AsyncRead, AsyncWrite};

/// Takes a client's request for a WebSocket. The deadline is the caller's. Refused: the client was told in HTTP, and
/// the stream is closed.
pub async fn accept<S>(
    mut stream: S,
    origins: &Origins,
    message_bytes_max: u64,
) -> Result<WebSocket<S>, Refused>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    upgrade::upgrade(&mut stream, origins).await?;
    Ok(WebSocket::new(stream, message_bytes_max))
}
