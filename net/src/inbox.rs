//! The receiving half: frames are decoded where the system wrote them. Only the tail of an unfinished frame is kept
//! per connection, so an idle one holds no buffer.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

/// Room a read may fill at once: some 300 small frames. Larger reads save few system calls and make every process on
/// the way wait for whole batches of the one before it; smaller ones split what one session sent.
pub const SCRATCH_BYTES: usize = 32 * 1024;

/// Where reads land before they are decoded.
pub trait Scratch {
    fn with<R>(&mut self, f: impl FnOnce(&mut [u8]) -> R) -> R;
}

/// A connection's own room, for tasks that may move between threads.
impl Scratch for Vec<u8> {
    fn with<R>(&mut self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        f(self)
    }
}

/// One room for all connections of a current-thread runtime: they read and decode without awaiting in between.
#[derive(Debug, Clone)]
pub struct SharedScratch(Rc<RefCell<Box<[u8]>>>);

impl Default for SharedScratch {
    fn default() -> Self {
        Self(Rc::new(RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice())))
    }
}

impl Scratch for SharedScratch {
    fn with<R>(&mut self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        f(&mut self.0.borrow_mut())
    }
}

/// What a connection has received and not yet decoded.
#[derive(Debug, Default)]
pub struct Inbox {
    rest: BytesMut,
}

impl Inbox {
    /// Whether part of a frame is waiting for its rest.
    pub fn is_partial(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Waits for bytes and hands all undecoded ones to `decode`, which answers how many it used up. `Ok(None)` is the
    /// peer's end of stream. Cancel-safe: nothing read is lost.
    pub async fn receive<R, T, E>(
        &mut self,
        io: &mut R,
        scratch: &mut impl Scratch,
        mut decode: impl FnMut(&[u8]) -> (usize, Result<T, E>),
    ) -> io::Result<Option<Result<T, E>>>
    where
        R: AsyncRead + Unpin,
    {
        std::future::poll_fn(|cx| scratch.with(|room| self.poll(cx, io, room, &mut decode))).await
    }

    /// As [`receive`](Self::receive), for a hand-written poll loop.
    pub fn poll<R, T, E>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut R,
        room: &mut [u8],
        decode: &mut impl FnMut(&[u8]) -> (usize, Result<T, E>),
    ) -> Poll<io::Result<Option<Result<T, E>>>>
    where
        R: AsyncRead + Unpin,
    {
        // The rest of the read before goes in front, so that the frame it began is decoded in place too; only one that
        // takes much of the room grows in a buffer of its own.
        let (rest, small) = (self.rest.len(), room.len() / 8);
        let ahead = if rest <= small { rest } else { 0 };
        room[..ahead].copy_from_slice(&self.rest[..ahead]);
        let mut read = ReadBuf::new(&mut room[ahead..]);
        ready!(Pin::new(io).poll_read(cx, &mut read))?;
        let fresh = read.filled().len();
        if fresh == 0 {
            return Poll::Ready(Ok(None));
        }
        let fresh = &room[..ahead + fresh];
        let result = if ahead == rest {
            let (used, result) = decode(fresh);
            self.keep(&fresh[used.min(fresh.len())..]);
            result
        } else {
            self.rest.extend_from_slice(fresh);
            let (used, result) = decode(&self.rest);
            self.rest.advance(used.min(self.rest.len()));
            if self.rest.len() <= small {
                self.rest = BytesMut::from(&self.rest[..]);
            }
            result
        };
        Poll::Ready(Ok(Some(result)))
    }

    /// A drained connection holds no buffer.
    fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            self.rest = BytesMut::new();
        } else {
            self.rest.clear();
            self.rest.extend_from_slice(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    /// Cuts words that end with a point.
    fn cut(bytes: &[u8], words: &mut Vec<String>) -> (usize, Result<(), ()>) {
        let mut used = 0;
        while let Some(end) = bytes[used..].iter().position(|&b| b == b'.') {
            words.push(String::from_utf8_lossy(&bytes[used..used + end]).into_owned());
            used += end + 1;
        }
        (used, Ok(()))
    }

    /// Words shorter and longer than what goes in front of a read, and than a whole read.
    #[tokio::test]
    async fn whatever_the_splits_the_same_frames_come_out() {
        let lengths = [0, 1, 3, 7, 8, 9, 20, 63, 64, 65, 200, 2, 0, 130, 5];
        let expected: Vec<String> = lengths.iter().map(|&n| "x".repeat(n)).collect();
        for split in (1..=80).chain([1_000]) {
            let (mut a, mut b) = tokio::io::duplex(split);
            let text = expected.iter().map(|word| format!("{word}.")).collect::<String>();
            let sender = tokio::spawn(async move { a.write_all(text.as_bytes()).await.unwrap() });
            let (mut inbox, mut scratch, mut words) = (Inbox::default(), vec![0; 64], Vec::new());
            while inbox.receive(&mut b, &mut scratch, |bytes| cut(bytes, &mut words)).await.unwrap().is_some()
            {
            }
            sender.await.unwrap();
            assert_eq!(words, expected, "in pieces of {split}");
            assert!(!inbox.is_partial());
            assert_eq!(inbox.rest.capacity(), 0, "a drained connection holds a buffer");
        }
    }

    #[tokio::test]
    async fn a_read_cancelled_between_two_pieces_loses_nothing() {
        let (mut a, mut b) = tokio::io::duplex(64);
        let (mut inbox, mut scratch, mut words) = (Inbox::default(), vec![0; 64], Vec::new());
        a.write_all(b"on").await.unwrap();
        inbox.receive(&mut b, &mut scratch, |bytes| cut(bytes, &mut words)).await.unwrap().unwrap().unwrap();
        {
            let waiting = inbox.receive(&mut b, &mut scratch, |bytes| cut(bytes, &mut words));
            tokio::pin!(waiting);
            assert!(std::future::poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await);
        }
        scratch.fill(b'?');
        a.write_all(b"e.").await.unwrap();
        inbox.receive(&mut b, &mut scratch, |bytes| cut(bytes, &mut words)).await.unwrap().unwrap().unwrap();
        assert_eq!(words, ["one"]);
    }
}
