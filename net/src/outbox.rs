//! The sending half of a connection: frames are appended to one buffer and leave together, bounded by bytes.
//!
//! Any thread may push. [`Outbox::flush`] writes at once from the calling thread and is what a reader does at the end
//! of a batch; [`Outbox::wake`] leaves the writing to the [`drive`] task, which lets other tasks of the same turn add
//! to the same write first.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use tokio::sync::Notify;

/// A frame was not queued: the bound would be exceeded, or the connection is closing. Nothing was written of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotQueued {
    #[error("the peer reads too slowly: {queued} bytes wait, the bound is {bytes_max}")]
    Full { queued: usize, bytes_max: usize },
    #[error("the connection is closing")]
    Closed,
}

/// From here on a batch is sent before its end, so that the peer begins with it meanwhile. A quarter of this costs a
/// tenth of the throughput: it splits what goes to one session, and each part is a system call here and one there.
const EARLY_BYTES: usize = 32 * 1024;

/// A cheap clone of one connection's sending half.
#[derive(Debug, Clone)]
pub struct Outbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pending: Mutex<Pending>,
    writer: Mutex<Writer>,
    wake: Notify,
    /// Told each time everything was written, or the connection died.
    drained: Notify,
    bytes_max: usize,
    /// Capacity a drained buffer keeps, so that idle connections cost little.
    keep_bytes: usize,
}

#[derive(Debug)]
struct Pending {
    buf: BytesMut,
    /// Bytes the writer has taken and not yet written.
    in_flight: usize,
    closing: bool,
}

struct Writer {
    io: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    buf: BytesMut,
    written: usize,
    /// Bytes that have left since the connection began.
    moved: u64,
    /// Something was written since the last flush: TLS keeps part of it back until then.
    unflushed: bool,
    /// The socket is full and the drive task waits for it. Nobody else may poll it meanwhile: that would replace
    /// the drive task's waker.
    blocked: bool,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("open", &self.io.is_some()).field("left", &self.left()).finish()
    }
}

impl Writer {
    fn left(&self) -> usize {
        self.buf.len() - self.written
    }
}

impl Outbox {
    /// At most `bytes_max` bytes wait; a drained buffer keeps `keep_bytes` of capacity.
    pub fn new(io: impl AsyncWrite + Send + Unpin + 'static, bytes_max: usize, keep_bytes: usize) -> Self {
        let pending = Pending { buf: BytesMut::new(), in_flight: 0, closing: false };
        let writer = Writer {
            io: Some(Box::new(io)),
            buf: BytesMut::new(),
            written: 0,
            moved: 0,
            unflushed: false,
            blocked: false,
        };
        let (pending, writer) = (Mutex::new(pending), Mutex::new(writer));
        Self(Arc::new(Shared {
            pending,
            writer,
            wake: Notify::new(),
            drained: Notify::new(),
            bytes_max,
            keep_bytes,
        }))
    }

    /// Appends what `write` writes, which is at most `len` bytes. Doesn't send yet: [`flush`](Self::flush) or
    /// [`wake`](Self::wake) does. A frame larger than the whole bound is taken when nothing else waits.
    pub fn push(&self, len: usize, write: impl FnOnce(&mut BytesMut)) -> Result<(), NotQueued> {
        self.push_within(len, self.0.bytes_max, write)
    }

    /// As [`push`](Self::push), under a lower bound of the caller's.
    pub fn push_within(
        &self,
        len: usize,
        bytes_max: usize,
        write: impl FnOnce(&mut BytesMut),
    ) -> Result<(), NotQueued> {
        let mut pending = self.0.pending.lock();
        if pending.closing {
            return Err(NotQueued::Closed);
        }
        let queued = pending.buf.len() + pending.in_flight;
        if queued != 0 && queued + len > bytes_max {
            return Err(NotQueued::Full { queued, bytes_max });
        }
        write(&mut pending.buf);
        Ok(())
    }

    /// Appends, sends and closes, in that order, whatever the bound: the last words of a connection.
    pub fn close_with(&self, write: impl FnOnce(&mut BytesMut)) {
        let mut pending = self.0.pending.lock();
        if !pending.closing {
            write(&mut pending.buf);
            pending.closing = true;
        }
        drop(pending);
        self.wake();
    }

    /// Closes after everything queued was sent. Pushing fails from now on.
    pub fn close(&self) {
        self.close_with(|_| {});
    }

