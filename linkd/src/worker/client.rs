//! A client's connection: read, decode in place, hand to the router, write.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use base::{LinkSid, Mono};
use net::Outbox;
use net::inbox::{Inbox, SharedScratch};
use net::outbox;
use net::ws::Pulse;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::Instant;
use wire::Frame;
use wire::code::{self, Code};
use wire::frame::{self, BadFrame, Decoded};
use wire::handshake;
use wire::link::Dispatch;
use wire::payload::{self, Family};

use super::Transport;
use super::state::{Client, State, Worker};
use crate::admission::Admission;
use crate::router::{Action, Event, Weight};

/// Capacity a client's drained outbox keeps.
const KEEP_BYTES: usize = 2 * 1024;
/// How long last words may take to leave, and the client to close.
const LINGER: Duration = Duration::from_secs(2);
/// How long a client that floods a full provider is held back at a time; then its next frames are judged again.
const HOLD: Duration = Duration::from_millis(500);

/// A connection whose layers stand.
pub struct Arrival {
    pub addr: SocketAddr,
    pub admission: Admission,
    pub transport: Transport,
    /// When it was accepted.
    pub since: Mono,
    /// Where a WebSocket's pings show.
    pub pulse: Option<Pulse>,
}

/// Takes a client in: gives it a sid, greets it and starts its task.
pub fn open<S>(worker: &Rc<Worker>, stream: S, arrival: Arrival)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (read, write) = tokio::io::split(stream);
    let outbox = Outbox::new(write, worker.settings.out_bytes_max, KEEP_BYTES);
    let ended = Rc::new(Notify::new());
    let now = worker.now();
    let Arrival { addr, admission, transport, since, pulse } = arrival;
    let handshaken = transport == Transport::WebSocket;
    let sid = worker.with(|state| {
        let mut actions = Vec::new();
        let opened = Event::ClientOpened { token: 0, addr, since, handshaken };
        state.router.step(now, opened, &mut actions);
        match actions.first() {
            Some(Action::Accept { sid, .. }) => {
                let (outbox, ended) = (outbox.clone(), ended.clone());
                state.add_client(Client { sid: *sid, outbox, ended, admission, transport, touched: false });
                Ok(*sid)
            }
            Some(Action::RefuseClient { code, .. }) => Err(*code),
            _ => Err(&code::BUSY),
        }
    });
    match sid {
        Ok(sid) => {
            if worker.settings.greet && !handshaken {
                // A new outbox has room.
                let _ = outbox.push(32, handshake::server_hello);
                outbox.flush();
            }
            tokio::task::spawn_local(serve(worker.clone(), sid, read, outbox, ended, pulse));
        }
        Err(code) => {
            outbox.close_with(|out| {
                wire::report::encode(out, wire::report::From::Link, code.number, code.name)
            });
            tokio::task::spawn_local(linger(read, outbox, worker.scratch.clone()));
        }
    }
}

/// Why the reading ended.
enum End {
    /// The client is gone.
    Gone,
    /// The router ended the session; its last words may still be on their way.
    Ended,
}

async fn serve<R>(
    worker: Rc<Worker>,
    sid: LinkSid,
    mut read: R,
    outbox: Outbox,
    ended: Rc<Notify>,
    pulse: Option<Pulse>,
) where
    R: AsyncRead + Unpin,
{
    let end = {
        let drive = outbox::drive_within(outbox.clone(), worker.settings.write_timeout);
        tokio::pin!(drive);
        tokio::select! {
            biased;
            written = &mut drive => match written {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    violate(&worker, sid, &code::SLOW_READER)
                }
                _ => End::Gone,
            },
            () = ended.notified() => {
                let words = async { tokio::join!(&mut drive, discard(&mut read, &worker.scratch)) };
                // A client that takes longer loses the last words.
                let _ = tokio::time::timeout(LINGER, words).await;
                End::Ended
            }
            end = receive(&worker, sid, &mut read, pulse) => {
                if let End::Ended = end {
                    let words = async { tokio::join!(&mut drive, discard(&mut read, &worker.scratch)) };
                    let _ = tokio::time::timeout(LINGER, words).await;
                }
                end
            }
        }
    };
    outbox.abandon();
    let now = worker.now();
    worker.with(|state| {
        if let End::Gone = end {
            state.step(now, Event::ClientClosed { sid }, &[]);
        }
        state.remove_client(sid);
        state.flush();
    });
}

/// Reads until the client or the router ends it.
async fn receive(
    worker: &Worker,
    sid: LinkSid,
    read: &mut (impl AsyncRead + Unpin),
    pulse: Option<Pulse>,
) -> End {
    let mut inbox = Inbox::default();
    let mut scratch = worker.scratch.clone();
    let mut partial_since: Option<Instant> = None;
    loop {
        let next = inbox.receive(read, &mut scratch, |bytes| decode(worker, sid, bytes));
        let heard = hear(next, pulse.as_ref());
        let heard = match partial_since {
            None => heard.await,
            Some(since) => {
                match tokio::time::timeout_at(since + worker.settings.frame_timeout, heard).await {
                    Ok(heard) => heard,
                    Err(_) => return violate(worker, sid, &code::FRAME_TIMEOUT),
                }
            }
        };
        let Batch { frames, congested } = match heard {
            Heard::Bytes(Ok(Some(Ok(batch)))) => batch,
            Heard::Bytes(Ok(Some(Err(SessionEnded)))) => return End::Ended,
            Heard::Bytes(Ok(None)) => return End::Gone,
            Heard::Bytes(Err(error)) => return broken(worker, sid, &error),
            Heard::Beats(beats) => {
                worker.step(Event::ClientBeats { sid, beats });
                if worker.with(|state| state.client(sid).is_none()) {
                    return End::Ended;
                }
                continue;
            }
        };
        // A frame may take its time only once: later bytes of the same frame don't prolong it.
        partial_since = match partial_since {
            _ if !inbox.is_partial() => None,
            Some(since) if frames == 0 => Some(since),
            _ => Some(Instant::now()),
        };
        if let Some(congested) = congested {
            // Only who fills it waits; a provider that never drains loses its connection, which ends the wait too.
            let _ = tokio::time::timeout(
                HOLD,
                congested.below(worker.settings.bounds.backlog_bytes_max as usize / 2),
            )
            .await;
        }
    }
}

