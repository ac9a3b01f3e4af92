//! The seam between us and the operating system's network. Signatures above it name no TCP type.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A network: real TCP in production, a simulated one in tests. Futures must be cancel-safe.
pub trait NetIo: Clone + Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;
    type Listener: Send + Sync + 'static;
    /// A stream that belongs to no runtime yet, on its way from the acceptor to a worker's runtime.
    type Detached: Send + 'static;

    fn bind(&self, addr: SocketAddr) -> impl Future<Output = io::Result<Self::Listener>> + Send;
    fn local_addr(&self, listener: &Self::Listener) -> io::Result<SocketAddr>;
    fn accept(
        &self,
        listener: &Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;
    /// `addr` is `host:port`; names are resolved at each call.
    fn connect(&self, addr: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;
    fn detach(&self, stream: Self::Stream) -> io::Result<Self::Detached>;
    fn attach(&self, stream: Self::Detached) -> io::Result<Self::Stream>;
}

/// How long a dial may take.
pub const DIAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections the kernel keeps for us before we accept them.
const BACKLOG: u32 = 4_096;

/// TCP of the operating system, without Nagle's delay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tcp;

impl Tcp {
    /// Binds `addr`; a port of 0 lets the system choose. The error of a busy port names the address.
    pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
        let bind = || {
            let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            socket.bind(addr)?;
            socket.listen(BACKLOG)
        };
        bind().map_err(|error| io::Error::new(error.kind(), format!("can't listen on {addr}: {error}")))
    }

    /// Dials `host:port` within [`DIAL_TIMEOUT`].
    pub async fn dial(addr: &str) -> io::Result<TcpStream> {
        let timed_out = || io::Error::new(io::ErrorKind::TimedOut, "no answer within 2 s");
        let dialled = tokio::time::timeout(DIAL_TIMEOUT, TcpStream::connect(addr)).await;
        let stream = dialled
            .unwrap_or_else(|_| Err(timed_out()))
            .map_err(|error| io::Error::new(error.kind(), format!("can't connect to {addr}: {error}")))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl NetIo for Tcp {
    type Stream = TcpStream;
    type Listener = TcpListener;
    type Detached = std::net::TcpStream;

    async fn bind(&self, addr: SocketAddr) -> io::Result<TcpListener> {
        Tcp::listen(addr)
    }

    fn local_addr(&self, listener: &TcpListener) -> io::Result<SocketAddr> {
        listener.local_addr()
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, addr) = listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, addr))
    }

    async fn connect(&self, addr: &str) -> io::Result<TcpStream> {
        Tcp::dial(addr).await
    }

    fn detach(&self, stream: TcpStream) -> io::Result<std::net::TcpStream> {
        stream.into_std()
    }

    fn attach(&self, stream: std::net::TcpStream) -> io::Result<TcpStream> {
        TcpStream::from_std(stream)
    }
}

/// Whether accepting failed only for now: a connection already reset, or no file descriptors left. Anything else
/// means that the listener itself is broken.
pub fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, OutOfMemory, WouldBlock};
    let out_of_files = matches!(error.raw_os_error(), Some(23 | 24 | 105));
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | OutOfMemory | WouldBlock)
        || out_of_files
}
