//! The end of a request: what goes back to the client, if anything does.

use std::sync::Arc;

use base::{LinkSid, TypeId};
use net::outbox::NotQueued;
use prost::Message;
use wire::Level;
use wire::code::{self, Code};
use wire::frame::PAYLOAD_BYTES_CEILING;
use wire::payload::{Family, Head};

use crate::conn::Conn;
use crate::cx::Cx;
use crate::error::Result;
use crate::meters::Drop;
use crate::module::Protocol;
use crate::room;
use crate::send::{self, Body, HEAD_BYTES_MAX};

/// Whom a request answers to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub type_id: TypeId,
    /// The client's number of its request; `None` when it wants no answer.
    pub request: Option<i64>,
}

impl Answer {
    /// `None` for a response: no handler waits for one.
    pub fn to(type_id: TypeId, head: Head) -> Option<Self> {
        match head.family {
            Family::Request => Some(Self { type_id, request: Some(head.session) }),
            Family::Protocol => Some(Self { type_id, request: None }),
            Family::Response => None,
        }
    }

    /// Sends the result of a handler. Gives it back when there is no room for it: then [`wait`](Self::wait) does.
    pub fn finish<A: Message>(
        self,
        cx: &Cx,
        protocol: &'static Protocol,
        result: Result<A>,
    ) -> Result<(), Unsent<A>> {
        let session = cx.session();
        let meters = &session.conn.hub.meters;
        if let Err(error) = &result {
            meters.errors.add(1);
            tracing::debug!(protocol = protocol.name, %error, "refused");
        }
        let Some(request) = self.request else { return Ok(()) };
        let reply = match result {
            Ok(reply) if reply.encoded_len() + HEAD_BYTES_MAX > PAYLOAD_BYTES_CEILING as usize => {
                let bytes = reply.encoded_len();
                tracing::warn!(protocol = protocol.name, bytes, "the reply is larger than a frame may be");
                Err(code::REPLY_TOO_LARGE.result())
            }
            Ok(reply) => Ok(reply),
            Err(error) => Err(error.result_in(self.type_id.module())),
        };
        let unsent = Unsent { request, reply };
        match unsent.send(&session.conn, session.sid, self.type_id) {
            Err(NotQueued::Full { .. }) => Err(unsent),
            sent => {
                sent.unwrap_or_else(|_| lost(&session.conn));
                Ok(())
            }
        }
    }

    /// Sends what found no room, when there is some: the linkd reads slowly.
    pub async fn wait<A: Message>(self, cx: &Cx, unsent: Unsent<A>) {
        let session = cx.session();
        let conn = &session.conn;
        let sent = room::retry(&conn.link.outbox, || unsent.send(conn, session.sid, self.type_id)).await;
        sent.unwrap_or_else(|_| lost(conn));
    }

    /// Refuses a request that no handler saw.
    pub fn refuse(self, conn: &Arc<Conn>, sid: LinkSid, code: &Code) {
        conn.hub.meters.refused(code);
        self.fail(conn, sid, code);
    }

    /// Answers with this code instead of a result. Never waits: when there is no room, the pool does.
    pub fn fail(self, conn: &Arc<Conn>, sid: LinkSid, code: &Code) {
        let Some(request) = self.request else { return };
        let unsent = Unsent::<()> { request, reply: Err(code.result()) };
        let sent = unsent.send(conn, sid, self.type_id);
        if matches!(sent, Err(NotQueued::Full { .. })) {
            let (conn, hub, type_id) = (conn.clone(), conn.hub.clone(), self.type_id);
            hub.spawn(async move {
                let sent = room::retry(&conn.link.outbox, || unsent.send(&conn, sid, type_id)).await;
                sent.unwrap_or_else(|_| lost(&conn));
            });
        }
    }
}

/// A reply that is not on its way yet.
pub(crate) struct Unsent<A> {
    request: i64,
    /// Or the result that stands instead.
    reply: Result<A, i64>,
}

impl<A: Message> Unsent<A> {
    fn send(&self, conn: &Conn, sid: LinkSid, type_id: TypeId) -> Result<(), NotQueued> {
        let (result, body) = match &self.reply {
            Ok(reply) => (0, Body::Message(reply)),
            Err(result) => (*result, Body::Refusal),
        };
        let head = Head::response(self.request, result);
        send::to_one(conn, sid, type_id, head, Level::Normal, body)
    }
}

/// The linkd tells its clients that this provider is gone.
fn lost(conn: &Conn) {
    conn.hub.meters.dropped(Drop::ReplyLinkClosed);
}
