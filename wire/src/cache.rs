//! What providers and the arbiter of records say to each other: fixed heads for what is said a million times a second,
//! messages for the rest.
//!
//! | kind | who | what |
//! |---|---|---|
//! | [`LOGIN`] | provider | a call: `message::Login`, answered with `message::Welcome` |
//! | [`RENEW`], [`BYE`] | provider | calls without content |
//! | [`ACQUIRE`] | provider | the body: one [`Ask`] after another, each answered by itself |
//! | [`GRANT`] | arbiter | [`Grant`]; the body, if any: `message::Evictions` |
//! | [`DENY`] | arbiter | [`Deny`] |
//! | [`REDUCE`] | arbiter | [`Reduce`] |
//! | [`REDUCED`] | provider | [`Reduced`]; to Invalid also by itself |
//! | [`REFUSED`] | provider | [`Refused`] |
//! | [`REASSERT`] | provider | the body: one [`Held`] after another |
//! | [`REASSERTED`] | arbiter | the body: one [`Held`] after another, with the new number or 0 |

use base::RequestId;

use crate::link::BadHead;
use crate::node::Kind;

pub const LOGIN: Kind = Kind(40);
pub const RENEW: Kind = Kind(41);
pub const BYE: Kind = Kind(42);
pub const ACQUIRE: Kind = Kind(43);
pub const GRANT: Kind = Kind(44);
pub const DENY: Kind = Kind(45);
pub const REDUCE: Kind = Kind(46);
pub const REDUCED: Kind = Kind(47);
pub const REFUSED: Kind = Kind(48);
pub const REASSERT: Kind = Kind(49);
pub const REASSERTED: Kind = Kind(50);

/// A record's key has at least one byte and at most these.
pub const KEY_BYTES_MAX: usize = 1_024;
/// Storages that a provider may name at its login, each with a name of at most so many bytes.
pub const STORAGES_MAX: usize = 64;
pub const BACKEND_BYTES_MAX: usize = 64;
/// Records that one frame may ask for or reassert.
pub const RECORDS_MAX: usize = 4_096;

/// How a provider may use a record, in one byte. Other bytes are nobody's mode.
pub mod mode {
    pub const INVALID: u8 = 0;
    pub const SHARE: u8 = 1;
    pub const MODIFY: u8 = 2;
}

/// What stands for a record between arbiter and provider: a hash of its table and key, 128 bits wide.
pub fn record(key: &[u8]) -> u128 {
    base::hash::wide(key)
}

/// A body that is no list of what it should be. The peer's fault; the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBody {
    #[error("a body of kind {0} ends within an entry")]
    Short(u8),
    #[error("a body of kind {kind} has more than {max} entries")]
    Many { kind: u8, max: usize },
    #[error("a record's key has {0} bytes; it has 1 to {KEY_BYTES_MAX}")]
    Key(usize),
}

/// One record asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask<'a> {
    pub request: RequestId,
    pub want: u8,
    /// The number of the grant under which the provider has it in memory; 0: it has not.
    pub have: u64,
    pub key: &'a [u8],
}

/// Bytes of an ask before its key.
const ASK_BYTES: usize = 19;

impl<'a> Ask<'a> {
    /// Appends it to the body of an ACQUIRE. The key has 1 to [`KEY_BYTES_MAX`] bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.request.0.to_le_bytes());
        out.push(self.want);
        out.extend_from_slice(&self.have.to_le_bytes());
        out.extend_from_slice(&(self.key.len().min(KEY_BYTES_MAX) as u16).to_le_bytes());
        out.extend_from_slice(&self.key[..self.key.len().min(KEY_BYTES_MAX)]);
    }

    /// Takes one off the front of a body.
    fn take(body: &'a [u8]) -> Result<(Self, &'a [u8]), BadBody> {
        let short = BadBody::Short(ACQUIRE.0);
        let (head, rest) = body.split_first_chunk::<ASK_BYTES>().ok_or(short)?;
        let &[r0, r1, r2, r3, r4, r5, r6, r7, want, h0, h1, h2, h3, h4, h5, h6, h7, l0, l1] = head;
        let len = usize::from(u16::from_le_bytes([l0, l1]));
        if !(1..=KEY_BYTES_MAX).contains(&len) {
            return Err(BadBody::Key(len));
        }
        let (key, rest) = rest.split_at_checked(len).ok_or(short)?;
        let request = RequestId(u64::from_le_bytes([r0, r1, r2, r3, r4, r5, r6, r7]));
        let have = u64::from_le_bytes([h0, h1, h2, h3, h4, h5, h6, h7]);
        Ok((Self { request, want, have, key }, rest))
    }
}

/// Hands each ask of an ACQUIRE's body to `each`, in order; those before a bad one are handed out.
pub fn asks<'a>(mut body: &'a [u8], mut each: impl FnMut(Ask<'a>)) -> Result<(), BadBody> {
    let mut count = 0;
    while !body.is_empty() {
        count += 1;
        if count > RECORDS_MAX {
            return Err(BadBody::Many { kind: ACQUIRE.0, max: RECORDS_MAX });
        }
        let (ask, rest) = Ask::take(body)?;
        each(ask);
        body = rest;
    }
    Ok(())
}

