//! A WebSocket as a stream of bytes: each write is one binary message, reads bring what messages carry. Pings are
//! answered here; who must know of them watches the [`Pulse`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::decode::{Decoder, End, Found, Violation};

/// A header of ours: no mask, so at most 10 bytes.
const HEADER_BYTES_MAX: usize = 10;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PONG: u8 = 0x8a;
/// A close without a complaint.
const NORMAL: u16 = 1000;

/// Pings and pongs of a client, which the bytes don't show. A clone watches the same connection.
#[derive(Debug, Clone, Default)]
pub struct Pulse(Arc<Beats>);

#[derive(Debug, Default)]
struct Beats {
    count: AtomicU32,
    bell: Notify,
}

impl Pulse {
    fn add(&self, beats: u32) {
        self.0.count.fetch_add(beats, Ordering::Relaxed);
        self.0.bell.notify_one();
    }

    /// Waits for control frames and answers how many came since the last time. Cancel-safe. One watcher only.
    pub async fn beats(&self) -> u32 {
        loop {
            match self.0.count.swap(0, Ordering::Relaxed) {
                0 => self.0.bell.notified().await,
                beats => return beats,
            }
        }
    }
}

/// The server's side of a WebSocket.
#[derive(Debug)]
pub struct WebSocket<S> {
    inner: S,
    decoder: Decoder,
    reading: Reading,
    pulse: Pulse,
    /// The header of the frame being written.
    header: [u8; HEADER_BYTES_MAX],
    header_at: usize,
    header_len: usize,
    /// Payload bytes that the frame being written still owes.
    left: usize,
    /// A pong or close, encoded, that waits for the end of the frame being written.
    control: Vec<u8>,
    control_at: usize,
    close: Close,
    /// The writer waits for the socket: the reader must not take its waker's place.
    blocked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Open,
    /// The client broke the protocol; the next read says so.
    Broken(Violation),
    /// Nothing that comes is looked at any more.
    Deaf,
    /// The client closed.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Close {
    /// Not sent; the code it would carry.
    Unsent(u16),
    Sent,
}

/// Why reading failed, if it was the client that broke the WebSocket protocol.
pub fn violation(error: &io::Error) -> Option<Violation> {
    error.get_ref()?.downcast_ref().copied()
}

impl<S> WebSocket<S> {
    pub fn new(inner: S, message_bytes_max: u64) -> Self {
        Self {
            inner,
            decoder: Decoder::new(message_bytes_max),
            reading: Reading::Open,
            pulse: Pulse::default(),
            header: [0; HEADER_BYTES_MAX],
            header_at: 0,
            header_len: 0,
            left: 0,
            control: Vec::new(),
            control_at: 0,
            close: Close::Unsent(NORMAL),
            blocked: false,
        }
    }

    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    fn begin(&mut self, len: usize) {
        self.header[0] = BINARY;
        self.header_len = match len {
            0..126 => {
                self.header[1] = len as u8;
                2
            }
            126..65_536 => {
                self.header[1] = 126;
                self.header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                4
            }
            _ => {
                self.header[1] = 127;
                self.header[2..10].copy_from_slice(&(len as u64).to_be_bytes());
                10
            }
        };
        (self.header_at, self.left) = (0, len);
    }

    fn in_frame(&self) -> bool {
        self.left > 0
    }

    /// Queues a control frame; one that waits already is replaced, unless part of it has left.
    fn queue(&mut self, first: u8, payload: &[u8]) {
        if self.control_at == 0 {
            self.control.clear();
            self.control.extend([first, payload.len() as u8]);
            self.control.extend_from_slice(payload);
        }
    }

    fn queue_close(&mut self) {
        if let Close::Unsent(code) = self.close {
            if self.control_at == 0 {
                self.queue(CLOSE, &code.to_be_bytes());
            } else {
                // Part of a pong has left: the close follows it.
                self.control.extend([CLOSE, 2]);
                self.control.extend_from_slice(&code.to_be_bytes());
            }
            self.close = Close::Sent;
        }
    }

