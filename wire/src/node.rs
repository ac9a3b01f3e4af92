//! Frames between nodes: a 20-byte little-endian header, a head, an opaque body.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | bytes after this field |
//! | 4 | 1 | kind |
//! | 5 | 1 | flags |
//! | 6 | 2 | head bytes |
//! | 8 | 8 | call: pairs a reply with its call; 0 in a notice |
//! | 16 | 4 | milliseconds the caller still waits; 0 is no deadline |
//!
//! Flag [`TRACED`] and the two bits of a level ([`LEVEL_SHIFT`]); others are refused.
//! After the header and before the head stands the 16-byte trace id when flag [`TRACED`] is set.

use bytes::{BufMut, Bytes, BytesMut};

use crate::Level;

/// Bytes in front of every head.
pub const HEADER_BYTES: usize = 20;
/// A node frame's largest size without its length field.
pub const FRAME_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Flag: a 16-byte trace id stands before the head.
pub const TRACED: u8 = 1;
/// Flags: two bits for the level of what is sent to clients; none is normal.
pub const LEVEL_SHIFT: u8 = 1;
const LEVEL: u8 = 3 << LEVEL_SHIFT;
/// The version of this wire that we speak; a peer may be one older or newer.
pub const PROTO: u32 = 1;

/// What a frame is. The transport's own kinds are below 16, each conversation has its own range above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

impl Kind {
    /// First frame each way: `hello::Hello` in the body.
    pub const HELLO: Self = Self(1);
    /// Answers a call: an empty head is success with the body as result; else the body is a `hello::Refusal`.
    pub const REPLY: Self = Self(2);
    /// The caller of `call` no longer waits.
    pub const CANCEL: Self = Self(3);
    /// Answered at once with a PONG that carries the same call number.
    pub const PING: Self = Self(4);
    pub const PONG: Self = Self(5);
    /// The sender closes after this: a `hello::Refusal` in the body says why.
    pub const GOODBYE: Self = Self(6);
    /// A header and nothing else, in clear before TLS and hello: `call` is the worker that a provider wants.
    pub const PREFACE: Self = Self(7);
}

/// Everything of the header but the lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    pub kind: Kind,
    pub call: u64,
    /// Time left at sending; 0 is none.
    pub deadline_ms: u32,
    pub trace: Option<[u8; 16]>,
    pub level: Level,
}

impl Meta {
    pub const fn notice(kind: Kind) -> Self {
        Self { kind, call: 0, deadline_ms: 0, trace: None, level: Level::Normal }
    }

    pub const fn call(kind: Kind, call: u64, deadline_ms: u32) -> Self {
        Self { kind, call, deadline_ms, trace: None, level: Level::Normal }
    }

    /// Of this level.
    pub const fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }
}

/// A frame in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub meta: Meta,
    pub head: &'a [u8],
    pub body: &'a [u8],
    /// Bytes of the whole frame.
    pub size: usize,
}

/// What the front of a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// Not yet a whole frame: call again with at least this many bytes in all.
    Incomplete {
        need: usize,
    },
    Frame(Frame<'a>),
}

/// A header no peer of ours sends. The peer's fault; the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    #[error("a frame announces {announced} bytes, more than the {limit} allowed")]
    TooLarge { announced: usize, limit: usize },
    #[error("a frame is shorter than its own header or head says")]
    Short,
    #[error("a frame has flags {0:#04x}, which this version does not know")]
    Flags(u8),
}

/// Looks at the front of `buf`; the announced size is judged before the frame is waited for.
pub fn decode(buf: &[u8], frame_bytes_max: usize) -> Result<Decoded<'_>, BadFrame> {
    let Some(header) = buf.first_chunk::<HEADER_BYTES>() else {
        return Ok(Decoded::Incomplete { need: HEADER_BYTES });
    };
    let &[l0, l1, l2, l3, kind, flags, h0, h1, c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3] = header;
    let announced = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if announced > frame_bytes_max {
        return Err(BadFrame::TooLarge { announced, limit: frame_bytes_max });
    }
    if flags & !(TRACED | LEVEL) != 0 {
        return Err(BadFrame::Flags(flags));
    }
    let size = announced + 4;
    let trace_len = if flags & TRACED != 0 { 16 } else { 0 };
    let head_at = HEADER_BYTES + trace_len;
    let body_at = head_at + usize::from(u16::from_le_bytes([h0, h1]));
    if size < body_at && !base::planted::is("node_head_believed") {
        return Err(BadFrame::Short);
    }
    let Some(whole) = buf.get(..size) else {
        return Ok(Decoded::Incomplete { need: size });
    };
    let trace = if trace_len == 0 { None } else { whole[HEADER_BYTES..].first_chunk::<16>().copied() };
    let meta = Meta {
        kind: Kind(kind),
        call: u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
        deadline_ms: u32::from_le_bytes([d0, d1, d2, d3]),
        trace,
        level: Level::of_bits((flags & LEVEL) >> LEVEL_SHIFT),
    };
    Ok(Decoded::Frame(Frame { meta, head: &whole[head_at..body_at], body: &whole[body_at..], size }))
}

