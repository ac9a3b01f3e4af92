//! The simulated network, as the shells see any network. Each call belongs to the host that runs it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use net::NetIo;
use net::io::DIAL_TIMEOUT;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::{TcpListener, TcpStream};

/// The network of one process. Hosts are dialled by name; a listener on every address of its host has the address
/// 0.0.0.0.
#[derive(Debug, Clone, Default)]
pub struct Simulated(Arc<Mutex<Vec<Weak<Slot>>>>);

type Slot = Mutex<Option<TcpStream>>;

/// A connection, for as long as its process lives.
#[derive(Debug)]
pub struct Socket(Arc<Slot>);

/// A process that dies closes its connections, as a system does for it, also those that something still holds.
#[derive(Debug, Default)]
pub struct Process(pub Simulated);

impl Drop for Process {
    fn drop(&mut self) {
        for slot in self.0.0.lock().drain(..).filter_map(|slot| slot.upgrade()) {
            slot.lock().take();
        }
    }
}

impl Simulated {
    fn socket(&self, stream: TcpStream) -> Socket {
        let slot = Arc::new(Mutex::new(Some(stream)));
        let mut slots = self.0.lock();
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(&slot));
        Socket(slot)
    }
}

impl NetIo for Simulated {
    type Stream = Socket;
    type Listener = TcpListener;
    /// All of a host is one runtime, so a stream never leaves it.
    type Detached = Socket;

    async fn bind(&self, addr: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(addr).await
    }

    fn local_addr(&self, listener: &TcpListener) -> io::Result<SocketAddr> {
        listener.local_addr()
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<(Socket, SocketAddr)> {
        let (stream, addr) = listener.accept().await?;
        Ok((self.socket(stream), addr))
    }

    async fn connect(&self, addr: &str) -> io::Result<Socket> {
        let dialled = tokio::time::timeout(DIAL_TIMEOUT, TcpStream::connect(addr)).await;
        dialled.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map(|stream| self.socket(stream))
    }

    fn detach(&self, stream: Socket) -> io::Result<Socket> {
        Ok(stream)
    }

    fn attach(&self, stream: Socket) -> io::Result<Socket> {
        Ok(stream)
    }
}

impl Socket {
    fn poll<T>(&self, poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut *self.0.lock() {
            Some(stream) => poll(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_shutdown(cx))
    }
}
