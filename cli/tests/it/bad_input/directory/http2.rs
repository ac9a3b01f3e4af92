//! A connection of HTTP/2 as a stranger writes it: frames by hand.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cluster::within;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Whoever has not closed a flood by then does not.
const FLOOD_MAX: Duration = Duration::from_secs(20);

pub fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), body].concat()
}

/// The headers of a call of the directory, in literals.
pub fn call() -> Vec<u8> {
    let pairs = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/linkstead.directory.Directory/Session"),
        (":authority", "directory"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    pairs.iter().flat_map(|(name, value)| header(name, value)).collect()
}

/// One header, not to be kept by the other side.
pub fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// Begins a call on stream `stream`.
pub fn open(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &call())
}

/// A gRPC message that claims a length of its own.
pub fn message(claims: u32, body: &[u8]) -> Vec<u8> {
    frame(DATA, 0, 1, &[&[0], &claims.to_be_bytes()[..], body].concat())
}

pub struct Http2 {
    stream: TcpStream,
}

impl Http2 {
    pub async fn connect(addr: &str) -> Self {
        let mut stream = within(net::Tcp::dial(addr)).await.unwrap();
        let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        stream.write_all(&begin).await.unwrap();
        Self { stream }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Writes as fast as it is read, up to `count` times the bytes; reads and forgets what comes meanwhile. Whether the
    /// connection was closed, and how many were written.
    pub async fn flood(self, count: usize, mut next: impl FnMut(usize) -> Vec<u8>) -> (bool, usize) {
        let (mut reading, mut writing) = self.stream.into_split();
        let began = Instant::now();
        let mut closed = tokio::spawn(async move {
            let mut bytes = [0; 65_536];
            while matches!(reading.read(&mut bytes).await, Ok(n) if n > 0) {}
        });
        let mut written = 0;
        while written < count && began.elapsed() < FLOOD_MAX && !closed.is_finished() {
            // Many frames in one write, as whoever floods does.
            let batch = (written..count.min(written + 500)).flat_map(&mut next).collect::<Vec<u8>>();
            match tokio::time::timeout(FLOOD_MAX, writing.write_all(&batch)).await {
                Ok(Ok(())) => written += 500,
                Ok(Err(_)) | Err(_) => break,
            }
        }
        let ended = tokio::time::timeout(Duration::from_secs(5), &mut closed).await;
        closed.abort();
        (ended.is_ok(), written.min(count))
    }

    /// Frames until one for which `is`; `None`: the connection ended before.
    pub async fn until(&mut self, is: impl Fn(u8, u8) -> bool) -> Option<u8> {
        let reading = async {
            loop {
                let mut head = [0; 9];
                self.stream.read_exact(&mut head).await.ok()?;
                let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                let mut body = vec![0; len as usize];
                self.stream.read_exact(&mut body).await.ok()?;
                if is(head[3], head[4]) {
                    return Some(head[3]);
                }
            }
        };
        within(reading).await
    }
}
