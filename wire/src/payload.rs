//! The head of a client frame's payload: family, optional result code, RPC session id. Then the body.
//!
//! | family | bytes |
//! |---|---|
//! | protocol | `02 body` or `22 code body` |
//! | request | `01 session body` or `21 code session body` |
//! | response | `00 session body` or `20 code session body` |

use base::TypeId;
use bytes::{BufMut, BytesMut};

use crate::frame;
use crate::varint::{self, Truncated};

/// What kind of frame this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Answers the request with the same session id.
    Response,
    /// Wants exactly one response.
    Request,
    /// Wants none.
    Protocol,
}

/// Everything in front of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub family: Family,
    /// 0 is success and is never written.
    pub code: i64,
    /// Chosen by the requester, echoed by the responder; 0 in a protocol.
    pub session: i64,
}

/// A payload without a readable head. The client's fault; the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPayload {
    #[error("the payload ends inside its head")]
    Truncated,
    #[error("the payload begins with {0:#04x}, which names no family of this wire")]
    Family(u8),
}

impl From<Truncated> for BadPayload {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

const CODE_PRESENT: u8 = 0x20;

/// What kind of frame has this payload, without reading on.
pub fn family(payload: &[u8]) -> Result<Family, BadPayload> {
    match payload.first().ok_or(BadPayload::Truncated)? & !CODE_PRESENT {
        0 => Ok(Family::Response),
        1 => Ok(Family::Request),
        2 => Ok(Family::Protocol),
        _ => Err(BadPayload::Family(payload[0])),
    }
}

/// Splits a payload into head and body.
pub fn decode(payload: &[u8]) -> Result<(Head, &[u8]), BadPayload> {
    let family = family(payload)?;
    let (first, mut rest) = (payload[0], &payload[1..]);
    let code = if first & CODE_PRESENT != 0 { varint::read_long(&mut rest)? } else { 0 };
    let session = if family == Family::Protocol { 0 } else { varint::read_long(&mut rest)? };
    Ok((Head { family, code, session }, rest))
}

impl Head {
    pub const PROTOCOL: Self = Self { family: Family::Protocol, code: 0, session: 0 };

    pub const fn request(session: i64) -> Self {
        Self { family: Family::Request, code: 0, session }
    }

    pub const fn response(session: i64, code: i64) -> Self {
        Self { family: Family::Response, code, session }
    }

    pub fn encode(self, out: &mut impl BufMut) {
        let family = match self.family {
            Family::Response => 0,
            Family::Request => 1,
            Family::Protocol => 2,
        };
        if self.code == 0 {
            out.put_u8(family);
        } else {
            out.put_u8(family | CODE_PRESENT);
            varint::write_long(out, self.code);
        }
        if self.family != Family::Protocol {
            varint::write_long(out, self.session);
        }
    }
}

/// Appends a whole frame: header, head and the body that `write` appends.
pub fn encode_frame(out: &mut BytesMut, type_id: TypeId, head: Head, write: impl FnOnce(&mut BytesMut)) {
    frame::encode(out, type_id, |out| {
        head.encode(out);
        write(out);
    });
}

/// Appends the response that refuses a request. Its body is `00`, the empty bean that the ancestor's clients read
/// as all defaults whatever the schema; ours don't read the body of a refusal.
pub fn encode_refusal(out: &mut BytesMut, type_id: TypeId, session: i64, code: i64) {
    encode_frame(out, type_id, Head::response(session, code), |out| out.put_u8(0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ModuleId, ProtocolId};
    use proptest::prelude::*;

    /// The worked bytes of the ancestor's documentation: its own linkd forgets the header here.
    ///
    /// Holds: Q1.
    #[test]
    fn a_busy_answer_is_a_whole_frame() {
        let mut out = BytesMut::new();
        encode_refusal(&mut out, TypeId::new(ModuleId(1), ProtocolId(5)), 1, -19);
        assert_eq!(&out[..], [1, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 0x20, 0xed, 0x01, 0x00]);
    }

    #[test]
    fn heads_are_the_ancestors_bytes() {
        let bytes = |head: Head| {
            let mut out = Vec::new();
            head.encode(&mut out);
            out
        };
        assert_eq!(bytes(Head::PROTOCOL), [2]);
        assert_eq!(bytes(Head::request(1)), [1, 1]);
        assert_eq!(bytes(Head::response(9, 0)), [0, 9]);
        assert_eq!(bytes(Head { family: Family::Protocol, code: 7, session: 0 }), [0x22, 7]);
    }

    #[test]
    fn raft_families_and_unknown_bits_are_refused() {
        for first in [3u8, 4, 0x23, 0x40, 0x80, 0xff] {
            assert_eq!(decode(&[first, 1, 1]), Err(BadPayload::Family(first)));
        }
        assert_eq!(decode(&[]), Err(BadPayload::Truncated));
        assert_eq!(decode(&[1]), Err(BadPayload::Truncated));
    }

    proptest! {
        #[test]
        fn heads_come_back(family in 0..3, code: i64, session: i64, body: Vec<u8>) {
            let family = [Family::Response, Family::Request, Family::Protocol][family as usize];
            let session = if family == Family::Protocol { 0 } else { session };
            let head = Head { family, code, session };
            let mut out = Vec::new();
            head.encode(&mut out);
            out.extend_from_slice(&body);
            prop_assert_eq!(decode(&out), Ok((head, &body[..])));
        }
    }
}