/// Bytes a frame with this head and body takes.
pub const fn size(meta: &Meta, head_len: usize, body_len: usize) -> usize {
    HEADER_BYTES + if meta.trace.is_some() { 16 } else { 0 } + head_len + body_len
}

/// Appends a frame. `head` is at most 65,535 bytes; every head of this wire is far below.
pub fn encode(out: &mut BytesMut, meta: &Meta, head: &[u8], body: &[u8]) {
    debug_assert!(head.len() <= usize::from(u16::MAX));
    let size = size(meta, head.len(), body.len());
    out.reserve(size);
    let mut header = [0u8; HEADER_BYTES];
    header[..4].copy_from_slice(&((size - 4) as u32).to_le_bytes());
    header[4] = meta.kind.0;
    header[5] = if meta.trace.is_some() { TRACED } else { 0 } | meta.level.bits() << LEVEL_SHIFT;
    header[6..8].copy_from_slice(&(head.len() as u16).to_le_bytes());
    header[8..16].copy_from_slice(&meta.call.to_le_bytes());
    header[16..].copy_from_slice(&meta.deadline_ms.to_le_bytes());
    out.put_slice(&header);
    if let Some(trace) = &meta.trace {
        out.put_slice(trace);
    }
    out.put_slice(head);
    out.put_slice(body);
}

/// Appends a frame whose body is a protobuf message.
pub fn encode_message(out: &mut BytesMut, meta: &Meta, message: &impl prost::Message) {
    let len = message.encoded_len();
    let size = size(meta, 0, len);
    encode(out, meta, &[], &[]);
    let start = out.len() - (size - len);
    out.reserve(len);
    // `BytesMut` grows as needed, so encoding into it can't run out of room.
    let _ = message.encode(out);
    out[start..start + 4].copy_from_slice(&((size - 4) as u32).to_le_bytes());
}

/// An owned frame, for what is handled beside the hot path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub meta: Meta,
    pub head: Bytes,
    pub body: Bytes,
}

impl From<Frame<'_>> for Owned {
    fn from(frame: Frame<'_>) -> Self {
        let (head, body) = (Bytes::copy_from_slice(frame.head), Bytes::copy_from_slice(frame.body));
        Self { meta: frame.meta, head, body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes of this version, frozen.
    #[test]
    fn the_header_is_frozen() {
        let mut out = BytesMut::new();
        encode(&mut out, &Meta::call(Kind(16), 0x0102, 5), &[0xaa], &[0xbb, 0xcc]);
        assert_eq!(
            &out[..],
            [19, 0, 0, 0, 16, 0, 1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0xaa, 0xbb, 0xcc]
        );
    }

    #[test]
    fn lies_about_lengths_are_refused() {
        let mut header = [0u8; 20];
        header[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(decode(&header, FRAME_BYTES_MAX), Err(BadFrame::TooLarge { .. })));
        header[..4].copy_from_slice(&15u32.to_le_bytes());
        assert_eq!(decode(&header, FRAME_BYTES_MAX), Err(BadFrame::Short));
        header[..4].copy_from_slice(&16u32.to_le_bytes());
        header[6] = 1;
        assert_eq!(decode(&header, FRAME_BYTES_MAX), Err(BadFrame::Short));
        header[5] = 0x80;
        assert_eq!(decode(&header, FRAME_BYTES_MAX), Err(BadFrame::Flags(0x80)));
    }

    #[test]
    fn a_message_is_framed_like_its_bytes() {
        let message = crate::hello::Hello { node: "linkd-1".into(), epoch: 7, ..Default::default() };
        let (mut a, mut b) = (BytesMut::new(), BytesMut::new());
        let meta = Meta::notice(Kind::HELLO);
        encode_message(&mut a, &meta, &message);
        encode(&mut b, &meta, &[], &prost::Message::encode_to_vec(&message));
        assert_eq!(a, b);
    }

    proptest! {
        #[test]
        fn frames_come_back_whole(kind: u8, call: u64, deadline_ms: u32, trace: Option<[u8; 16]>, level in prop::sample::select(&Level::ALL[..]), head in prop::collection::vec(any::<u8>(), 0..40), body in prop::collection::vec(any::<u8>(), 0..80)) {
            let meta = Meta { kind: Kind(kind), call, deadline_ms, trace, level };
            let mut out = BytesMut::new();
            encode(&mut out, &meta, &head, &body);
            let size = out.len();
            for cut in 0..size {
                let incomplete = matches!(decode(&out[..cut], 4096), Ok(Decoded::Incomplete { need }) if need > cut && need <= size);
                prop_assert!(incomplete);
            }
            out.put_u8(0);
            let expected = Frame { meta, head: &head, body: &body, size };
            prop_assert_eq!(decode(&out, 4096), Ok(Decoded::Frame(expected)));
        }

        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = decode(&bytes, 4096);
        }
    }
}
