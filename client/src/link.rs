//! One connection from its dial to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Secret, TypeId};
use bytes::BytesMut;
use net::inbox::Inbox;
use net::outbox::{self, NotQueued, Outbox};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use wire::auth::{self, AUTH};
use wire::handshake;
use wire::payload::{self, Head};

use crate::calls::{Answer, Calls};
use crate::client::Counters;
use crate::reader::Reader;
use crate::{Cause, Error, Event, Options};

/// A connection on which we said nothing or heard nothing for this long gets a keep-alive.
pub const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(25);
/// A server not heard for this long, keep-alives unanswered, is gone.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);
/// A report this fresh, with nothing behind it, is why the server closed.
const LAST_WORDS_AGE_MAX: Duration = Duration::from_secs(5);
/// How long a close waits for what is queued to leave, and then for the server's own close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Room for one read. Small: a process may hold a thousand clients.
const READ_BYTES: usize = 8 * 1024;
/// Capacity that a drained outbox keeps.
const OUTBOX_KEEP_BYTES: usize = 16 * 1024;
/// The most that a payload's head takes: family, code and session.
const HEAD_BYTES_MAX: usize = 1 + 9 + 9;

/// The sending side of one connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub outbox: Outbox,
    pub calls: Calls,
    since: Instant,
    /// Microseconds after `since`.
    last_sent: AtomicU64,
}

impl Link {
    /// Queues one frame and has it sent: at once when it is the only one, else together with others of this turn.
    pub fn send(
        &self,
        type_id: TypeId,
        head: Head,
        message: &impl Message,
        payload_bytes_max: u32,
    ) -> Result<(), Error> {
        let len = message.encoded_len();
        if len + HEAD_BYTES_MAX > payload_bytes_max as usize {
            return Err(Error::TooLarge { bytes: len + HEAD_BYTES_MAX, bytes_max: payload_bytes_max });
        }
        let whole = wire::frame::HEADER_BYTES + HEAD_BYTES_MAX + len;
        let write = |out: &mut BytesMut| {
            payload::encode_frame(out, type_id, head, |out| {
                // `BytesMut` grows as needed, so encoding into it can't run out of room.
                let _ = message.encode(out);
            });
        };
        self.outbox.push(whole, write).map_err(|error| match error {
            NotQueued::Full { queued, .. } => Error::Busy { waiting: queued },
            NotQueued::Closed => Error::Closed(Cause::ByUs),
        })?;
        self.last_sent.store(self.since.elapsed().as_micros() as u64, Ordering::Relaxed);
        if self.calls.in_flight() <= 1 {
            self.outbox.flush()
        } else {
            self.outbox.wake()
        }
        Ok(())
    }

    fn last_sent(&self) -> Instant {
        self.since + Duration::from_micros(self.last_sent.load(Ordering::Relaxed))
    }

    fn keep_alive(&self) {
        let session = self.calls.number();
        // A full outbox needs no keep-alive: the bytes in it show that we live.
        if self.outbox.push(64, |out| handshake::keep_alive(out, session)).is_ok() {
            self.outbox.wake();
        }
    }
}

