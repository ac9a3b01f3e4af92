//! The door: requests, notices and events of one player's connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::TypeId;
use bytes::Bytes;
use net::{NetIo, Tcp};
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use wire::payload::Head;
use wire::{Notify, Rpc};

use crate::event::Queue;
use crate::keeper::Keeper;
use crate::link::{Link, Outgoing};
use crate::{Cause, Error, Events, Options, Pushes};

/// One player's connection to the cluster. A clone is the same connection; it closes when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Client(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    cancel: CancellationToken,
    /// The task behind the client ends with the last handle.
    _closes: DropGuard,
}

/// What the client's handles and the task behind them share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub options: Options,
    pub counters: Arc<Counters>,
    /// The task behind the client has ended.
    pub ended: CancellationToken,
    state: Mutex<State>,
    events: Queue,
}

#[derive(Debug, Clone)]
pub(crate) enum State {
    /// The link and the address it leads to.
    Open(Arc<Link>, String),
    Reconnecting,
    Closed(Cause),
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub pushes: AtomicU64,
    pub ignored: AtomicU64,
    pub stalls: AtomicU64,
    pub late_replies: AtomicU64,
    pub unexpected: AtomicU64,
    pub reconnects: AtomicU64,
}

/// What a client has counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Pushes received.
    pub pushes: u64,
    /// Events dropped because nobody wants any: see [`Options::events_max`].
    pub ignored: u64,
    /// Times the connection was not read because the event queue was full.
    pub stalls: u64,
    /// Answers that came after their request was given up, or to no request.
    pub late_replies: u64,
    /// Messages of the framework or requests to us that this client doesn't know.
    pub unexpected: u64,
    pub reconnects: u64,
}

impl Shared {
    pub fn set(&self, state: State) {
        *self.state.lock() = state;
    }

    fn link(&self) -> Result<Arc<Link>, Error> {
        match &*self.state.lock() {
            State::Open(link, _) => Ok(link.clone()),
            State::Reconnecting => Err(Error::Reconnecting),
            State::Closed(cause) => Err(Error::Closed(cause.clone())),
        }
    }
}

