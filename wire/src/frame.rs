//! The frame of the client wire: 12 bytes of header, then the payload. The ancestor's, byte for byte.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | module id, i32 LE |
//! | 4 | 4 | protocol id, i32 LE |
//! | 8 | 4 | payload bytes after the header, u32 LE |

use base::{ModuleId, ProtocolId, TypeId};
use bytes::{BufMut, BytesMut};

/// Bytes in front of every payload.
pub const HEADER_BYTES: usize = 12;
/// The payload limit a linkd starts with.
pub const PAYLOAD_BYTES_DEFAULT: u32 = 64 * 1024;
/// The payload limit no setting may exceed.
pub const PAYLOAD_BYTES_CEILING: u32 = 2 * 1024 * 1024;

/// What the front of a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// Not yet a whole frame: call again with at least this many bytes in all.
    Incomplete { need: usize },
    /// One frame; it took `frame.whole.len()` bytes.
    Frame(Frame<'a>),
}

/// A frame in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub type_id: TypeId,
    /// Everything after the header.
    pub payload: &'a [u8],
    /// Header and payload.
    pub whole: &'a [u8],
}

/// A header no peer of ours may send. The client's fault; the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    #[error(
        "a frame announces {announced} payload bytes, more than the {limit} allowed; send smaller frames"
    )]
    TooLarge { announced: u32, limit: u32 },
    #[error("a frame announces no payload; every frame has at least its family byte")]
    Empty,
}

/// Looks at the front of `buf`. Judges the announced size as soon as the header is there, before the payload is
/// waited for, so that nothing is allocated for a size that is refused.
pub fn decode(buf: &[u8], payload_bytes_max: u32) -> Result<Decoded<'_>, BadFrame> {
    let Some(header) = buf.first_chunk::<HEADER_BYTES>() else {
        return Ok(Decoded::Incomplete { need: HEADER_BYTES });
    };
    let [m0, m1, m2, m3, p0, p1, p2, p3, s0, s1, s2, s3] = *header;
    let size = u32::from_le_bytes([s0, s1, s2, s3]);
    if size > payload_bytes_max {
        return Err(BadFrame::TooLarge { announced: size, limit: payload_bytes_max });
    }
    if size == 0 {
        return Err(BadFrame::Empty);
    }
    let need = HEADER_BYTES + size as usize;
    let Some(whole) = buf.get(..need) else {
        return Ok(Decoded::Incomplete { need });
    };
    let module = ModuleId(i32::from_le_bytes([m0, m1, m2, m3]));
    let protocol = ProtocolId(i32::from_le_bytes([p0, p1, p2, p3]));
    Ok(Decoded::Frame(Frame {
        type_id: TypeId::new(module, protocol),
        payload: &whole[HEADER_BYTES..],
        whole,
    }))
}

/// Appends a frame whose payload `write` appends; the size is filled in afterwards.
pub fn encode(out: &mut BytesMut, type_id: TypeId, write: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_i32_le(type_id.module().0);
    out.put_i32_le(type_id.protocol().0);
    out.put_u32_le(0);
    write(out);
    let size = (out.len() - start - HEADER_BYTES) as u32;
    out[start + 8..start + 12].copy_from_slice(&size.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(module: i32, protocol: i32, payload: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        encode(&mut out, TypeId::new(ModuleId(module), ProtocolId(protocol)), |out| out.put_slice(payload));
        out
    }

    /// Holds: BI-001, BI-002, BI-003.
    #[test]
    fn an_announced_size_is_judged_before_the_payload_comes() {
        for size in [u32::MAX, 1 << 31, (1 << 31) - 1, 65_537] {
            let mut header = [0u8; 12];
            header[8..].copy_from_slice(&size.to_le_bytes());
            assert_eq!(decode(&header, 65_536), Err(BadFrame::TooLarge { announced: size, limit: 65_536 }));
        }
        let exact = frame(1, 2, &vec![7; 65_536]);
        assert!(matches!(decode(&exact, 65_536), Ok(Decoded::Frame(f)) if f.payload.len() == 65_536));
    }

    /// Holds: BI-004.
    #[test]
    fn an_empty_frame_is_refused() {
        assert_eq!(decode(&[0; 12], 65_536), Err(BadFrame::Empty));
    }

    proptest! {
        /// Split at every position: the same result as unsplit.
        ///
        /// Holds: BI-046.
        #[test]
        fn a_frame_is_incomplete_until_it_is_whole(module: i32, protocol: i32, payload in prop::collection::vec(any::<u8>(), 1..200)) {
            let bytes = frame(module, protocol, &payload);
            for cut in 0..bytes.len() {
                let Ok(Decoded::Incomplete { need }) = decode(&bytes[..cut], 65_536) else { panic!("{cut}") };
                prop_assert!(need > cut && need <= bytes.len());
            }
            let Ok(Decoded::Frame(f)) = decode(&bytes, 65_536) else { panic!() };
            prop_assert_eq!((f.type_id.module().0, f.type_id.protocol().0, f.payload), (module, protocol, &payload[..]));
        }

        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = decode(&bytes, 65_536);
        }
    }
}
