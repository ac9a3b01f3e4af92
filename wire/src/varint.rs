//! The ancestor's two variable-length integers: big-endian payload bits behind a length prefix in the first byte.
//! Only the client wire uses them.

use bytes::BufMut;

/// Bytes that are no varint, or stop in the middle of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes end in the middle of a number")]
pub struct Truncated;

/// Reads from the front of `input` and moves it on.
pub fn read_uint(input: &mut &[u8]) -> Result<u32, Truncated> {
    let first = *input.first().ok_or(Truncated)?;
    let (len, mask) = match first {
        0..0x80 => (1, 0x7f),
        0x80..0xc0 => (2, 0x3f),
        0xc0..0xe0 => (3, 0x1f),
        0xe0..0xf0 => (4, 0x0f),
        _ => (5, 0),
    };
    let bytes = take(input, len)?;
    Ok(bytes[1..].iter().fold(u32::from(first & mask), |v, &b| v << 8 | u32::from(b)))
}

pub fn write_uint(out: &mut impl BufMut, v: u32) {
    match v {
        0..0x80 => out.put_u8(v as u8),
        0x80..0x4000 => out.put_u16(0x8000 | v as u16),
        0x4000..0x20_0000 => {
            out.put_u8(0xc0 | (v >> 16) as u8);
            out.put_u16(v as u16);
        }
        0x20_0000..0x1000_0000 => out.put_u32(0xe000_0000 | v),
        _ => {
            out.put_u8(0xf0);
            out.put_u32(v);
        }
    }
}

/// Reads a signed number from the front of `input` and moves it on.
pub fn read_long(input: &mut &[u8]) -> Result<i64, Truncated> {
    let first = *input.first().ok_or(Truncated)?;
    // A negative number is the bitwise complement of a non-negative one, length prefix included.
    let flip = if first & 0x80 != 0 { 0xff } else { 0 };
    let lead = first ^ flip;
    let (len, mask) = match lead {
        0..0x40 => (1, 0x3f),
        0x40..0x60 => (2, 0x1f),
        0x60..0x70 => (3, 0x0f),
        0x70..0x78 => (4, 0x07),
        0x78..0x7c => (5, 0x03),
        0x7c..0x7e => (6, 0x01),
        0x7e => (7, 0),
        _ if (input.get(1).ok_or(Truncated)? ^ flip) & 0x80 != 0 => (9, 0),
        _ => (8, 0),
    };
    let bytes = take(input, len)?;
    let mut value = u64::from(lead & mask);
    for &byte in &bytes[1..] {
        value = value << 8 | u64::from(byte ^ flip);
    }
    if len == 9 {
        value &= i64::MAX as u64;
    }
    Ok(if flip == 0 { value as i64 } else { !(value as i64) })
}

pub fn write_long(out: &mut impl BufMut, v: i64) {
    let flip = if v < 0 { 0xff } else { 0 };
    let u = if v < 0 { !v as u64 } else { v as u64 };
    // (bytes, prefix of the first byte) by magnitude; 8 and 9 bytes mark the second byte too.
    let (len, prefix) = match u {
        0..0x40 => (1, 0x00),
        0x40..0x2000 => (2, 0x40),
        0x2000..0x10_0000 => (3, 0x60),
        0x10_0000..0x800_0000 => (4, 0x70),
        0x800_0000..0x4_0000_0000 => (5, 0x78),
        0x4_0000_0000..0x200_0000_0000 => (6, 0x7c),
        0x200_0000_0000..0x1_0000_0000_0000 => (7, 0x7e),
        0x1_0000_0000_0000..0x80_0000_0000_0000 => (8, 0x7f),
        _ => (9, 0x7f),
    };
    let mut bytes = [0u8; 9];
    for (i, byte) in bytes[..len].iter_mut().enumerate() {
        *byte = (u >> (8 * (len - 1 - i)).min(63)) as u8;
    }
    if len == 9 {
        bytes[0] = 0;
        bytes[1] |= 0x80;
    }
    bytes[0] |= prefix;
    for byte in &mut bytes[..len] {
        *byte ^= flip;
    }
    out.put_slice(&bytes[..len]);
}

fn take<'a>(input: &mut &'a [u8], len: usize) -> Result<&'a [u8], Truncated> {
    let (head, rest) = input.split_at_checked(len).ok_or(Truncated)?;
    *input = rest;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn long(v: i64) -> Vec<u8> {
        let mut out = Vec::new();
        write_long(&mut out, v);
        out
    }

    #[test]
    fn lengths_change_where_the_ancestor_says() {
        for (bits, len) in [(6, 1), (13, 2), (20, 3), (27, 4), (34, 5), (41, 6), (48, 7), (55, 8), (63, 9)] {
            let limit = (1u64 << bits) as i64;
            assert_eq!(long(limit.wrapping_sub(1)).len(), len, "{bits}");
            assert_eq!(long(limit.wrapping_neg()).len(), len, "-{bits}");
        }
        assert_eq!(long(-1), [0xff]);
        assert_eq!(long(-19), [0xed]);
        assert_eq!(long(1000), [0x43, 0xe8]);
        assert_eq!(long(0x1_0000_0005), [0x79, 0, 0, 0, 5]);
    }

    proptest! {
        #[test]
        fn longs_come_back(v: i64, shift in 0u32..64) {
            let v = v >> shift;
            prop_assert_eq!(read_long(&mut &long(v)[..]), Ok(v));
        }

        #[test]
        fn uints_come_back(v: u32, shift in 0u32..32) {
            let mut out = Vec::new();
            write_uint(&mut out, v >> shift);
            prop_assert_eq!(read_uint(&mut &out[..]), Ok(v >> shift));
        }

        #[test]
        fn any_bytes_give_a_number_or_truncated(bytes: Vec<u8>) {
            let mut input = &bytes[..];
            if read_long(&mut input).is_err() {
                prop_assert_eq!(input.len(), bytes.len());
            }
            let _ = read_uint(&mut &bytes[..]);
        }
    }
}