impl Client {
    /// Connects over TCP, handshakes and logs in as the account of `options`. Tries each address once.
    ///
    /// Errors: [`Error::BadOptions`] without dialling; [`Error::Unreachable`], [`Error::ConnectTimeout`] and
    /// [`Error::NotLinkd`] about the last address; [`Error::Refused`] or [`Error::Closed`] with the cluster's code
    /// when it doesn't want this login.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), client::Error> {
    /// use client::{Client, Options};
    /// let client = Client::connect(Options::new("127.0.0.1:7710", "alice")).await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(options: Options) -> Result<Self, Error> {
        Self::connect_over(Tcp, options).await
    }

    /// As [`connect`](Self::connect), over another network: a simulated one, or a test's double.
    pub async fn connect_over<N: NetIo>(io: N, options: Options) -> Result<Self, Error> {
        options.check()?;
        // Room for one when nobody wants events: a channel needs it, and its sender is thrown away.
        let (sender, receiver) = mpsc::channel(options.events_max.max(1));
        let sender = (options.events_max > 0).then_some(sender);
        let counters = Arc::new(Counters::default());
        let shared = Arc::new(Shared {
            options,
            counters: counters.clone(),
            ended: CancellationToken::new(),
            state: Mutex::new(State::Reconnecting),
            events: Arc::new(tokio::sync::Mutex::new(receiver)),
        });
        let cancel = CancellationToken::new();
        let closes = cancel.clone().drop_guard();
        let mut keeper = Keeper::new(io, shared.clone(), Outgoing::new(sender, counters), cancel.clone());
        let connection = keeper.first().await?;
        tokio::spawn(keeper.run(connection));
        Ok(Self(Arc::new(Handle { shared, cancel, _closes: closes })))
    }

    /// Asks and waits for the answer, at most [`Options::deadline`]. Dropping the future forgets the request; the
    /// cluster may execute it all the same.
    ///
    /// ```no_run
    /// # use client::{Client, Error, Rpc};
    /// # #[derive(Clone, PartialEq, prost::Message)]
    /// # struct Say { #[prost(string, tag = "1")] room: String, #[prost(string, tag = "2")] text: String }
    /// # #[derive(Clone, PartialEq, prost::Message)]
    /// # struct SayReply {}
    /// # struct Rooms;
    /// # impl Rooms { const SAY: Rpc<Say, SayReply> = Rpc::new(2, 1, "Rooms.say"); }
    /// # async fn example(client: Client) -> Result<(), Error> {
    /// let say = Say { room: "attic".into(), text: "hello".into() };
    /// match client.request(Rooms::SAY, say).await {
    ///     Ok(SayReply {}) => {}
    ///     Err(error) if error.game_code().is_some() => println!("the game says no: {error}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn request<Q, A>(&self, rpc: Rpc<Q, A>, message: Q) -> Result<A, Error>
    where
        Q: Message,
        A: Message + Default,
    {
        self.request_within(rpc, message, self.0.shared.options.deadline).await
    }

    /// As [`request`](Self::request), with a deadline of its own.
    pub async fn request_within<Q, A>(&self, rpc: Rpc<Q, A>, message: Q, within: Duration) -> Result<A, Error>
    where
        Q: Message,
        A: Message + Default,
    {
        let body = self.call(rpc.type_id, &message, within).await?;
        A::decode(body).map_err(|error| Error::BadReply { name: rpc.name, reason: error.to_string() })
    }

    /// Sends a message that nobody answers. `Ok` means that it is queued for this connection, no more.
    pub fn notify<M: Message>(&self, rpc: Notify<M>, message: M) -> Result<(), Error> {
        let shared = &self.0.shared;
        shared.link()?.send(rpc.type_id, Head::PROTOCOL, &message, shared.options.payload_bytes_max)
    }

    /// A request by number, for tools that know a protocol only by its id: the body goes and comes undecoded.
    pub async fn call(&self, type_id: TypeId, body: &impl Message, within: Duration) -> Result<Bytes, Error> {
        let Shared { options, .. } = &*self.0.shared;
        let link = self.0.shared.link()?;
        let mut waiting =
            link.calls.begin(type_id, options.in_flight_max).map_err(|error| self.not_sent(error))?;
        link.send(type_id, Head::request(waiting.session), body, options.payload_bytes_max)
            .map_err(|error| self.not_sent(error))?;
        match timeout(within, waiting.wait()).await {
            Ok(Ok((0, body))) => Ok(body),
            Ok(Ok((code, _))) => Err(Error::refused(code)),
            Ok(Err(cause)) => Err(Error::Lost(cause)),
            Err(_) => Err(Error::Timeout(within)),
        }
    }

    /// Between the end of a connection and the news of it.
    fn not_sent(&self, error: Error) -> Error {
        match error {
            Error::Closed(cause)
                if self.0.shared.options.reconnect.is_some() && cause.retry() != base::Retry::Never =>
            {
                Error::Reconnecting
            }
            other => other,
        }
    }

    /// The queue of everything that comes unasked. All handles share it; each event goes to one of them.
    ///
    /// It holds [`Options::events_max`] events; when it is full the connection is not read until one is taken, so that
    /// nothing is lost.
    pub fn events(&self) -> Events {
        Events(self.0.shared.events.clone())
    }

    /// The same queue for who only wants pushes.
    pub fn pushes(&self) -> Pushes {
        Pushes(self.events())
    }

    /// Whose connection this is.
    pub fn account(&self) -> &str {
        &self.0.shared.options.account
    }

    /// The linkd it leads to now; `None` while it is down.
    pub fn addr(&self) -> Option<String> {
        match &*self.0.shared.state.lock() {
            State::Open(_, addr) => Some(addr.clone()),
            _ => None,
        }
    }

    /// Why it is closed for good, once it is.
    pub fn closed(&self) -> Option<Cause> {
        match &*self.0.shared.state.lock() {
            State::Closed(cause) => Some(cause.clone()),
            _ => None,
        }
    }

    /// Requests waiting for an answer now.
    pub fn in_flight(&self) -> usize {
        self.0.shared.link().map_or(0, |link| link.calls.in_flight())
    }

    pub fn stats(&self) -> Stats {
        let counters = &self.0.shared.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            pushes: get(&counters.pushes),
            ignored: get(&counters.ignored),
            stalls: get(&counters.stalls),
            late_replies: get(&counters.late_replies),
            unexpected: get(&counters.unexpected),
            reconnects: get(&counters.reconnects),
        }
    }

    /// Closes after everything queued was sent, at most 2 s. Requests in flight fail.
    pub async fn close(&self) {
        self.0.cancel.cancel();
        self.0.shared.ended.cancelled().await;
    }
}
