//! The end of a request: what goes back to the client, if anything does.

use base::TypeId;
use prost::Message;
use wire::code::{self, Code};
use wire::frame::PAYLOAD_BYTES_CEILING;
use wire::payload::{Family, Head};

use crate::conn::Conn;
use crate::cx::Cx;
use crate::error::{Error, Result};
use crate::meters::Drop;
use crate::module::Protocol;
use crate::room;
use crate::send::{self, Body, HEAD_BYTES_MAX};
use crate::session::Session;

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

    /// Sends the result of a handler, waiting for room when the linkd reads slowly.
    pub async fn finish<A: Message>(self, cx: &Cx, protocol: &'static Protocol, result: Result<A>) {
        let session = cx.session();
        let meters = &session.conn.hub.meters;
        if let Err(error) = &result {
            note(error, protocol, meters);
        }
        let Some(request) = self.request else { return };
        let reply = match result {
            Ok(reply) if reply.encoded_len() + HEAD_BYTES_MAX > PAYLOAD_BYTES_CEILING as usize => {
                let bytes = reply.encoded_len();
                tracing::warn!(protocol = protocol.name, bytes, "the reply is larger than a frame may be");
                Err(code::REPLY_TOO_LARGE.result())
            }
            Ok(reply) => Ok(reply),
            Err(error) => Err(error.result_in(self.type_id.module())),
        };
        let (head, body) = match &reply {
            Ok(reply) => (Head::response(request, 0), Body::Message(reply)),
            Err(result) => (Head::response(request, *result), Body::Refusal),
        };
        respond(session, self.type_id, head, body).await;
    }

    /// Refuses a request that no handler saw. Never waits: when there is no room, the pool does.
    pub fn refuse(self, session: &Session, code: &Code) {
        let conn = &session.conn;
        conn.hub.meters.refused(code);
        let Some(request) = self.request else { return };
        let head = Head::response(request, code.result());
        let sent = send::to_one(conn, session.sid, self.type_id, head, Body::<()>::Refusal);
        if matches!(sent, Err(net::outbox::NotQueued::Full { .. })) {
            let (conn, sid) = (conn.clone(), session.sid);
            let (hub, type_id) = (conn.hub.clone(), self.type_id);
            hub.spawn(async move { wait_and_send(&conn, sid, type_id, head, Body::<()>::Refusal).await });
        }
    }
}

fn note(error: &Error, protocol: &Protocol, meters: &crate::meters::Meters) {
    match error {
        Error::Framework { code, text } if code.number == code::EXCEPTION.number => {
            meters.panics.add(1);
            tracing::error!(protocol = protocol.name, "{text}");
        }
        error => tracing::debug!(protocol = protocol.name, %error, "refused"),
    }
    meters.errors.add(1);
}

async fn respond<M: Message>(session: &Session, type_id: TypeId, head: Head, body: Body<'_, M>) {
    wait_and_send(&session.conn, session.sid, type_id, head, body).await;
}

async fn wait_and_send<M: Message>(
    conn: &Conn,
    sid: base::LinkSid,
    type_id: TypeId,
    head: Head,
    body: Body<'_, M>,
) {
    let sent = room::retry(&conn.link.outbox, || send::to_one(conn, sid, type_id, head, body)).await;
    if sent.is_err() {
        // The linkd tells its clients that this provider is gone.
        conn.hub.meters.dropped(Drop::ReplyLinkClosed);
    }
}
