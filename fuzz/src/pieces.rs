//! A connection whose other end has already said everything, in pieces of one size, and hears whatever it is told.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use net::inbox::Inbox;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The size of pieces that splits nothing.
pub const WHOLE: usize = usize::MAX;

/// See the module.
#[derive(Debug)]
pub struct Pieces<'a> {
    rest: &'a [u8],
    piece: usize,
    pub heard: Vec<u8>,
}

impl<'a> Pieces<'a> {
    pub fn new(bytes: &'a [u8], piece: usize) -> Self {
        Self { rest: bytes, piece, heard: Vec::new() }
    }

    /// What nobody has read.
    pub fn unread(&self) -> &'a [u8] {
        self.rest
    }
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let len = this.piece.min(this.rest.len()).min(into.remaining());
        let (piece, rest) = this.rest.split_at(len);
        into.put_slice(piece);
        this.rest = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().heard.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Runs what never waits.
pub fn block<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime without I/O needs nothing of the system");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// Reads `bytes` through an [`Inbox`] in pieces. Answers why it stopped before their end, if it did, and whether the
/// beginning of something was left.
pub fn receive<E>(
    bytes: &[u8],
    piece: usize,
    mut decode: impl FnMut(&[u8]) -> (usize, Result<(), E>),
) -> (Option<E>, bool) {
    let (mut inbox, mut stream) = (Inbox::default(), Pieces::new(bytes, piece));
    let mut scratch = vec![0; bytes.len() + 1];
    loop {
        match block(inbox.receive(&mut stream, &mut scratch, &mut decode)) {
            Ok(Some(Ok(()))) => {}
            Ok(Some(Err(why))) => return (Some(why), false),
            Ok(None) | Err(_) => return (None, inbox.is_partial()),
        }
    }
}

/// Demands the same of `bytes` whether they come at once, one by one, or split in two anywhere: where is up to the
/// bytes themselves, so that the fuzzer chooses.
pub fn same_in_pieces<T: PartialEq + std::fmt::Debug>(bytes: &[u8], read: impl Fn(usize) -> T) {
    let whole = read(WHOLE);
    let chosen = 2 + base::hash::bytes(bytes) as usize % (bytes.len() + 1);
    for piece in [1, chosen] {
        assert_eq!(read(piece), whole, "in pieces of {piece}");
    }
}
