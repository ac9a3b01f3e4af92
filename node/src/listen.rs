//! Listeners for axum and tonic: a bounded number of connections, nobody asked twice who called, and no end because of
//! one failed accept. TLS is shaken in tasks of its own, so that a slow stranger keeps nobody waiting. The sockets
//! themselves are `net`'s.

mod chatter;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info;
use axum::serve::IncomingStream;
use net::hello::Proof;
use net::strangers::{Place, Strangers};
use net::tls::{HANDSHAKE_TIMEOUT, TlsError};
use net::{NetIo, Secured, Security, Tcp};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

use chatter::Chatter;

/// The wait after an accept that failed, such as for want of file descriptors.
const RETRY: Duration = Duration::from_millis(50);
/// Handshakes at once, and of them from one address; beyond that a connection is closed and counted.
const HANDSHAKES_MAX: usize = 1_024;
const HANDSHAKES_PER_ADDRESS_MAX: usize = 256;

/// A listener of which at most so many connections are open at once; more wait in the kernel's queue.
pub struct Bounded<N: NetIo = Tcp> {
    net: N,
    listener: N::Listener,
    places: Arc<Semaphore>,
    silence_max: Duration,
}

/// Who is at the other end. An extension of tonic's requests, and of axum's inside `ConnectInfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub addr: SocketAddr,
    /// What the connection itself says of the caller.
    pub proof: Proof,
}

impl Caller {
    fn plain(addr: SocketAddr) -> Self {
        Self { addr, proof: Proof::Loopback(addr) }
    }

    /// Whether the caller is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.addr.ip().to_canonical().is_loopback()
    }
}

/// A connection that gives its place back when it is dropped.
#[derive(Debug)]
pub struct Held<S = TcpStream> {
    stream: Secured<S>,
    caller: Caller,
    silence_max: Duration,
    /// When it has been silent for too long: whoever says nothing must not keep others out.
    silent_at: Pin<Box<Sleep>>,
    chatter: Chatter,
    _place: Option<OwnedSemaphorePermit>,
}

impl<S> Held<S> {
    fn new(
        stream: Secured<S>,
        caller: Caller,
        silence_max: Duration,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let silent_at = Box::pin(tokio::time::sleep(silence_max));
        let chatter = Chatter::new(Instant::now());
        Self { stream, caller, silence_max, silent_at, chatter, _place: place }
    }
}

impl Bounded {
    /// Over TCP. A connection that is not heard for `silence_max` is closed.
    pub fn new(listener: TcpListener, connections_max: usize, silence_max: Duration) -> Self {
        Self::over(Tcp, listener, connections_max, silence_max)
    }
}

impl<N: NetIo> Bounded<N> {
    /// The same over another network.
    pub fn over(net: N, listener: N::Listener, connections_max: usize, silence_max: Duration) -> Self {
        let places = connections_max.clamp(1, Semaphore::MAX_PERMITS);
        Self { net, listener, places: Arc::new(Semaphore::new(places)), silence_max }
    }

