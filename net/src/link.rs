//! A node connection after its hello: notices, calls and answers out, frames in, and pings that notice silence.

use std::io;
use std::time::Duration;

use base::Generation;
use bytes::Bytes;
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, MissedTickBehavior};
use wire::code::Code;
use wire::hello::Refusal;
use wire::node::{self, Decoded, Frame, Kind, Meta};

use crate::Peer;
use crate::calls::{CallError, Calls, Pending};
use crate::inbox::{Inbox, Scratch};
use crate::outbox::{self, NotQueued, Outbox};

/// Bytes that may wait for a peer before senders are refused.
pub const OUTBOX_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Capacity that a drained outbox keeps.
const OUTBOX_KEEP_BYTES: usize = 256 * 1024;
/// A peer not heard for this long is asked; not heard for another such time, it is gone.
pub const BEAT: Duration = Duration::from_secs(3);

/// The sending side of a node connection and who is at its other end. A clone is the same connection.
#[derive(Debug, Clone)]
pub struct Link {
    pub peer: Peer,
    pub generation: Generation,
    pub outbox: Outbox,
    pub calls: Calls,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum Closed {
    #[error("the peer closed it")]
    ByPeer,
    #[error("the peer said goodbye with code {}: {}", .0.code, .0.text)]
    Goodbye(Refusal),
    #[error("the peer is silent")]
    Silent,
    #[error("it broke: {0}")]
    Broken(#[from] io::Error),
    #[error("the peer sent what this wire doesn't know: {0}")]
    BadFrame(#[from] node::BadFrame),
    #[error("closed by us: {}: {text}", .code.name)]
    Refused { code: &'static Code, text: String },
}

/// Receives the frames that are not the transport's own.
pub trait Handler {
    /// One frame, in place. An error closes the connection with that code.
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed>;
    /// Runs `batch`, which handles all frames of one read: where to set up what they share.
    fn around<R>(&mut self, batch: impl FnOnce(&mut Self) -> R) -> R {
        batch(self)
    }
    /// All frames of one read were handled: the moment to send what they caused.
    fn batch_end(&mut self) {}
    /// An answer came for which nobody waits: late, or to a call that was never made.
    fn stray_reply(&mut self) {}
    /// The caller of `call` no longer waits.
    fn cancelled(&mut self, _call: u64) {}
}

impl Link {
    pub fn new(peer: Peer, generation: Generation, write: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let outbox = Outbox::new(write, OUTBOX_BYTES_MAX, OUTBOX_KEEP_BYTES);
        Self { peer, generation, outbox, calls: Calls::default() }
    }

    /// Queues a frame; [`Outbox::flush`] or [`Outbox::wake`] sends it.
    pub fn push(&self, meta: &Meta, head: &[u8], body: &[u8]) -> Result<(), NotQueued> {
        let size = node::size(meta, head.len(), body.len());
        self.outbox.push(size, |out| node::encode(out, meta, head, body))
    }

    /// As [`push`](Self::push), if fewer than `bytes_max` wait then.
    pub fn push_within(
        &self,
        bytes_max: usize,
        meta: &Meta,
        head: &[u8],
        body: &[u8],
    ) -> Result<(), NotQueued> {
        let size = node::size(meta, head.len(), body.len());
        self.outbox.push_within(size, bytes_max, |out| node::encode(out, meta, head, body))
    }

    /// Queues a frame with a protobuf body.
    pub fn push_message(&self, meta: &Meta, message: &impl Message) -> Result<(), NotQueued> {
        let size = node::size(meta, 0, message.encoded_len());
        self.outbox.push(size, |out| node::encode_message(out, meta, message))
    }

    /// Sends a frame that wants no answer.
    pub fn notice(&self, kind: Kind, head: &[u8], body: &[u8]) -> Result<(), NotQueued> {
        self.push(&Meta::notice(kind), head, body)?;
        self.outbox.wake();
        Ok(())
    }

    /// Calls the peer and waits for the answer at most `timeout`. Dropping the future tells the callee that nobody
    /// waits any more.
    pub async fn call<A: Message + Default>(
        &self,
        kind: Kind,
        message: &impl Message,
        timeout: Duration,
    ) -> Result<A, CallError> {
        let bytes = self.call_raw(kind, message, timeout).await?;
        A::decode(bytes).map_err(|_| CallError::BadAnswer)
    }

    async fn call_raw(
        &self,
        kind: Kind,
        message: &impl Message,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let pending = self.calls.begin()?;
        let deadline_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        let meta = Meta::call(kind, pending.call, deadline_ms);
        self.push_message(&meta, message)?;
        self.answer(pending, timeout).await
    }

    async fn answer(&self, pending: Pending, timeout: Duration) -> Result<Bytes, CallError> {
        self.outbox.wake();
        let mut waiting = Waiting { link: self, pending };
        match tokio::time::timeout(timeout, waiting.pending.wait()).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Timeout),
        }
    }

    /// As [`call`](Self::call), with a head of its own and a body that is no message of ours.
    pub async fn call_with<A: Message + Default>(
        &self,
        meta: Meta,
        head: &[u8],
        body: &[u8],
        timeout: Duration,
    ) -> Result<A, CallError> {
        let pending = self.calls.begin()?;
        let deadline_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        let meta = Meta { call: pending.call, deadline_ms, ..meta };
        self.push(&meta, head, body)?;
        let bytes = self.answer(pending, timeout).await?;
        A::decode(bytes).map_err(|_| CallError::BadAnswer)
    }

    /// Answers a call with its result.
    pub fn reply(&self, call: u64, message: &impl Message) -> Result<(), NotQueued> {
        self.push_message(&Meta::call(Kind::REPLY, call, 0), message)?;
        self.outbox.wake();
        Ok(())
    }

    /// Answers a call with why not.
    pub fn refuse(&self, call: u64, code: &Code, text: impl Into<String>) -> Result<(), NotQueued> {
        let body = refusal(code, text).encode_to_vec();
        self.push(&Meta::call(Kind::REPLY, call, 0), REFUSED, &body)?;
        self.outbox.wake();
        Ok(())
    }

    /// Tells the peer why, at once if the socket takes it, and closes.
    pub fn goodbye(&self, code: &Code, text: impl Into<String>) {
        let refusal = refusal(code, text);
        self.outbox.close_with(|out| node::encode_message(out, &Meta::notice(Kind::GOODBYE), &refusal));
        self.outbox.flush();
    }

    /// Decodes what one read brought. Returns the bytes used up.
    fn decode(&self, bytes: &[u8], handler: &mut impl Handler) -> (usize, Result<(), Closed>) {
        let decoded = handler.around(|handler| self.decode_all(bytes, handler));
        handler.batch_end();
        decoded
    }

    fn decode_all(&self, bytes: &[u8], handler: &mut impl Handler) -> (usize, Result<(), Closed>) {
        let mut used = 0;
        loop {
            match node::decode(&bytes[used..], node::FRAME_BYTES_MAX) {
                Ok(Decoded::Incomplete { .. }) => return (used, Ok(())),
                Ok(Decoded::Frame(frame)) => {
                    used += frame.size;
                    if let Err(closed) = self.handle(frame, handler) {
                        return (used, Err(closed));
                    }
                }
                Err(error) => return (used, Err(error.into())),
            }
        }
    }

    #[inline]
    fn handle(&self, frame: Frame<'_>, handler: &mut impl Handler) -> Result<(), Closed> {
        match frame.meta.kind {
            Kind::REPLY => {
                let answer = if frame.head.is_empty() {
                    Ok(Bytes::copy_from_slice(frame.body))
                } else {
                    Refusal::decode(frame.body)
                        .map_or(Err(CallError::BadAnswer), |r| Err(CallError::Refused(r)))
                };
                if !self.calls.answer(frame.meta.call, answer) {
                    tracing::debug!(peer = %self.peer.node, call = frame.meta.call, "stray answer dropped");
                    handler.stray_reply();
                }
            }
            Kind::PING => {
                // A full outbox needs no pong: the bytes in it show that we live.
                let _ = self.push(&Meta::call(Kind::PONG, frame.meta.call, 0), &[], &[]);
                self.outbox.wake();
            }
            Kind::PONG => {}
            Kind::CANCEL => handler.cancelled(frame.meta.call),
            Kind::GOODBYE => {
                let refusal = Refusal::decode(frame.body).unwrap_or_default();
                return Err(Closed::Goodbye(refusal));
            }
            _ => return handler.frame(frame),
        }
        Ok(())
    }
}

/// The head of a REPLY that refuses.
const REFUSED: &[u8] = &[1];

fn refusal(code: &Code, text: impl Into<String>) -> Refusal {
    let retry_after_ms = match code.retry {
        base::Retry::After(span) => u32::try_from(span.as_millis()).unwrap_or(u32::MAX),
        _ => 0,
    };
    Refusal { code: code.number, text: text.into(), retry_after_ms }
}

struct Waiting<'a> {
    link: &'a Link,
    pending: Pending,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.pending.give_up() {
            // When the outbox is full the callee's own deadline ends the call.
            let _ = self.link.notice_call(Kind::CANCEL, self.pending.call);
        }
    }
}