    fn take(&mut self, found: Found) {
        if found.controls > 0 {
            self.pulse.add(found.controls);
        }
        if let (Some(ping), Close::Unsent(_)) = (&found.ping, self.close) {
            self.queue(PONG, ping);
        }
        match found.end {
            Some(End::Close(code)) => {
                if let Close::Unsent(ours) = &mut self.close {
                    // A code that may not travel is not repeated.
                    *ours = code
                        .filter(|code| matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999))
                        .unwrap_or(NORMAL);
                }
                self.reading = Reading::Over;
                self.queue_close();
            }
            Some(End::Violation(violation)) => {
                if let Close::Unsent(code) = &mut self.close {
                    *code = violation.close_code();
                }
                self.reading = Reading::Broken(violation);
            }
            None => {}
        }
    }
}

impl<S: AsyncWrite + Unpin> WebSocket<S> {
    /// Sends what waits beside the data, if no frame is in the middle.
    fn poll_control(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.control_at < self.control.len() && !self.in_frame() {
            let sent = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.control[self.control_at..]))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.control_at += sent;
        }
        if self.control_at == self.control.len() && self.control_at > 0 {
            ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
            (self.control, self.control_at) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_data(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !self.in_frame() {
            ready!(self.poll_control(cx))?;
            if self.close == Close::Sent {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            self.begin(bytes.len());
        }
        let payload = &bytes[..bytes.len().min(self.left)];
        loop {
            let header = &self.header[self.header_at..self.header_len];
            let slices = [IoSlice::new(header), IoSlice::new(payload)];
            let mut sent = ready!(match header.is_empty() {
                true => Pin::new(&mut self.inner).poll_write(cx, payload),
                false => Pin::new(&mut self.inner).poll_write_vectored(cx, &slices),
            })?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_header = sent.min(self.header_len - self.header_at);
            self.header_at += of_header;
            sent -= of_header;
            if sent > 0 {
                self.left -= sent;
                if !self.in_frame() && !self.control.is_empty() {
                    // A pong waited for the end of this frame. What fails here fails the next write too.
                    let _ = self.poll_control(cx);
                }
                return Poll::Ready(Ok(sent));
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.in_frame() {
            self.queue_close();
            ready!(self.poll_control(cx))?;
            ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    /// Remembers whether the writer waits.
    fn noting<T>(&mut self, poll: Poll<T>) -> Poll<T> {
        self.blocked = poll.is_pending();
        poll
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WebSocket<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.blocked && !this.control.is_empty() {
                // What the socket won't take now goes with the next read or write.
                if let Poll::Ready(Err(error)) = this.poll_control(cx) {
                    return Poll::Ready(Err(error));
                }
            }
            match this.reading {
                Reading::Over => return Poll::Ready(Ok(())),
                Reading::Broken(violation) => {
                    this.reading = Reading::Deaf;
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, violation)));
                }
                Reading::Open | Reading::Deaf => {}
            }
            let room = buf.initialize_unfilled();
            if room.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let mut fresh = ReadBuf::new(room);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut fresh))?;
            let fresh = fresh.filled_mut();
            if fresh.is_empty() {
                this.reading = Reading::Over;
                continue;
            }
            if this.reading == Reading::Deaf {
                continue;
            }
            let mut found = Found::default();
            let data = this.decoder.decode(fresh, &mut found);
            this.take(found);
            if data > 0 {
                buf.advance(data);
                // What was found beside the data shows at the next read; only its answer leaves at once.
                if !this.blocked && !this.control.is_empty() {
                    let _ = this.poll_control(cx)?;
                }
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WebSocket<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let sent = this.poll_data(cx, buf);
        this.noting(sent)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let sent = this.poll_control(cx);
        ready!(this.noting(sent))?;
        let flushed = Pin::new(&mut this.inner).poll_flush(cx);
        this.noting(flushed)
    }

    /// The close handshake's first half, and the end of the stream. The client's half is a read.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let closed = this.poll_close(cx);
        this.noting(closed)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
