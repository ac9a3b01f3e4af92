//! Client frames on their way out, written straight into the connection's buffer.

use base::{AppVersion, LinkSid, Role, TypeId};
use bytes::{BufMut, BytesMut};
use net::outbox::NotQueued;
use prost::Message;
use wire::Level;
use wire::frame;
use wire::link::{self, SEND_SIDS_MAX, UserState};
use wire::node::{self, Meta};
use wire::payload::{self, Head};

use crate::conn::Conn;

/// A payload head is at most this long: family, result code, RPC session.
pub(crate) const HEAD_BYTES_MAX: usize = 1 + 9 + 9;

/// What stands behind a payload's head.
#[derive(Debug)]
pub(crate) enum Body<'a, M> {
    Message(&'a M),
    /// The empty bean that every client of the wire can read.
    Refusal,
}

impl<M> Clone for Body<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Body<'_, M> {}

impl<M: Message> Body<'_, M> {
    fn len(self) -> usize {
        match self {
            Body::Message(message) => message.encoded_len(),
            Body::Refusal => 1,
        }
    }

    fn write(self, out: &mut BytesMut) {
        match self {
            // `BytesMut` grows as needed, so encoding into it can't run out of room.
            Body::Message(message) => message.encode_raw(out),
            Body::Refusal => out.put_u8(0),
        }
    }
}

/// One client frame to one session, in one go: node header, link sid, client frame.
pub(crate) fn to_one<M: Message>(
    conn: &Conn,
    sid: LinkSid,
    type_id: TypeId,
    head: Head,
    level: Level,
    body: Body<'_, M>,
) -> Result<(), NotQueued> {
    let room = node::HEADER_BYTES + 8 + frame::HEADER_BYTES + HEAD_BYTES_MAX + body.len();
    conn.link.outbox.push(room, |out| {
        out.reserve(room);
        let start = out.len();
        node::encode(out, &Meta::notice(link::SEND).at(level), &sid.0.to_le_bytes(), &[]);
        payload::encode_frame(out, type_id, head, |out| body.write(out));
        let size = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&size.to_le_bytes());
    })?;
    conn.pushed();
    Ok(())
}

/// A whole client frame, encoded once for many sessions.
pub(crate) fn whole<M: Message>(type_id: TypeId, message: &M) -> BytesMut {
    let mut out = BytesMut::with_capacity(frame::HEADER_BYTES + 1 + message.encoded_len());
    payload::encode_frame(&mut out, type_id, Head::PROTOCOL, |out| Body::Message(message).write(out));
    out
}

/// One client frame to many sessions of one connection. Answers how many it was queued for.
pub(crate) fn to_many(conn: &Conn, sids: &[LinkSid], level: Level, frame: &[u8]) -> usize {
    let mut queued = 0;
    let mut head = Vec::with_capacity(8 * sids.len().min(SEND_SIDS_MAX));
    for chunk in sids.chunks(SEND_SIDS_MAX) {
        head.clear();
        chunk.iter().for_each(|sid| head.extend_from_slice(&sid.0.to_le_bytes()));
        if conn.link.push(&Meta::notice(link::SEND).at(level), &head, frame).is_ok() {
            queued += chunk.len();
        }
    }
    conn.pushed();
    queued
}

/// One client frame to every session of a linkd whose client has this main version; 0 is everybody.
pub(crate) fn to_all(conn: &Conn, version: AppVersion, level: Level, frame: &[u8]) -> Result<(), NotQueued> {
    conn.link.push(&Meta::notice(link::BROADCAST).at(level), &version.0.to_le_bytes(), frame)?;
    conn.pushed();
    Ok(())
}

pub(crate) fn user_state(conn: &Conn, link_sid: LinkSid, role: Option<Role>) -> Result<(), NotQueued> {
    conn.link.push(&Meta::notice(link::USER_STATE), &UserState { link_sid, role }.encode(), &[])?;
    conn.pushed();
    Ok(())
}