impl Link {
    fn notice_call(&self, kind: Kind, call: u64) -> Result<(), NotQueued> {
        self.push(&Meta::call(kind, call, 0), &[], &[])?;
        self.outbox.wake();
        Ok(())
    }
}

/// Receives until the connection ends, which it says why. Runs beside [`crate::outbox::drive`]. Every call still in
/// flight fails when it ends.
pub async fn run<R, H>(link: &Link, read: &mut R, scratch: &mut impl Scratch, handler: &mut H) -> Closed
where
    R: AsyncRead + Unpin,
    H: Handler,
{
    let closed = receive(link, read, scratch, handler).await;
    if let Closed::Refused { code, text } = &closed {
        link.goodbye(code, text.clone());
    }
    link.calls.close();
    closed
}

/// As [`run`], and writes as well, as whoever was dialled does: the connection is over when either is. Nothing that waited
/// is kept.
pub async fn serve<R, H>(link: &Link, read: &mut R, scratch: &mut impl Scratch, handler: &mut H) -> Closed
where
    R: AsyncRead + Unpin,
    H: Handler,
{
    let closed = tokio::select! {
        biased;
        written = outbox::drive(link.outbox.clone()) => match written {
            Ok(()) => Closed::ByPeer,
            Err(error) => Closed::Broken(error),
        },
        closed = run(link, read, scratch, handler) => closed,
    };
    link.calls.close();
    link.outbox.abandon();
    closed
}

