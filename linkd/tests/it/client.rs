//! A raw client, on either transport.

use base::TypeId;
use bytes::{Buf, BytesMut};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use wire::auth::{AUTH, Auth};
use wire::frame::{self, Decoded};
use wire::handshake;
use wire::payload::{self, Head};
use wire::report::{REPORT_ERROR, ReportError};

use crate::world::within;

/// A frame as a client sees it.
#[derive(Debug, PartialEq)]
pub struct Got {
    pub type_id: TypeId,
    pub head: Head,
    pub body: Vec<u8>,
}

pub enum Wire {
    Tcp(TcpStream),
    WebSocket(Box<WebSocketStream<TcpStream>>),
}

pub struct Client {
    pub wire: Wire,
    buf: BytesMut,
}

impl Client {
    pub fn plain(stream: TcpStream) -> Self {
        Self { wire: Wire::Tcp(stream), buf: BytesMut::new() }
    }

    /// Asks for a WebSocket.
    pub async fn upgrade(stream: TcpStream) -> Self {
        let (ws, _) = within(tokio_tungstenite::client_async("ws://linkd/", stream)).await.unwrap();
        Self { wire: Wire::WebSocket(Box::new(ws)), buf: BytesMut::new() }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).await.unwrap();
    }

    /// As one message, on a WebSocket.
    pub async fn try_send(&mut self, bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
        match &mut self.wire {
            Wire::Tcp(stream) => stream.write_all(bytes).await?,
            Wire::WebSocket(ws) => ws.send(Message::Binary(bytes.to_vec().into())).await?,
        }
        Ok(())
    }

    /// The WebSocket itself, for messages that are not bytes.
    pub fn ws(&mut self) -> &mut WebSocketStream<TcpStream> {
        match &mut self.wire {
            Wire::WebSocket(ws) => ws,
            Wire::Tcp(_) => panic!("this client speaks plain TCP"),
        }
    }

    pub async fn login(&mut self, account: &str) {
        let mut out = BytesMut::new();
        if let Wire::Tcp(_) = self.wire {
            handshake::client_done(&mut out);
        }
        out.extend_from_slice(&auth(account));
        self.send(&out).await;
        if let Wire::Tcp(_) = self.wire {
            assert_eq!(self.frame().await.unwrap().type_id, handshake::SHANDSHAKE0);
        }
        let answer = self.frame().await.unwrap();
        assert_eq!((answer.type_id, answer.head), (AUTH, Head::response(1, 0)));
    }

    /// More bytes; `false` at the end of the stream.
    async fn more(&mut self) -> bool {
        match &mut self.wire {
            Wire::Tcp(stream) => matches!(within(stream.read_buf(&mut self.buf)).await, Ok(n) if n > 0),
            Wire::WebSocket(ws) => match within(ws.next()).await {
                Some(Ok(message)) => {
                    if let Message::Binary(bytes) = message {
                        self.buf.extend_from_slice(&bytes);
                    }
                    true
                }
                _ => false,
            },
        }
    }

    /// The next frame, or `None` at the end of the stream.
    pub async fn frame(&mut self) -> Option<Got> {
        loop {
            if let Decoded::Frame(frame) = frame::decode(&self.buf, 4 << 20).unwrap() {
                let (head, body) = payload::decode(frame.payload).unwrap();
                let got = Got { type_id: frame.type_id, head, body: body.to_vec() };
                let used = frame.whole.len();
                self.buf.advance(used);
                return Some(got);
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads until the end and answers the code of the last ReportError.
    pub async fn closed_with(&mut self) -> Option<i64> {
        let mut code = None;
        while let Some(got) = self.frame().await {
            if got.type_id == REPORT_ERROR {
                code = Some(ReportError::decode(&got.body).unwrap().code);
            }
        }
        code
    }
}

pub fn auth(account: &str) -> BytesMut {
    let mut out = BytesMut::new();
    let auth = Auth { account: account.as_bytes(), ..Auth::default() };
    payload::encode_frame(&mut out, AUTH, Head::request(1), |out| auth.encode(out));
    out
}

/// A request of protocol 1 of module 7.
pub fn request(session: i64, body: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    payload::encode_frame(&mut out, SEVEN, Head::request(session), |out| out.extend_from_slice(body));
    out
}

pub const SEVEN: TypeId = TypeId::new(base::ModuleId(7), base::ProtocolId(1));
