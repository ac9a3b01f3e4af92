//! Requests in flight on one connection: each ends once, by its answer, by being dropped, or with the connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::TypeId;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{Cause, Error};

/// What the server said: the result code and the body, or why no answer can come any more.
pub(crate) type Answer = Result<(i64, Bytes), Cause>;

/// The table of one connection. A clone is the same table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    last: i64,
    /// In the order they were made, in which they fail when the connection breaks: a simulated run repeats.
    waiting: BTreeMap<i64, (TypeId, oneshot::Sender<Answer>)>,
    closed: Option<Cause>,
}

/// One request's place in the table; dropping it forgets the request.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub session: i64,
    calls: Calls,
    answer: oneshot::Receiver<Answer>,
}

impl Calls {
    /// Makes room for a request. The table never holds more than `in_flight_max`.
    pub fn begin(&self, type_id: TypeId, in_flight_max: usize) -> Result<Waiting, Error> {
        let mut table = self.0.lock();
        if let Some(cause) = &table.closed {
            return Err(Error::Closed(cause.clone()));
        }
        if table.waiting.len() >= in_flight_max {
            return Err(Error::Busy { waiting: table.waiting.len() });
        }
        table.last += 1;
        let session = table.last;
        let (sender, answer) = oneshot::channel();
        table.waiting.insert(session, (type_id, sender));
        Ok(Waiting { session, calls: self.clone(), answer })
    }

    /// A session number for a request whose answer nobody waits for.
    pub fn number(&self) -> i64 {
        let mut table = self.0.lock();
        table.last += 1;
        table.last
    }

    /// An answer came. False: nobody waits for it, or it answers another protocol than was asked.
    pub fn answer(&self, session: i64, type_id: TypeId, code: i64, body: &[u8]) -> bool {
        let mut table = self.0.lock();
        if table.waiting.get(&session).is_none_or(|(asked, _)| *asked != type_id) {
            return false;
        }
        let sender = table.waiting.remove(&session);
        drop(table);
        sender.is_some_and(|(_, sender)| sender.send(Ok((code, Bytes::copy_from_slice(body)))).is_ok())
    }

    /// The connection ended: every request fails now, and every later one. The first cause stays.
    pub fn close(&self, cause: &Cause) {
        let mut table = self.0.lock();
        table.closed.get_or_insert_with(|| cause.clone());
        if base::planted::is("client_leaves_requests_waiting") {
            return;
        }
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        for (_, (_, sender)) in waiting {
            // A receiver that is gone has given its request up already.
            let _ = sender.send(Err(cause.clone()));
        }
    }

    pub fn in_flight(&self) -> usize {
        self.0.lock().waiting.len()
    }
}

impl Waiting {
    /// The answer. Cancel-safe.
    pub async fn wait(&mut self) -> Answer {
        (&mut self.answer).await.unwrap_or(Err(Cause::ByUs))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.calls.0.lock().waiting.remove(&self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAY: TypeId = TypeId(0x2_0000_0001);
    const WHO: TypeId = TypeId(0x2_0000_0002);

    #[tokio::test]
    async fn every_request_ends_exactly_once() {
        let calls = Calls::default();
        let begin = || calls.begin(SAY, 3).unwrap();
        let (mut a, mut b, c) = (begin(), begin(), begin());
        assert_eq!(calls.begin(SAY, 3).unwrap_err(), Error::Busy { waiting: 3 });
        assert!(!calls.answer(a.session, WHO, 0, b""), "an answer of another protocol");
        assert!(calls.answer(a.session, SAY, 7, b"x"));
        assert!(!calls.answer(a.session, SAY, 7, b"x"), "twice");
        assert_eq!(a.wait().await, Ok((7, Bytes::from_static(b"x"))));
        drop(c);
        assert_eq!(calls.in_flight(), 1);
        calls.close(&Cause::ByServer);
        assert_eq!(b.wait().await, Err(Cause::ByServer));
        assert_eq!(calls.begin(SAY, 3).unwrap_err(), Error::Closed(Cause::ByServer));
    }
}
