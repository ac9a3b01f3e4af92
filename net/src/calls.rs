//! Calls in flight on one connection: each is answered once, times out, is cancelled, or fails with the connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use wire::code::{self, Code};
use wire::hello::Refusal;

use crate::outbox::NotQueued;

/// Calls that may wait on one connection.
pub const PENDING_MAX: usize = 65_536;

/// How a call ended other than with its result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The callee refused or failed it; nothing is known beyond what it says.
    #[error("refused with code {}: {}", .0.code, .0.text)]
    Refused(Refusal),
    /// The outcome is unknown: repeat it only with a request id.
    #[error("no answer within the deadline; the outcome is unknown")]
    Timeout,
    /// The outcome is unknown: repeat it only with a request id.
    #[error("the connection broke; the outcome is unknown")]
    Broken,
    /// Nothing was sent; try again later.
    #[error("too many calls or bytes wait for this peer; nothing was sent")]
    Busy,
    /// The answer could not be read. The peer's fault.
    #[error("the answer could not be read")]
    BadAnswer,
}

impl From<NotQueued> for CallError {
    fn from(error: NotQueued) -> Self {
        match error {
            NotQueued::Full { .. } => CallError::Busy,
            NotQueued::Closed => CallError::Broken,
        }
    }
}

impl CallError {
    pub fn code(&self) -> &'static Code {
        match self {
            CallError::Refused(refusal) => Code::find(refusal.code).unwrap_or(&code::EXCEPTION),
            CallError::Timeout => &code::TIMEOUT,
            CallError::Broken => &code::UNAVAILABLE,
            CallError::Busy => &code::BUSY,
            CallError::BadAnswer => &code::BAD_MESSAGE,
        }
    }
}

type Answer = Result<Bytes, CallError>;

/// The table of one connection's calls. A clone is the same table.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    /// In the order they were made, in which they fail when the connection breaks: a simulated run repeats.
    pending: BTreeMap<u64, oneshot::Sender<Answer>>,
    closed: bool,
}

/// One call's place in the table; dropping it gives the call up.
#[derive(Debug)]
pub struct Pending {
    pub call: u64,
    calls: Calls,
    answer: oneshot::Receiver<Answer>,
}

impl Calls {
    /// Makes room for a call.
    pub fn begin(&self) -> Result<Pending, CallError> {
        let mut table = self.0.lock();
        if table.closed {
            return Err(CallError::Broken);
        }
        if table.pending.len() >= PENDING_MAX {
            return Err(CallError::Busy);
        }
        table.last += 1;
        let call = table.last;
        let (sender, answer) = oneshot::channel();
        table.pending.insert(call, sender);
        Ok(Pending { call, calls: self.clone(), answer })
    }

    /// An answer came. False: nobody waits for it any more, which the caller counts.
    pub fn answer(&self, call: u64, answer: Answer) -> bool {
        let sender = self.0.lock().pending.remove(&call);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }

    /// The connection broke: every call fails now, and every later one.
    pub fn close(&self) {
        let mut table = self.0.lock();
        table.closed = true;
        let pending = std::mem::take(&mut table.pending);
        drop(table);
        for (_, sender) in pending {
            // A receiver that is gone has given its call up already.
            let _ = sender.send(Err(CallError::Broken));
        }
    }

    pub fn in_flight(&self) -> usize {
        self.0.lock().pending.len()
    }
}

impl Pending {
    /// The answer. Cancel-safe.
    pub async fn wait(&mut self) -> Answer {
        (&mut self.answer).await.unwrap_or(Err(CallError::Broken))
    }

    /// Gives the call up. True when it was still unanswered, so that the callee should be told.
    pub fn give_up(&self) -> bool {
        self.calls.0.lock().pending.remove(&self.call).is_some()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_call_ends_exactly_once() {
        let calls = Calls::default();
        let (mut a, mut b, c) = (calls.begin().unwrap(), calls.begin().unwrap(), calls.begin().unwrap());
        assert!(calls.answer(a.call, Ok(Bytes::from_static(b"x"))));
        assert!(!calls.answer(a.call, Ok(Bytes::new())));
        assert_eq!(a.wait().await, Ok(Bytes::from_static(b"x")));
        drop(c);
        assert_eq!(calls.in_flight(), 1);
        calls.close();
        assert_eq!(b.wait().await, Err(CallError::Broken));
        assert!(!b.give_up());
        assert_eq!(calls.begin().unwrap_err(), CallError::Broken);
    }

    #[test]
    fn the_table_is_bounded() {
        let calls = Calls::default();
        let held: Vec<_> = (0..PENDING_MAX).map(|_| calls.begin().unwrap()).collect();
        assert_eq!(calls.begin().unwrap_err(), CallError::Busy);
        drop(held);
        assert!(calls.begin().is_ok());
    }
}
