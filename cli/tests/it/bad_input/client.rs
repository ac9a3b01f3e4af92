//! A player who sends bytes, and what he gets.

use std::time::Duration;

use base::TypeId;
use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::auth::{AUTH, Auth};
use wire::code::Code;
use wire::frame::{self, Decoded};
use wire::handshake::{self, KEEP_ALIVE};
use wire::payload::{self, Family, Head};
use wire::report::{REPORT_ERROR, ReportError};

use super::table::After;
use super::world::{ECHO, Word, within};

/// What came of an input.
#[derive(Debug, Clone)]
pub struct Got {
    /// The name of the last code; `answered` when there was none but an answer, else `nothing`.
    pub code: String,
    pub after: After,
}

/// One frame of linkd's.
pub struct Heard {
    pub type_id: TypeId,
    pub head: Head,
    pub body: Vec<u8>,
}

pub struct Client {
    stream: TcpStream,
    buf: BytesMut,
    asked: i64,
}

/// A frame of any kind with this head and body.
pub fn frame(type_id: TypeId, head: Head, body: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    payload::encode_frame(&mut out, type_id, head, |out| out.extend_from_slice(body));
    out.to_vec()
}

/// A header that announces this many bytes.
pub fn header(module: i32, size: u32) -> Vec<u8> {
    [module.to_le_bytes(), [0; 4], size.to_le_bytes()].concat()
}

pub fn auth(auth: Auth<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    auth.encode(&mut body);
    frame(AUTH, Head::request(1), &body)
}

pub fn keep_alive(session: i64) -> Vec<u8> {
    let mut out = BytesMut::new();
    handshake::keep_alive(&mut out, session);
    out.to_vec()
}

/// The session of the keep-alive that follows an input: its answer says that the connection is open.
const ALIVE: i64 = 4_711;

impl Client {
    pub async fn connect(addr: &str) -> Self {
        let stream = within(net::Tcp::dial(addr)).await.unwrap();
        Self { stream, buf: BytesMut::new(), asked: 100_000 }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        // Whoever is closed while it sends learns so by reading.
        let _ = self.stream.write_all(bytes).await;
    }

    /// Says no more, and goes on reading.
    pub async fn hang_up(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// The next frame; `None` at the end.
    pub async fn heard(&mut self) -> Option<Heard> {
        loop {
            if let Decoded::Frame(frame) = frame::decode(&self.buf, 4 << 20).unwrap() {
                let (head, body) = payload::decode(frame.payload).unwrap();
                let heard = Heard { type_id: frame.type_id, head, body: body.to_vec() };
                let used = frame.whole.len();
                self.buf.advance(used);
                return Some(heard);
            }
            if !matches!(within(self.stream.read_buf(&mut self.buf)).await, Ok(n) if n > 0) {
                return None;
            }
        }
    }

    /// Logs in and answers whether it was let in.
    pub async fn log_in(&mut self, account: &str, token: &[u8]) -> Got {
        self.say(&auth(Auth { account: account.as_bytes(), token, ..Auth::default() })).await
    }

    /// Sends an input, and a keep-alive behind it.
    pub async fn say(&mut self, input: &[u8]) -> Got {
        self.send(&[input, &keep_alive(ALIVE)].concat()).await;
        self.outcome().await
    }

    /// Sends a request of session 1 that a provider answers, and a keep-alive after the answer: linkd answers that by
    /// itself, and sooner.
    pub async fn ask(&mut self, input: &[u8]) -> Got {
        self.send(input).await;
        while let Some(heard) = self.heard().await {
            if heard.head.family == Family::Response && heard.head.session == 1 {
                let code = Code::of_result(heard.head.code).map_or("answered", |code| code.name);
                let Got { after, .. } = self.say(&[]).await;
                return Got { code: code.to_owned(), after };
            }
        }
        Got { code: "nothing".to_owned(), after: After::Closed }
    }

    /// Sends an input that is no whole frame, and nothing more.
    pub async fn begin(&mut self, input: &[u8]) -> Got {
        self.send(input).await;
        self.outcome().await
    }

    /// Reads until the keep-alive is answered, or the end.
    pub async fn outcome(&mut self) -> Got {
        let named = |found: Option<&'static Code>| found.map_or("a code of the game", |code| code.name);
        let mut code = "nothing";
        while let Some(heard) = self.heard().await {
            match heard.type_id {
                KEEP_ALIVE if heard.head == Head::response(ALIVE, 0) => {
                    return Got { code: code.to_owned(), after: After::Open };
                }
                REPORT_ERROR => {
                    let report = ReportError::decode(&heard.body).unwrap();
                    code = named(i32::try_from(report.code).ok().and_then(Code::find));
                }
                _ if heard.head.code != 0 => code = named(Code::of_result(heard.head.code)),
                handshake::SHANDSHAKE0 | handshake::SHANDSHAKE | KEEP_ALIVE => {}
                _ if code == "nothing" => code = "answered",
                _ => {}
            }
        }
        Got { code: code.to_owned(), after: After::Closed }
    }

    /// Demands that a request of its own is answered, and soon.
    pub async fn is_answered(&mut self) {
        self.asked += 1;
        let word = Word { text: "still here".to_owned(), numbers: vec![self.asked] };
        let request = frame(ECHO, Head::request(self.asked), &prost::Message::encode_to_vec(&word));
        self.send(&request).await;
        let answer = async {
            loop {
                let heard = self.heard().await.expect("the neighbour is connected");
                if heard.head == Head::response(self.asked, 0) {
                    return heard.body;
                }
                assert_eq!(heard.head.code, 0, "the neighbour is refused nothing");
            }
        };
        let body = tokio::time::timeout(Duration::from_secs(10), answer).await.expect("an answer in time");
        assert_eq!(prost::Message::decode(&body[..]), Ok(word));
    }
}
