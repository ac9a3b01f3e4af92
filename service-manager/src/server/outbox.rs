//! What waits to leave for one session: encoded messages, bounded by number and by bytes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;
use wire::directory::{self as msg, from_directory};

/// A message as it goes out. What many are told is encoded once.
pub(super) fn encode(kind: from_directory::Kind) -> Bytes {
    msg::FromDirectory { kind: Some(kind) }.encode_to_vec().into()
}

/// The core's end. A clone is the same outbox.
#[derive(Debug, Clone)]
pub struct Outbox {
    to: mpsc::Sender<Result<Bytes, Status>>,
    waiting_bytes: Arc<AtomicUsize>,
    bytes_max: usize,
}

/// The session does not read what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// The session's end.
#[derive(Debug)]
pub struct Answers {
    from: mpsc::Receiver<Result<Bytes, Status>>,
    waiting_bytes: Arc<AtomicUsize>,
}

/// An outbox for at most so many messages of so many bytes together; one message always fits.
pub fn outbox(messages_max: usize, bytes_max: usize) -> (Outbox, Answers) {
    let (to, from) = mpsc::channel(messages_max);
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    (Outbox { to, waiting_bytes: waiting_bytes.clone(), bytes_max }, Answers { from, waiting_bytes })
}

impl Outbox {
    /// Queues a message. A session that went away is no error: its reading half reports it.
    pub(super) fn push(&self, said: Bytes) -> Result<(), Full> {
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        if waiting > 0 && waiting + said.len() > self.bytes_max {
            return Err(Full);
        }
        // Counted before it can be read.
        self.waiting_bytes.fetch_add(said.len(), Ordering::Relaxed);
        match self.to.try_send(Ok(said)) {
            Err(mpsc::error::TrySendError::Full(_)) => Err(Full),
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
        }
    }

    /// The last that is said: what is wrong with the stream. Who reads nothing hears nothing of it.
    pub(super) fn fail(&self, status: Status) {
        let _ = self.to.try_send(Err(status));
    }
}

impl Stream for Answers {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let said = ready!(self.from.poll_recv(cx));
        if let Some(Ok(said)) = &said {
            self.waiting_bytes.fetch_sub(said.len(), Ordering::Relaxed);
        }
        Poll::Ready(said)
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;

    /// Holds: BI-092.
    #[tokio::test]
    async fn messages_and_bytes_are_bounded_and_one_always_fits() {
        let (outbox, mut answers) = outbox(3, 100);
        let message = |bytes: usize| Bytes::from(vec![7; bytes]);
        assert_eq!(outbox.push(message(150)), Ok(()));
        assert_eq!(outbox.push(message(1)), Err(Full));
        assert_eq!(answers.next().await.unwrap().unwrap().len(), 150);
        for expected in [Ok(()), Ok(()), Ok(()), Err(Full)] {
            assert_eq!(outbox.push(message(10)), expected);
        }
        drop(answers);
        assert_eq!(outbox.push(message(10)), Ok(()), "whoever went away is not slow");
    }
}
