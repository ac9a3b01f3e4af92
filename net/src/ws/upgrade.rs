//! The HTTP request that begins a WebSocket: read to its end and no further, judged, answered.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{Request, Response, create_response, write_response};

/// The request's line and headers together have no more bytes.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;
/// What ends the head of a request.
const END: &[u8] = b"\r\n\r\n";

/// Which pages may connect. Browsers say where a page came from; other clients don't, and are not asked.
#[derive(Debug, Clone)]
pub enum Origins {
    Any,
    /// Exactly these, such as `https://game.example`.
    Only(Arc<[String]>),
}

/// Why a request became no WebSocket. Whoever asked was told in HTTP.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("the connection broke during the upgrade: {0}")]
    Io(#[from] io::Error),
    #[error("the upgrade's head has more than {HEAD_BYTES_MAX} bytes")]
    TooLarge,
    #[error("no request for a WebSocket: {0}")]
    NotWebSocket(String),
    #[error("a page of {0:?} may not connect; list it in linkd.websocket.origins")]
    Origin(String),
}

impl Refused {
    /// The counter's label.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Refused::Io(_) => "broken",
            Refused::TooLarge => "head_too_large",
            Refused::NotWebSocket(_) => "not_websocket",
            Refused::Origin(_) => "origin",
        }
    }

    const fn status(&self) -> &'static str {
        match self {
            Refused::TooLarge => "431 Request Header Fields Too Large",
            Refused::Origin(_) => "403 Forbidden",
            Refused::Io(_) | Refused::NotWebSocket(_) => "426 Upgrade Required",
        }
    }
}

impl Origins {
    fn admit(&self, request: &Request) -> Result<(), Refused> {
        let (Origins::Only(list), Some(origin)) = (self, request.headers().get("Origin")) else {
            return Ok(());
        };
        let origin = origin.to_str().unwrap_or("");
        match list.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            true => Ok(()),
            // Only what is shown is cut: it is a stranger's text.
            false => Err(Refused::Origin(origin.chars().take(100).collect())),
        }
    }
}

/// Reads the request and answers it. Nothing of what follows the request is read.
pub async fn upgrade<S>(stream: &mut S, origins: &Origins) -> Result<(), Refused>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let judged = async {
        let head = read_head(stream).await?;
        judge(&head, origins)
    };
    match judged.await {
        Ok(response) => {
            let mut out = Vec::with_capacity(200);
            write_response(&mut out, &response).map_err(|e| Refused::NotWebSocket(e.to_string()))?;
            stream.write_all(&out).await?;
            stream.flush().await?;
            Ok(())
        }
        Err(Refused::Io(error)) => Err(error.into()),
        Err(refused) => {
            refuse(stream, refused.status(), &refused.to_string()).await?;
            Err(refused)
        }
    }
}

/// Answers in HTTP that there will be no WebSocket, and closes.
pub async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, status: &str, why: &str) -> io::Result<()> {
    let (length, close) = (why.len() + 1, "Connection: close\r\nUpgrade: websocket\r\n");
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n{close}");
    let answer = format!("{head}Content-Length: {length}\r\n\r\n{why}\n");
    stream.write_all(answer.as_bytes()).await?;
    stream.flush().await?;
    stream.shutdown().await
}

fn judge(head: &[u8], origins: &Origins) -> Result<Response, Refused> {
    let not = |why: &dyn std::fmt::Display| Refused::NotWebSocket(why.to_string());
    let (_, request) = Request::try_parse(head)
        .map_err(|error| not(&error))?
        .ok_or_else(|| not(&"the request's head could not be read"))?;
    let response = create_response(&request).map_err(|error| not(&error))?;
    origins.admit(&request)?;
    Ok(response)
}

/// Everything up to the empty line. A client waits for the answer before it sends more, so more is an error.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Refused> {
    let mut head = Vec::with_capacity(1024);
    loop {
        let searched = head.len().saturating_sub(END.len() - 1);
        let room = (HEAD_BYTES_MAX - head.len()) as u64;
        if room == 0 {
            return Err(Refused::TooLarge);
        }
        if (&mut *stream).take(room).read_buf(&mut head).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if let Some(end) = head[searched..].windows(END.len()).position(|window| window == END) {
            return match searched + end + END.len() == head.len() {
                true => Ok(head),
                false => Err(Refused::NotWebSocket("bytes follow the request before its answer".into())),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "GET /play HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    async fn ask(request: &str, origins: &Origins) -> (Result<(), Refused>, String) {
        let (mut ours, mut theirs) = tokio::io::duplex(64 * 1024);
        theirs.write_all(request.as_bytes()).await.unwrap();
        let result = upgrade(&mut ours, origins).await;
        drop(ours);
        let mut answer = String::new();
        theirs.read_to_string(&mut answer).await.unwrap();
        (result, answer)
    }

    #[tokio::test]
    async fn a_request_is_answered_and_a_page_from_elsewhere_is_not_let_in() {
        let only = Origins::Only(["https://game.example".to_string()].into());
        let (result, answer) = ask(&format!("{GOOD}\r\n"), &only).await;
        assert!(result.is_ok());
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        assert!(answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{answer}");
        let from = |origin: &str| format!("{GOOD}Origin: {origin}\r\n\r\n");
        assert!(ask(&from("https://GAME.example"), &only).await.0.is_ok());
        assert!(ask(&from("null"), &Origins::Any).await.0.is_ok());
        for elsewhere in ["https://evil.example", "https://game.example.evil.example", "null", ""] {
            let (result, answer) = ask(&from(elsewhere), &only).await;
            assert!(matches!(result, Err(Refused::Origin(_))), "{elsewhere}");
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        }
    }

    #[tokio::test]
    async fn what_is_no_request_is_refused_in_http() {
        let cases = [
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_string(), "426"),
            ("POST / HTTP/1.1\r\n\r\n".to_string(), "426"),
            ("\u{16}\u{3}\u{1}junk\r\n\r\n".to_string(), "426"),
            (format!("{GOOD}\r\n\u{1}\u{2}"), "426"),
            (format!("{GOOD}X: {}\r\n\r\n", "y".repeat(HEAD_BYTES_MAX)), "431"),
        ];
        for (request, status) in cases {
            let (result, answer) = ask(&request, &Origins::Any).await;
            assert!(result.is_err(), "{request}");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_in_its_request_is_gone() {
        let (mut ours, mut theirs) = tokio::io::duplex(1024);
        theirs.write_all(GOOD.as_bytes()).await.unwrap();
        drop(theirs);
        assert!(matches!(upgrade(&mut ours, &Origins::Any).await, Err(Refused::Io(_))));
    }
}