type Read = io::Result<Option<Result<Batch, SessionEnded>>>;

/// What a client let hear of itself.
enum Heard {
    Bytes(Read),
    Beats(u32),
}

async fn hear(next: impl Future<Output = Read>, pulse: Option<&Pulse>) -> Heard {
    let Some(pulse) = pulse else { return Heard::Bytes(next.await) };
    tokio::select! {
        biased;
        read = next => Heard::Bytes(read),
        beats = pulse.beats() => Heard::Beats(beats),
    }
}

/// Reading failed: the client is gone, or it broke the rules of its transport and is told so.
fn broken(worker: &Worker, sid: LinkSid, error: &io::Error) -> End {
    match net::ws::violation(error) {
        None => End::Gone,
        Some(net::ws::Violation::TooLarge { .. }) => violate(worker, sid, &code::FRAME_TOO_LARGE),
        Some(_) => violate(worker, sid, &code::BAD_WEBSOCKET),
    }
}

struct SessionEnded;

/// What one read brought.
struct Batch {
    frames: usize,
    /// A provider that this read has filled beyond the high-water mark.
    congested: Option<Outbox>,
}

/// Decodes what one read brought and routes each frame.
fn decode(worker: &Worker, sid: LinkSid, bytes: &[u8]) -> (usize, Result<Batch, SessionEnded>) {
    let now = worker.now();
    let limit = worker.settings.frame_bytes_max;
    worker.with(|state| {
        let (mut used, mut frames) = (0, 0);
        let result = loop {
            match frame::decode(&bytes[used..], limit) {
                Ok(Decoded::Incomplete { .. }) => {
                    break Ok(Batch { frames, congested: state.congested() });
                }
                Ok(Decoded::Frame(frame)) => {
                    used += frame.whole.len();
                    frames += 1;
                    state.client_frame(now, sid, frame);
                }
                Err(bad) => {
                    let code = match bad {
                        BadFrame::TooLarge { .. } => &code::FRAME_TOO_LARGE,
                        BadFrame::Empty => &code::EMPTY_FRAME,
                    };
                    state.step(now, Event::ClientViolation { sid, code }, &[]);
                    break Err(SessionEnded);
                }
            }
            if state.client(sid).is_none() {
                break Err(SessionEnded);
            }
        };
        state.flush();
        (if result.is_ok() { used } else { bytes.len() }, result)
    })
}

fn violate(worker: &Worker, sid: LinkSid, code: &'static Code) -> End {
    worker.step(Event::ClientViolation { sid, code });
    End::Ended
}

impl State {
    /// One frame of a client. The usual case is one Dispatch.
    fn client_frame(&mut self, now: base::Mono, sid: LinkSid, frame: Frame<'_>) {
        self.counters.frame_in();
        let mut actions = std::mem::take(&mut self.actions);
        self.router.step(now, Event::ClientFrame { sid, frame }, &mut actions);
        let mut not_sent = None;
        for action in actions.drain(..) {
            match action {
                Action::Dispatch { to, sid, type_id, level, bound } => {
                    let dispatch = Dispatch { link_sid: sid, type_id };
                    // The router dispatches only what has a readable head.
                    let family = payload::family(frame.payload).unwrap_or(Family::Protocol);
                    let weight = Weight { family, level, bound, bytes: frame.whole.len() };
                    if let Err(why) = self.dispatch(now, to, dispatch, weight, frame.payload) {
                        not_sent = Some((to, why));
                    }
                }
                other => self.perform(other, &[]),
            }
        }
        self.actions = actions;
        if let Some((to, why)) = not_sent {
            self.step(now, Event::NotSent { to, sid, frame, why }, &[]);
        }
        while let Some(slow) = self.slow.pop() {
            self.step(now, Event::ClientViolation { sid: slow, code: &code::SLOW_READER }, &[]);
        }
        self.tell_judgements(now);
    }

    /// Of the providers that this batch has sent to, one that fills up faster than it drains.
    fn congested(&self) -> Option<Outbox> {
        let provider = |&slot: &u32| self.providers.get(slot as usize)?.as_ref();
        let high = self.bounds.backlog_bytes_max;
        let full = |outbox: &&Outbox| outbox.queued() as u64 > high;
        self.touched_providers.iter().filter_map(provider).map(|p| &p.link.outbox).find(full).cloned()
    }
}

/// Reads and forgets until the client closes: closing with unread bytes would reset the connection and take the last
/// words with it.
async fn discard(read: &mut (impl AsyncRead + Unpin), scratch: &SharedScratch) {
    let (mut inbox, mut scratch) = (Inbox::default(), scratch.clone());
    while let Ok(Some(_)) = inbox.receive(read, &mut scratch, |bytes| (bytes.len(), Ok::<_, ()>(()))).await {}
}

async fn linger(mut read: impl AsyncRead + Unpin, outbox: Outbox, scratch: SharedScratch) {
    let words = async { tokio::join!(outbox::drive(outbox), discard(&mut read, &scratch)) };
    let _ = tokio::time::timeout(LINGER, words).await;
}