    /// Whether the connection is closing or closed: nothing more can be pushed.
    pub fn is_closing(&self) -> bool {
        self.0.pending.lock().closing
    }

    /// Bytes that wait.
    pub fn queued(&self) -> usize {
        let pending = self.0.pending.lock();
        pending.buf.len() + pending.in_flight
    }

    /// Waits until fewer than `bytes` wait or the connection is closing: how a reader that feeds this connection
    /// holds back instead of losing what it read.
    pub async fn below(&self, bytes: usize) {
        loop {
            let drained = self.0.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if self.is_closing() || self.queued() < bytes {
                return;
            }
            drained.await;
        }
    }

    /// Has the [`drive`] task write soon.
    pub fn wake(&self) {
        self.0.wake.notify_one();
    }

    /// As [`flush`](Self::flush) when much waits already, otherwise as [`wake`](Self::wake).
    pub fn flush_or_wake(&self) {
        if self.0.pending.lock().buf.len() >= EARLY_BYTES { self.flush() } else { self.wake() }
    }

    /// As [`flush`](Self::flush), if much waits already: for the middle of a batch.
    pub fn flush_early(&self) {
        if self.0.pending.lock().buf.len() >= EARLY_BYTES {
            self.flush();
        }
    }

    /// Writes what it can now. What the socket won't take is left to the [`drive`] task.
    pub fn flush(&self) {
        let Some(mut writer) = self.0.writer.try_lock() else {
            // Someone is writing and may have looked at the buffer already: the drive task looks again.
            return self.wake();
        };
        if writer.blocked {
            return;
        }
        let mut cx = Context::from_waker(Waker::noop());
        let done = matches!(self.poll_write(&mut writer, &mut cx), Poll::Ready(Ok(())));
        drop(writer);
        if !done || self.0.pending.lock().closing {
            self.wake();
        }
    }