/// Writes the fields of a head one after another, little-endian, and reads them back.
macro_rules! head {
    ($(#[$doc:meta])* $name:ident, $kind:expr, $bytes:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type),* }

        impl $name {
            pub const BYTES: usize = $bytes;

            pub fn encode(self) -> [u8; $bytes] {
                let mut head = [0; $bytes];
                let mut at = 0;
                $(
                    let bytes = self.$field.to_le_bytes();
                    head[at..at + bytes.len()].copy_from_slice(&bytes);
                    at += bytes.len();
                )*
                debug_assert_eq!(at, $bytes);
                head
            }

            pub fn decode(head: &[u8]) -> Result<Self, BadHead> {
                let bad = BadHead { kind: $kind.0, len: head.len() };
                let mut rest = head;
                $(
                    let (bytes, after) = rest.split_first_chunk().ok_or(bad)?;
                    let $field = <$type>::from_le_bytes(*bytes);
                    rest = after;
                )*
                if rest.is_empty() { Ok(Self { $($field),* }) } else { Err(bad) }
            }
        }
    };
}

head! {
    /// A permission, answering the request of this number.
    Grant, GRANT, 26 {
        request: u64,
        mode: u8,
        /// 1: what the provider has in memory may be old.
        must_reload: u8,
        seq: u64,
        /// What is loaded has at least this version.
        version_min: u64,
    }
}

head! {
    /// Why the request of this number is granted nothing: a number of the code registry.
    Deny, DENY, 16 {
        request: u64,
        code: i32,
        retry_after_ms: u32,
    }
}

head! {
    /// The provider is to use the record of this grant only like this, within the time.
    Reduce, REDUCE, 29 {
        record: u128,
        seq: u64,
        to: u8,
        within_ms: u32,
    }
}

head! {
    /// The provider uses the record of this grant only like this now.
    Reduced, REDUCED, 33 {
        record: u128,
        seq: u64,
        to: u8,
        /// The version that is in the storage.
        flushed: u64,
    }
}

head! {
    /// The provider can't reduce yet, and is asked again after this time.
    Refused, REFUSED, 28 {
        record: u128,
        seq: u64,
        until_ms: u32,
    }
}

head! {
    /// A record that is held on after a restart of the arbiter.
    Held, REASSERT, 25 {
        record: u128,
        mode: u8,
        /// From the arbiter: the number under which it is held now; 0: it is not.
        seq: u64,
    }
}

/// Hands each entry of a REASSERT's or REASSERTED's body to `each`.
pub fn held(body: &[u8], mut each: impl FnMut(Held)) -> Result<(), BadBody> {
    let (entries, rest) = body.as_chunks::<{ Held::BYTES }>();
    if !rest.is_empty() {
        return Err(BadBody::Short(REASSERT.0));
    }
    if entries.len() > RECORDS_MAX {
        return Err(BadBody::Many { kind: REASSERT.0, max: RECORDS_MAX });
    }
    for entry in entries {
        // Of this length it is always read.
        each(Held::decode(entry).map_err(|_| BadBody::Short(REASSERT.0))?);
    }
    Ok(())
}

/// Messages of `proto/cache.proto`.
pub mod message {
    #![allow(clippy::pedantic, missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/linkstead.cache.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn heads_are_frozen() {
        let grant = Grant { request: 1, mode: mode::MODIFY, must_reload: 1, seq: 3, version_min: 4 };
        let bytes = [1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(grant.encode(), bytes);
        let deny = Deny { request: 1, code: -2, retry_after_ms: 3 };
        assert_eq!(deny.encode(), [1, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255, 3, 0, 0, 0]);
        let mut out = Vec::new();
        Ask { request: RequestId(1), want: mode::SHARE, have: 2, key: b"k" }.encode(&mut out);
        assert_eq!(out, [1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, b'k']);
    }

    /// Holds: BI-085.
    #[test]
    fn a_key_has_one_to_1024_bytes() {
        let body = |len: u16| {
            let mut body = vec![0; 17];
            body.extend(len.to_le_bytes());
            body.extend(vec![7; len.into()]);
            asks(&body, |_| {})
        };
        assert_eq!(body(0), Err(BadBody::Key(0)));
        assert_eq!(body(1_025), Err(BadBody::Key(1_025)));
        assert_eq!((body(1), body(1_024)), (Ok(()), Ok(())));
        let one = {
            let mut out = Vec::new();
            Ask { request: RequestId(1), want: 1, have: 0, key: b"k" }.encode(&mut out);
            out
        };
        let many = one.repeat(RECORDS_MAX + 1);
        assert_eq!(asks(&many, |_| {}), Err(BadBody::Many { kind: 43, max: RECORDS_MAX }));
        assert_eq!(
            held(&vec![0; 25 * (RECORDS_MAX + 1)], |_| {}),
            Err(BadBody::Many { kind: 49, max: RECORDS_MAX })
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(request: u64, want: u8, have: u64, key in prop::collection::vec(any::<u8>(), 1..40), record: u128, seq: u64, count in 1..5usize) {
            let ask = Ask { request: RequestId(request), want, have, key: &key };
            let mut out = Vec::new();
            (0..count).for_each(|_| ask.encode(&mut out));
            let mut read = Vec::new();
            asks(&out, |ask| read.push(ask)).unwrap();
            prop_assert_eq!(read, vec![ask; count]);
            let reduced = Reduced { record, seq, to: want, flushed: have };
            prop_assert_eq!(Reduced::decode(&reduced.encode()), Ok(reduced));
            let reduce = Reduce { record, seq, to: want, within_ms: 5 };
            prop_assert_eq!(Reduce::decode(&reduce.encode()), Ok(reduce));
            let refused = Refused { record, seq, until_ms: 6 };
            prop_assert_eq!(Refused::decode(&refused.encode()), Ok(refused));
            let grant = Grant { request, mode: want, must_reload: 0, seq, version_min: have };
            prop_assert_eq!(Grant::decode(&grant.encode()), Ok(grant));
        }

        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = (Grant::decode(&bytes), Deny::decode(&bytes), Reduce::decode(&bytes), Reduced::decode(&bytes));
            let _ = (Refused::decode(&bytes), asks(&bytes, |_| {}), held(&bytes, |_| {}));
        }
    }
}
