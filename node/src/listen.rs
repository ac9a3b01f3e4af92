//! Listeners for axum and tonic: a bounded number of connections, nobody asked twice who called, and no end because of
//! one failed accept. The sockets themselves are `net`'s.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info;
use axum::serve::IncomingStream;
use net::{NetIo, Tcp};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

/// The wait after an accept that failed, such as for want of file descriptors.
const RETRY: Duration = Duration::from_millis(50);

/// A listener of which at most so many connections are open at once; more wait in the kernel's queue.
#[derive(Debug)]
pub struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
    silence_max: Duration,
}

/// Who is at the other end. An extension of tonic's requests, and of axum's inside `ConnectInfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller(pub SocketAddr);

impl Caller {
    /// Only loopback is believed as long as nobody proves who they are.
    pub fn is_loopback(self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

/// A connection that gives its place back when it is dropped.
#[derive(Debug)]
pub struct Held {
    stream: TcpStream,
    caller: Caller,
    silence_max: Duration,
    /// When it has been silent for too long: whoever says nothing must not keep others out.
    silent_at: Pin<Box<Sleep>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Bounded {
    /// A connection that is not heard for `silence_max` is closed.
    pub fn new(listener: TcpListener, connections_max: usize, silence_max: Duration) -> Self {
        let places = connections_max.clamp(1, Semaphore::MAX_PERMITS);
        Self { listener, places: Arc::new(Semaphore::new(places)), silence_max }
    }

    /// The next connection, whatever fails meanwhile.
    pub async fn next(&self) -> Held {
        // The semaphore is never closed; without a place the connection would only be uncounted.
        let place = self.places.clone().acquire_owned().await.ok();
        loop {
            match Tcp.accept(&self.listener).await {
                Ok((stream, addr)) => {
                    let silence_max = self.silence_max;
                    let silent_at = Box::pin(tokio::time::sleep(silence_max));
                    return Held { stream, caller: Caller(addr), silence_max, silent_at, _place: place };
                }
                Err(error) => {
                    if !net::io::is_transient(&error) {
                        tracing::error!(%error, "a listener fails; trying on");
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// All connections, for tonic. The listener closes when the stream is dropped.
    pub fn incoming(self) -> Incoming {
        let listener = Arc::new(self);
        Incoming { next: next(listener.clone()), listener }
    }
}

/// Every connection of a listener, without end.
pub struct Incoming {
    listener: Arc<Bounded>,
    next: Pin<Box<dyn Future<Output = Held> + Send>>,
}

fn next(listener: Arc<Bounded>) -> Pin<Box<dyn Future<Output = Held> + Send>> {
    Box::pin(async move { listener.next().await })
}

impl Stream for Incoming {
    type Item = io::Result<Held>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Held>>> {
        let held = std::task::ready!(self.next.as_mut().poll(cx));
        self.next = next(self.listener.clone());
        Poll::Ready(Some(Ok(held)))
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Held;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Held, SocketAddr) {
        let held = self.next().await;
        let addr = held.caller.0;
        (held, addr)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl connect_info::Connected<IncomingStream<'_, Bounded>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Bounded>) -> Self {
        Self(*stream.remote_addr())
    }
}

impl Connected for Held {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller
    }
}

impl AsyncRead for Held {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            let silent_at = Instant::now() + self.silence_max;
            self.silent_at.as_mut().reset(silent_at);
        } else if self.silent_at.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Held {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
