//! What comes without being asked for: pushes of providers, reports of the gateway, and the connection's own fate.

use std::fmt;
use std::sync::Arc;

use base::TypeId;
use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};
use wire::code::Code;

use crate::Cause;

/// One event, in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A provider sent this.
    Push(Push),
    /// The gateway or a provider says that something is wrong. The connection may live on.
    Report(Report),
    /// The connection is gone and is being dialled again. Requests in flight failed with
    /// [`Error::Lost`](crate::Error::Lost).
    Lost(Cause),
    /// A new connection is authenticated at `addr`, after `tries` dials. The game's own login is yours to repeat:
    /// to the providers this is a new session.
    Reconnected { addr: String, tries: u32 },
    /// The last event: the client is at its end.
    Closed(Cause),
}

/// A message that a provider pushed, not yet decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    pub type_id: TypeId,
    pub body: Bytes,
}

impl Push {
    /// The message, if this push is a `P`: `None` when it is another type, an error when it can't be read.
    ///
    /// ```
    /// # use client::Push;
    /// # #[derive(Clone, PartialEq, prost::Message)]
    /// # struct Said { #[prost(string, tag = "1")] text: String }
    /// # impl wire::Push for Said {
    /// #     const TYPE_ID: base::TypeId = base::TypeId(0x2_0000_0001);
    /// #     const NAME: &'static str = "Rooms.Said";
    /// # }
    /// # let push = Push { type_id: <Said as wire::Push>::TYPE_ID, body: prost::Message::encode_to_vec(&Said::default()).into() };
    /// if let Some(said) = push.decode::<Said>() {
    ///     println!("{:?}", said?);
    /// }
    /// # Ok::<(), prost::DecodeError>(())
    /// ```
    pub fn decode<P: wire::Push>(&self) -> Option<Result<P, prost::DecodeError>> {
        (self.type_id == P::TYPE_ID).then(|| P::decode(self.body.clone()))
    }
}

/// What the server says went wrong outside any request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// 0 the gateway, 1 a provider, 2 a dynamic module that is bound to nobody.
    pub from: i64,
    /// From the gateway a number of the registry; from a provider the game's own, or KICKED; from a dynamic module
    /// its id.
    pub number: i64,
    pub text: String,
}

impl Report {
    /// The registry's entry, when the gateway reported it.
    pub fn code(&self) -> Option<&'static Code> {
        let gateway = self.from == wire::report::From::Link as i64;
        let kick = self.number == i64::from(wire::code::KICKED.number);
        if gateway || kick { Code::find(i32::try_from(self.number).ok()?) } else { None }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code() {
            Some(code) if code.name == self.text || self.text.is_empty() => write!(f, "{code}"),
            Some(code) => write!(f, "{code}: {}", self.text),
            None if self.text.is_empty() => write!(f, "code {} of the game", self.number),
            None => write!(f, "{} (code {} of the game)", self.text, self.number),
        }
    }
}

pub(crate) type Queue = Arc<Mutex<mpsc::Receiver<Event>>>;

/// Takes events off the client's one queue. Several handles share it: each event goes to one of them.
#[derive(Debug, Clone)]
pub struct Events(pub(crate) Queue);

impl Events {
    /// The next event; `None` when the client is at its end and everything was taken. Cancel-safe.
    pub async fn next(&self) -> Option<Event> {
        self.0.lock().await.recv().await
    }

    /// An event that has already arrived.
    pub fn ready(&self) -> Option<Event> {
        self.0.try_lock().ok()?.try_recv().ok()
    }
}

/// Takes pushes only. Whatever else comes is logged and passed over, so use either this or [`Events`].
#[derive(Debug, Clone)]
pub struct Pushes(pub(crate) Events);

impl Pushes {
    /// The next push; `None` when the client is at its end and everything was taken. Cancel-safe.
    pub async fn next(&self) -> Option<Push> {
        loop {
            match self.0.next().await? {
                Event::Push(push) => return Some(push),
                other => tracing::info!(event = ?other, "passed over while waiting for a push"),
            }
        }
    }
}