/// The receiving side, held by the task that serves the connection.
pub(crate) struct Connection<S> {
    pub link: Arc<Link>,
    read: ReadHalf<S>,
    inbox: Inbox,
    scratch: Vec<u8>,
    reader: Reader,
    writer: JoinHandle<std::io::Result<()>>,
    heard: Instant,
    asked: Instant,
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        self.link.outbox.abandon();
        self.link.calls.close(&Cause::ByUs);
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Connection<S> {
    /// Handshakes and logs in on a fresh stream, until `give_up`.
    pub async fn open(
        stream: S,
        addr: &str,
        options: &Options,
        counters: Arc<Counters>,
        give_up: Instant,
    ) -> Result<Self, Error> {
        let mut connection = Self::new(stream, options, counters);
        let late = || Error::ConnectTimeout { addr: addr.to_owned(), within: options.connect_timeout };
        let token = timeout_at(give_up, options.token.get()).await.map_err(|_| late())?;
        let token = token.map_err(Error::NoToken)?;
        let opened = timeout_at(give_up, connection.log_in(options, &token)).await.map_err(|_| late())?;
        match opened {
            Ok(Ok((0, _))) => Ok(connection),
            Ok(Ok((code, _))) => Err(Error::refused(code)),
            Ok(Err(Cause::BadFrame(reason))) | Err(Cause::BadFrame(reason)) => {
                Err(Error::NotLinkd { addr: addr.to_owned(), reason })
            }
            Ok(Err(cause)) | Err(cause) => Err(Error::Closed(cause)),
        }
    }

    fn new(stream: S, options: &Options, counters: Arc<Counters>) -> Self {
        let (read, write) = tokio::io::split(stream);
        let outbox = Outbox::new(write, options.outbox_bytes_max, OUTBOX_KEEP_BYTES);
        let writer = tokio::spawn(outbox::drive(outbox.clone()));
        let now = Instant::now();
        let link =
            Arc::new(Link { outbox, calls: Calls::default(), since: now, last_sent: AtomicU64::new(0) });
        let reader = Reader::new(link.clone(), counters);
        let (inbox, scratch) = (Inbox::default(), vec![0; READ_BYTES]);
        Self { link, read, inbox, scratch, reader, writer, heard: now, asked: now }
    }

    /// The answer to Auth, or why none came.
    async fn log_in(&mut self, options: &Options, token: &Secret) -> Result<Answer, Cause> {
        while options.handshake && !self.reader.greeted {
            self.receive().await?;
        }
        let Ok(mut answer) = self.link.calls.begin(AUTH, 1) else { return Err(Cause::ByUs) };
        let auth = auth::Auth {
            account: options.account.as_bytes(),
            token: token.expose(),
            app_version: options.app_version.as_bytes(),
            queue_token: options.queue_token.expose(),
        };
        // One write: the handshake's end and the login behind it. An outbox takes its first bytes whatever the bound.
        let _ = self.link.outbox.push(0, |out| {
            if options.handshake {
                handshake::client_done(out);
            }
            payload::encode_frame(out, AUTH, Head::request(answer.session), |out| auth.encode(out));
        });
        self.link.outbox.wake();
        loop {
            tokio::select! {
                biased;
                answer = answer.wait() => return Ok(answer),
                received = self.receive() => {
                    if let Err(cause) = received {
                        // An answer and the close behind it may come in one read.
                        self.link.calls.close(&cause);
                        return Ok(answer.wait().await);
                    }
                }
            }
        }
    }

    /// One read and everything in it.
    async fn receive(&mut self) -> Result<(), Cause> {
        let Self { inbox, read, scratch, reader, .. } = self;
        let received = inbox.receive(read, scratch, |bytes| reader.decode(bytes)).await;
        match received {
            Ok(Some(Ok(()))) => {
                self.heard = Instant::now();
                Ok(())
            }
            Ok(Some(Err(cause))) => Err(cause),
            Ok(None) => Err(self.ended(Cause::ByServer)),
            Err(error) => Err(self.ended(Cause::Broken(error.to_string()))),
        }
    }

    /// A report right before the end says why. One that came long before has nothing to do with it.
    fn ended(&mut self, otherwise: Cause) -> Cause {
        let fresh = self.heard.elapsed() <= LAST_WORDS_AGE_MAX;
        self.reader.last_words.take().filter(|_| fresh).map_or(otherwise, Cause::Reported)
    }

    /// Serves the connection to its end. Every request still in flight fails then.
    pub async fn run(mut self, events: &Outgoing, cancel: &CancellationToken) -> Cause {
        self.heard = Instant::now();
        let cause = tokio::select! {
            biased;
            () = cancel.cancelled() => Cause::ByUs,
            cause = self.serve(events) => cause,
        };
        self.link.calls.close(&cause);
        if cause == Cause::ByUs {
            self.say_goodbye().await;
        }
        cause
    }

    async fn serve(&mut self, events: &Outgoing) -> Cause {
        let mut beat = std::pin::pin!(sleep_until(self.next_beat()));
        loop {
            self.deliver(events).await;
            tokio::select! {
                biased;
                () = &mut beat => {
                    if self.heard.elapsed() >= SILENCE_MAX {
                        return Cause::Silent(SILENCE_MAX);
                    }
                    self.beat();
                    beat.as_mut().reset(self.next_beat());
                }
                received = self.receive() => {
                    if let Err(cause) = received {
                        self.deliver(events).await;
                        return cause;
                    }
                }
            }
        }
    }

    /// Hands over what was gathered. While the queue is full the connection is not read, but we stay alive for the
    /// server; its silence doesn't count against it, for we don't listen.
    async fn deliver(&mut self, events: &Outgoing) {
        let mut gathered = std::mem::take(&mut self.reader.events);
        if base::planted::is("client_reverses_pushes") {
            gathered.reverse();
        }
        for event in gathered {
            let Some(event) = events.offer(event) else { continue };
            let mut waiting = std::pin::pin!(events.put(event));
            loop {
                let beat = self.next_beat();
                tokio::select! {
                    biased;
                    () = &mut waiting => break,
                    () = sleep_until(beat) => self.beat(),
                }
                self.heard = Instant::now();
            }
            self.heard = Instant::now();
        }
    }

    /// When to look again whether a keep-alive is due or the server is silent.
    fn next_beat(&self) -> Instant {
        let idle_since = self.link.last_sent().min(self.heard).max(self.asked);
        (idle_since + KEEP_ALIVE_EVERY).min(self.heard + SILENCE_MAX)
    }

    /// Sends a keep-alive if one is due: whatever was said or heard meanwhile has put it off.
    fn beat(&mut self) {
        if Instant::now() < self.next_beat() {
            return;
        }
        self.asked = Instant::now();
        self.link.keep_alive();
    }

    /// Lets what is queued leave, and waits for the server to close too: a socket closed with unread bytes would make
    /// the kernel throw our last frames away.
    async fn say_goodbye(&mut self) {
        self.link.outbox.close();
        let _ = timeout(CLOSE_TIMEOUT, &mut self.writer).await;
        let drained = async { while self.receive().await.is_ok() {} };
        let _ = timeout(CLOSE_TIMEOUT, drained).await;
    }
}

/// The filling end of the event queue.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    sender: Option<mpsc::Sender<Event>>,
    counters: Arc<Counters>,
}

impl Outgoing {
    pub fn new(sender: Option<mpsc::Sender<Event>>, counters: Arc<Counters>) -> Self {
        Self { sender, counters }
    }

    /// Queues the event if there is room; else gives it back.
    pub fn offer(&self, event: Event) -> Option<Event> {
        let Some(sender) = &self.sender else {
            self.counters.ignored.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        match sender.try_send(event) {
            Ok(()) => None,
            Err(mpsc::error::TrySendError::Full(event)) => {
                if self.counters.stalls.fetch_add(1, Ordering::Relaxed) == 0 {
                    let bound = sender.max_capacity();
                    tracing::warn!(bound, "events wait to be taken; the connection is not read until one is");
                }
                (!base::planted::is("client_drops_when_full")).then_some(event)
            }
            Err(mpsc::error::TrySendError::Closed(_)) => {
                self.counters.ignored.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    /// Queues the event as soon as there is room.
    pub async fn put(&self, event: Event) {
        if let Some(sender) = &self.sender {
            // Closed: the client and all its event handles are gone.
            let _ = sender.send(event).await;
        }
    }
}