    /// Ready when nothing is left to write.
    fn poll_write(&self, writer: &mut Writer, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        writer.blocked = false;
        loop {
            if writer.left() == 0 && !self.take_pending(writer) {
                if std::mem::take(&mut writer.unflushed)
                    && let Some(io) = &mut writer.io
                    && let flushed = Pin::new(io).poll_flush(cx)
                    && !matches!(flushed, Poll::Ready(Ok(())))
                {
                    writer.unflushed = true;
                    writer.blocked = flushed.is_pending();
                    return flushed;
                }
                self.0.drained.notify_waiters();
                return Poll::Ready(Ok(()));
            }
            let Writer { io: Some(io), buf, written, moved, unflushed, blocked } = writer else {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            };
            match Pin::new(io).poll_write(cx, &buf[*written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => {
                    *written += n;
                    *moved += n as u64;
                    *unflushed = true;
                    self.0.pending.lock().in_flight = writer.left();
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    *blocked = true;
                    return Poll::Pending;
                }
            }
        }
    }

    /// Swaps the pending bytes into the drained writer; both buffers keep their room. False: nothing pends.
    fn take_pending(&self, writer: &mut Writer) -> bool {
        writer.buf.clear();
        writer.written = 0;
        if writer.buf.capacity() > self.0.keep_bytes {
            writer.buf = BytesMut::new();
        }
        let mut pending = self.0.pending.lock();
        std::mem::swap(&mut pending.buf, &mut writer.buf);
        pending.in_flight = writer.buf.len();
        pending.in_flight != 0
    }

    async fn write_all(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let mut writer = self.0.writer.lock();
            self.poll_write(&mut writer, cx)
        })
        .await
    }

    /// As `write_all`, as long as some bytes leave within each `stall`.
    async fn write_moving(&self, stall: Duration) -> io::Result<()> {
        loop {
            let before = self.0.writer.lock().moved;
            match tokio::time::timeout(stall, self.write_all()).await {
                Ok(written) => return written,
                Err(_) if self.0.writer.lock().moved != before => {}
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    fn is_drained_for_good(&self) -> bool {
        let pending = self.0.pending.lock();
        pending.closing && pending.buf.is_empty()
    }

    async fn shutdown(&self) -> io::Result<()> {
        let io = self.0.writer.lock().io.take();
        match io {
            Some(mut io) => std::future::poll_fn(|cx| Pin::new(&mut io).poll_shutdown(cx)).await,
            None => Ok(()),
        }
    }

    /// Marks the connection dead: what waits is dropped, pushing fails. Returns the bytes dropped.
    pub fn abandon(&self) -> usize {
        let mut pending = self.0.pending.lock();
        let dropped = pending.buf.len() + pending.in_flight;
        pending.buf = BytesMut::new();
        pending.closing = true;
        drop(pending);
        if let Some(mut writer) = self.0.writer.try_lock() {
            writer.io = None;
        }
        self.0.drained.notify_waiters();
        self.wake();
        dropped
    }
}

/// Writes whatever [`Outbox::wake`] asks for until the connection closes. Ends with `Ok` after an orderly close. Every
/// outbox needs exactly one.
pub async fn drive(outbox: Outbox) -> io::Result<()> {
    run(outbox, None).await
}

/// As [`drive`], but fails with `TimedOut` when the peer takes nothing for `stall` while something waits for it.
pub async fn drive_within(outbox: Outbox, stall: Duration) -> io::Result<()> {
    run(outbox, Some(stall)).await
}

async fn run(outbox: Outbox, stall: Option<Duration>) -> io::Result<()> {
    loop {
        outbox.0.wake.notified().await;
        // Tasks that are ready in this turn add to the same write.
        tokio::task::yield_now().await;
        let written = match stall {
            None => outbox.write_all().await,
            Some(stall) => outbox.write_moving(stall).await,
        };
        if let Err(error) = written {
            outbox.abandon();
            return Err(error);
        }
        if outbox.is_drained_for_good() {
            return outbox.shutdown().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BufMut;
    use tokio::io::AsyncReadExt;

    fn push(outbox: &Outbox, bytes: &[u8]) -> Result<(), NotQueued> {
        outbox.push(bytes.len(), |buf| buf.put_slice(bytes))
    }

    #[tokio::test]
    async fn what_is_pushed_arrives_once_and_in_order_whoever_writes_it() {
        let (a, mut b) = tokio::io::duplex(7);
        let outbox = Outbox::new(a, 1 << 20, 64);
        let driver = tokio::spawn(drive(outbox.clone()));
        let mut expected = Vec::new();
        for i in 0..200u8 {
            expected.extend([i; 5]);
            push(&outbox, &[i; 5]).unwrap();
            if i % 3 == 0 { outbox.flush() } else { outbox.wake() }
        }
        outbox.close();
        let mut got = Vec::new();
        b.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, expected);
        driver.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_bound_counts_what_the_writer_has_taken() {
        let (a, _b) = tokio::io::duplex(4);
        let outbox = Outbox::new(a, 10, 64);
        push(&outbox, &[0; 8]).unwrap();
        outbox.flush();
        assert_eq!(outbox.queued(), 4);
        push(&outbox, &[0; 6]).unwrap();
        assert_eq!(push(&outbox, &[0; 1]), Err(NotQueued::Full { queued: 10, bytes_max: 10 }));
        outbox.close();
        assert_eq!(push(&outbox, &[0; 1]), Err(NotQueued::Closed));
    }

    /// A peer that takes a byte now and then is slow, one that takes none is stuck.
    ///
    /// Holds: D66.
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_fails_the_driver_in_time() {
        let (a, mut b) = tokio::io::duplex(4);
        let outbox = Outbox::new(a, 100, 64);
        push(&outbox, &[7; 12]).unwrap();
        let started = tokio::time::Instant::now();
        let driver = tokio::spawn(drive_within(outbox.clone(), Duration::from_secs(10)));
        outbox.wake();
        for _ in 0..4 {
            // Sleep: the peer's pace is what is tested; time is paused.
            tokio::time::sleep(Duration::from_secs(8)).await;
            b.read_u8().await.unwrap();
        }
        let error = driver.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() < Duration::from_secs(55), "{:?}", started.elapsed());
        assert_eq!(push(&outbox, &[0; 1]), Err(NotQueued::Closed));
    }

    #[tokio::test]
    async fn a_broken_peer_ends_the_driver_and_refuses_more() {
        let (a, b) = tokio::io::duplex(4);
        drop(b);
        let outbox = Outbox::new(a, 10, 64);
        push(&outbox, &[0; 8]).unwrap();
        outbox.wake();
        assert!(drive(outbox.clone()).await.is_err());
        assert_eq!(push(&outbox, &[0; 1]), Err(NotQueued::Closed));
    }
}
