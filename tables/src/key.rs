//! What a table is keyed by.

use std::fmt::Debug;
use std::hash::Hash;

use base::{Account, NodeId, Role, ServerId};
use bytes::Bytes;

/// The key of a record. Its bytes sort as its values do, and no key's bytes begin another's of the same type, so that keys
/// can be put one behind another: a tuple sorts by its first, then by its second.
///
/// | type | bytes |
/// |---|---|
/// | `u8` to `u128`, [`ServerId`], [`Role`] | big-endian |
/// | `i8` to `i128` | big-endian with the sign bit turned over, so that -1 stands before 0 |
/// | `bool` | 0 or 1 |
/// | `char` | its number, as `u32` |
/// | `String`, `Vec<u8>`, [`Bytes`], [`Account`], [`NodeId`] | as they are, each 00 written as 00 FF, then 00 01 |
/// | `[u8; N]` | as they are; at least one |
/// | tuples of one to four | one behind another |
///
/// These bytes are kept at the storage, so they never change. `usize` and `isize` are none: machines differ in them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the key of a table",
    label = "no key",
    note = "keys are numbers (not usize, isize or floats), bool, char, String, Vec<u8>, [u8; N], Account, Role, ServerId, \
            NodeId, and tuples of one to four of these"
)]
pub trait Key: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static {
    /// Appends its bytes: 1 to [`KEY_BYTES_MAX`](crate::backend::KEY_BYTES_MAX) for a whole key. What is longer is refused
    /// where the key is used.
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes one off the front of some bytes; `None`: they are no such key. One value has one spelling: what is taken is
    /// what [`encode`](Self::encode) writes.
    fn decode(bytes: &mut &[u8]) -> Option<Self>;
}

/// Takes so many bytes off the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

macro_rules! unsigned {
    ($($number:ty),*) => {$(
        impl Key for $number {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                take(bytes).map(Self::from_be_bytes)
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64, u128);

/// `MIN` has the sign bit alone: turning it over puts the negative numbers below the others.
macro_rules! signed {
    ($($number:ty),*) => {$(
        impl Key for $number {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&(self ^ Self::MIN).to_be_bytes());
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                take(bytes).map(|bytes| Self::from_be_bytes(bytes) ^ Self::MIN)
            }
        }
    )*};
}

signed!(i8, i16, i32, i64, i128);

/// A type of one number is kept as the number.
macro_rules! number {
    ($($name:ident($inner:ty)),*) => {$(
        impl Key for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                <$inner>::decode(bytes).map(Self)
            }
        }
    )*};
}

number!(ServerId(u32), Role(u64));

impl Key for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        match take(bytes)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Key for char {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        u32::decode(bytes).and_then(Self::from_u32)
    }
}

/// The byte that means something in a key of no fixed length: what comes behind it says what.
const ESCAPE: u8 = 0x00;
/// Behind [`ESCAPE`]: the byte 00 itself. Above every other meaning, so that "a" with more behind it sorts behind "a".
const ZERO: u8 = 0xff;
/// Behind [`ESCAPE`]: the end. No byte of a longer text stands below it, so the shorter one comes first.
const END: u8 = 0x01;

fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    let mut pieces = text.split(|byte| *byte == ESCAPE);
    out.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.extend_from_slice(&[ESCAPE, ZERO]);
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(&[ESCAPE, END]);
}

fn decode_text(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let at = bytes.iter().position(|byte| *byte == ESCAPE)?;
        text.extend_from_slice(&bytes[..at]);
        *bytes = &bytes[at + 1..];
        match take(bytes)? {
            [ZERO] => text.push(ESCAPE),
            [END] => return Some(text),
            _ => return None,
        }
    }
}

impl Key for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_text(self, out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        decode_text(bytes)
    }
}

impl Key for Bytes {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_text(self, out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        decode_text(bytes).map(Self::from)
    }
}

impl Key for String {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_text(self.as_bytes(), out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        decode_text(bytes).and_then(|text| Self::from_utf8(text).ok())
    }
}

/// An id that is a text of certain characters: others are no such key.
macro_rules! id {
    ($($name:ty),*) => {$(
        impl Key for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                encode_text(self.as_str().as_bytes(), out);
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                String::decode(bytes).and_then(|text| Self::new(&text).ok())
            }
        }
    )*};
}

id!(Account, NodeId);

impl<const N: usize> Key for [u8; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        const { assert!(N > 0, "a key has at least one byte") };
        out.extend_from_slice(self);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        const { assert!(N > 0, "a key has at least one byte") };
        take(bytes)
    }
}

macro_rules! tuple {
    ($($part:ident: $at:tt),*) => {
        impl<$($part: Key),*> Key for ($($part,)*) {
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$at.encode(out);)*
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($part::decode(bytes)?,)*))
            }
        }
    };
}