    /// The next connection, whatever fails meanwhile.
    async fn next(&self) -> Raw<N::Stream> {
        // The semaphore is never closed; without a place the connection would only be uncounted.
        let place = self.places.clone().acquire_owned().await.ok();
        loop {
            match self.net.accept(&self.listener).await {
                Ok((stream, addr)) => {
                    return Raw { stream, addr, silence_max: self.silence_max, place };
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

    /// All connections, for tonic, each proven as `security` says. The listener closes when the stream is dropped.
    pub fn incoming(self, security: Security) -> Incoming<N> {
        let (listener, shaking) = (Arc::new(self), JoinSet::new());
        let strangers = Strangers::new(HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX);
        Incoming { next: next(listener.clone()), listener, security, strangers, shaking }
    }
}

/// A connection of which nothing is known yet.
#[derive(Debug)]
struct Raw<S> {
    stream: S,
    addr: SocketAddr,
    silence_max: Duration,
    place: Option<OwnedSemaphorePermit>,
}

/// What came of a handshake.
type Shaken<S> = Result<Held<S>, (SocketAddr, TlsError)>;

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    fn plain(self, proof: Proof) -> Held<S> {
        let Raw { stream, addr, silence_max, place } = self;
        Held::new(Secured::Plain(stream), Caller { addr, proof }, silence_max, place)
    }

    async fn shake(self, security: Security, stranger: Place) -> Shaken<S> {
        let Raw { stream, addr, silence_max, place } = self;
        let shaken = security.accept(stream, addr, HANDSHAKE_TIMEOUT).await;
        drop(stranger);
        let (stream, proof) = shaken.map_err(|error| (addr, error))?;
        Ok(Held::new(stream, Caller { addr, proof }, silence_max, place))
    }
}

/// Every connection of a listener, without end.
pub struct Incoming<N: NetIo = Tcp> {
    listener: Arc<Bounded<N>>,
    next: Next<N::Stream>,
    security: Security,
    strangers: Strangers,
    shaking: JoinSet<Shaken<N::Stream>>,
}

type Next<S> = Pin<Box<dyn Future<Output = Raw<S>> + Send>>;

fn next<N: NetIo>(listener: Arc<Bounded<N>>) -> Next<N::Stream> {
    Box::pin(async move { listener.next().await })
}

fn refused(cause: &'static str) {
    metrics::counter!("linkstead_tls_refused_total", "port" => "directory", "cause" => cause).increment(1);
}

impl<N: NetIo> Incoming<N> {
    /// Begins a handshake, unless too many are under way.
    fn shake(&mut self, raw: Raw<N::Stream>) {
        match self.strangers.enter(raw.addr.ip()) {
            Ok(stranger) => drop(self.shaking.spawn(raw.shake(self.security.clone(), stranger))),
            Err(full) => {
                refused(full.label());
                tracing::debug!(addr = %raw.addr, %full, "a connection was closed before its handshake");
            }
        }
    }
}

impl<N: NetIo> Stream for Incoming<N> {
    type Item = io::Result<Held<N::Stream>>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Held<N::Stream>>>> {
        while let Poll::Ready(raw) = self.next.as_mut().poll(cx) {
            self.next = next(self.listener.clone());
            let proof = match &self.security {
                Security::Insecure => Some(Proof::Loopback(raw.addr)),
                Security::Simulated => Some(Proof::Simulated),
                Security::Tls(_) => None,
            };
            if let Some(proof) = proof {
                return Poll::Ready(Some(Ok(raw.plain(proof))));
            }
            self.shake(raw);
        }
        while let Poll::Ready(Some(shaken)) = self.shaking.poll_join_next(cx) {
            match shaken {
                Ok(Ok(held)) => return Poll::Ready(Some(Ok(held))),
                Ok(Err((addr, error))) => {
                    refused(error.cause.label());
                    if let Some(not_logged) = self.strangers.log().turn() {
                        tracing::warn!(%addr, %error, not_logged, "a connection was not let in");
                    }
                }
                Err(error) => tracing::error!(%error, "a handshake's task panicked"),
            }
        }
        Poll::Pending
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Held;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Held, SocketAddr) {
        let raw = self.next().await;
        let addr = raw.addr;
        (raw.plain(Proof::Loopback(addr)), addr)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl connect_info::Connected<IncomingStream<'_, Bounded>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Bounded>) -> Self {
        Self::plain(*stream.remote_addr())
    }
}

impl<S> Connected for Held<S> {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Held<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            let now = Instant::now();
            let silent_at = now + self.silence_max;
            self.silent_at.as_mut().reset(silent_at);
            if !self.chatter.allows(now, &buf.filled()[before..]) {
                metrics::counter!("linkstead_http2_floods_total").increment(1);
                tracing::debug!(addr = %self.caller.addr, "closing a connection that only chatters");
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        } else if self.silent_at.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Held<S> {
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