async fn receive<R, H>(link: &Link, read: &mut R, scratch: &mut impl Scratch, handler: &mut H) -> Closed
where
    R: AsyncRead + Unpin,
    H: Handler,
{
    let mut inbox = Inbox::default();
    let mut beat = tokio::time::interval_at(Instant::now() + BEAT, BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut silent_beats = 0;
    loop {
        tokio::select! {
            biased;
            received = inbox.receive(read, scratch, |bytes| link.decode(bytes, handler)) => {
                silent_beats = 0;
                match received {
                    Ok(Some(Ok(()))) => {}
                    Ok(Some(Err(closed))) => return closed,
                    Ok(None) => return Closed::ByPeer,
                    Err(error) => return Closed::Broken(error),
                }
            }
            _ = beat.tick() => {
                silent_beats += 1;
                if silent_beats > 2 && !base::planted::is("silence_unnoticed") {
                    return Closed::Silent;
                }
                let _ = link.notice_call(Kind::PING, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::Role;
    use base::{Epoch, NodeId};
    use wire::code;
    use wire::hello::Hello;
    use wire::node::Owned;

    #[derive(Default)]
    struct Collect(Vec<Owned>, Vec<u64>);

    impl Handler for Collect {
        fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
            self.0.push(frame.into());
            Ok(())
        }
        fn cancelled(&mut self, call: u64) {
            self.1.push(call);
        }
    }

    /// Answers every call of kind 100 with its own message and refuses the others.
    struct Echo(Link);

    impl Handler for Echo {
        fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
            let hello = Hello::decode(frame.body).unwrap();
            let sent = match frame.meta.kind {
                Kind(100) => self.0.reply(frame.meta.call, &hello),
                _ => self.0.refuse(frame.meta.call, &code::BUSY, "later"),
            };
            sent.map_err(|error| Closed::Broken(io::Error::other(error)))
        }
    }

    fn link(io: tokio::io::DuplexStream) -> (Link, tokio::io::ReadHalf<tokio::io::DuplexStream>) {
        let (read, write) = tokio::io::split(io);
        let node = NodeId::new("n").unwrap();
        let peer = Peer { node, role: Role::Linkd, epoch: Epoch(1), features: 0, worker: 0 };
        let link = Link::new(peer, Generation(1), write);
        tokio::spawn(crate::outbox::drive(link.outbox.clone()));
        (link, read)
    }

    #[tokio::test]
    async fn calls_are_answered_or_refused() {
        let (a, b) = tokio::io::duplex(64);
        let ((near, mut near_read), (far, mut far_read)) = (link(a), link(b));
        let (n, f) = (near.clone(), far.clone());
        tokio::spawn(
            async move { run(&n, &mut near_read, &mut vec![0; 256], &mut Collect::default()).await },
        );
        tokio::spawn(async move { run(&f.clone(), &mut far_read, &mut vec![0; 256], &mut Echo(f)).await });
        let hello = Hello { node: "x".repeat(100), ..Hello::default() };
        let answer: Hello = near.call(Kind(100), &hello, BEAT).await.unwrap();
        assert_eq!(answer, hello);
        let refused = near.call::<Hello>(Kind(101), &hello, BEAT).await.unwrap_err();
        assert_eq!((refused.code(), near.calls.in_flight()), (&code::BUSY, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unanswered_call_times_out_and_the_callee_is_told() {
        let (a, b) = tokio::io::duplex(4096);
        let ((near, _near_read), (far, mut far_read)) = (link(a), link(b));
        let timed_out = near.call::<Hello>(Kind(100), &Hello::default(), Duration::from_millis(50)).await;
        assert_eq!(timed_out.unwrap_err(), CallError::Timeout);
        near.outbox.close();
        let mut seen = Collect::default();
        let closed = run(&far, &mut far_read, &mut vec![0; 256], &mut seen).await;
        assert!(matches!(closed, Closed::ByPeer), "{closed}");
        assert_eq!((seen.0.len(), seen.0[0].meta.deadline_ms, seen.1), (1, 50, vec![1]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_noticed_and_its_calls_fail() {
        let (a, _b) = tokio::io::duplex(4096);
        let (near, mut read) = link(a);
        let caller = near.clone();
        let call = tokio::spawn(async move {
            caller.call::<Hello>(Kind(100), &Hello::default(), Duration::from_secs(60)).await
        });
        let started = Instant::now();
        let closed = run(&near, &mut read, &mut vec![0; 256], &mut Collect::default()).await;
        assert!(matches!(closed, Closed::Silent), "{closed}");
        assert!(started.elapsed() <= 3 * BEAT);
        assert_eq!(call.await.unwrap().unwrap_err(), CallError::Broken);
    }
}