tuple!(A: 0);
tuple!(A: 0, B: 1);
tuple!(A: 0, B: 1, C: 2);
tuple!(A: 0, B: 1, C: 2, D: 3);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(key: &impl Key) -> Vec<u8> {
        let mut out = Vec::new();
        key.encode(&mut out);
        out
    }

    /// Whatever two keys of one type promise each other.
    fn pair<K: Key>(a: &K, b: &K) -> Result<(), TestCaseError> {
        let (bytes, others) = (encoded(a), encoded(b));
        prop_assert!(!bytes.is_empty());
        prop_assert_eq!(a.cmp(b), bytes.cmp(&others));
        prop_assert!(a == b || !others.starts_with(&bytes), "{:?} begins {:?}", a, b);
        // One behind another, each is read where the one before it ends.
        let both = [bytes.as_slice(), &others].concat();
        let mut rest = both.as_slice();
        let read = K::decode(&mut rest);
        prop_assert_eq!(read.as_ref(), Some(a));
        prop_assert_eq!(rest, others.as_slice());
        let cut = K::decode(&mut &bytes[..bytes.len() - 1]);
        prop_assert_eq!(cut, None, "the end of {:?} is not known", a);
        Ok(())
    }

    /// What any bytes are: no key, or one that is written as it stood there.
    fn foreign<K: Key>(bytes: &[u8]) -> Result<(), TestCaseError> {
        let mut rest = bytes;
        if let Some(key) = K::decode(&mut rest) {
            prop_assert_eq!(encoded(&key), &bytes[..bytes.len() - rest.len()], "{:?}", key);
        }
        Ok(())
    }

    /// Bytes that mean something in a text, more often than others.
    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![Just(0x00), Just(0x01), Just(0xff), Just(b'a'), any::<u8>()]
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(byte(), 0..6)
    }

    fn text() -> impl Strategy<Value = String> {
        let letter = prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('玩'), any::<char>()];
        prop::collection::vec(letter, 0..6).prop_map(String::from_iter)
    }

    fn name() -> impl Strategy<Value = String> {
        let letter = prop_oneof![Just('a'), Just('b'), Just('-'), Just('Z'), Just('9')];
        prop::collection::vec(letter, 1..6).prop_map(String::from_iter)
    }

    /// Near each other, so that they meet.
    fn near() -> impl Strategy<Value = i64> {
        prop_oneof![-3..3i64, any::<i64>()]
    }

    proptest! {
        #[test]
        fn numbers_sort_by_value(a: (u8, u16, u32, u64), b: (u8, u16, u32, u64), c: (u128, i128), d: (u128, i128)) {
            pair(&a, &b)?;
            pair(&a.0, &b.0)?;
            pair(&a.1, &b.1)?;
            pair(&a.2, &b.2)?;
            pair(&a.3, &b.3)?;
            pair(&c, &d)?;
            pair(&c.0, &d.0)?;
            pair(&c.1, &d.1)?;
            pair(&(ServerId(a.2), Role(a.3)), &(ServerId(b.2), Role(b.3)))?;
        }

        #[test]
        fn the_negative_ones_come_first(a in near(), b in near(), c: bool, d: bool, e: char, f: char) {
            pair(&a, &b)?;
            pair(&(a as i32), &(b as i32))?;
            pair(&(a as i16), &(b as i16))?;
            pair(&(a as i8), &(b as i8))?;
            pair(&i128::from(a), &i128::from(b))?;
            pair(&(c, e), &(d, f))?;
            pair(&c, &d)?;
            pair(&e, &f)?;
        }

        #[test]
        fn texts_sort_by_value_and_end_somewhere(a in bytes(), b in bytes(), c in text(), d in text()) {
            pair(&a, &b)?;
            pair(&c, &d)?;
            pair(&Bytes::from(a.clone()), &Bytes::from(b.clone()))?;
            pair(&(a.clone(), c.clone()), &(b.clone(), d.clone()))?;
            pair(&(a, 1u8, c, false), &(b, 1u8, d, true))?;
        }

        #[test]
        fn ids_sort_by_value(a in name(), b in name(), c: [u8; 3], d: [u8; 3]) {
            let id = |text: &str| (NodeId::new(text).unwrap(), Account::new(text).unwrap());
            pair(&id(&a), &id(&b))?;
            pair(&c, &d)?;
            pair(&(c, a.clone(), d), &(c, b.clone(), c))?;
            pair(&(a,), &(b,))?;
        }

        #[test]
        fn any_bytes_are_no_key_or_one_that_is_written_so(bytes in prop::collection::vec(byte(), 0..24)) {
            foreign::<bool>(&bytes)?;
            foreign::<char>(&bytes)?;
            foreign::<i32>(&bytes)?;
            foreign::<u128>(&bytes)?;
            foreign::<Vec<u8>>(&bytes)?;
            foreign::<String>(&bytes)?;
            foreign::<Account>(&bytes)?;
            foreign::<NodeId>(&bytes)?;
            foreign::<(String, bool, Vec<u8>)>(&bytes)?;
            foreign::<(u8, [u8; 3], Bytes, char)>(&bytes)?;
        }
    }

    /// What stands at a storage is read by every later release.
    #[test]
    fn the_bytes_are_frozen() {
        assert_eq!(encoded(&0x0102_u16), [1, 2]);
        assert_eq!([encoded(&i8::MIN), encoded(&-1i8), encoded(&0i8)], [[0x00], [0x7f], [0x80]]);
        assert_eq!(encoded(&i32::MAX), [0xff; 4]);
        assert_eq!(encoded(&'玩'), [0, 0, 0x73, 0xa9]);
        assert_eq!(encoded(&"a\0b".to_owned()), *b"a\x00\xffb\x00\x01");
        assert_eq!(encoded(&(String::new(), true)), [0, 1, 1]);
        assert_eq!(encoded(&Account::new("玩").unwrap()), *b"\xe7\x8e\xa9\x00\x01");
    }
}
