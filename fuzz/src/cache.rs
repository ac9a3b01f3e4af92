//! What providers and the arbiter of records say to each other.

use prost::Message;
use wire::cache::{self, Ask, Deny, Grant, Held, Reduce, Reduced, Refused, message};

/// The fixed heads: each has one size, and is written as it was read.
pub fn heads(bytes: &[u8]) {
    if let Ok(head) = Grant::decode(bytes) {
        assert_eq!(head.encode(), bytes);
    }
    if let Ok(head) = Deny::decode(bytes) {
        assert_eq!(head.encode(), bytes);
    }
    if let Ok(head) = Reduce::decode(bytes) {
        assert_eq!(head.encode(), bytes);
    }
    if let Ok(head) = Reduced::decode(bytes) {
        assert_eq!(head.encode(), bytes);
    }
    if let Ok(head) = Refused::decode(bytes) {
        assert_eq!(head.encode(), bytes);
    }
}

/// The lists and messages: the first byte says which.
pub fn bodies(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => {
            let mut again = Vec::new();
            let read = cache::asks(bytes, |ask: Ask<'_>| {
                assert!((1..=cache::KEY_BYTES_MAX).contains(&ask.key.len()));
                ask.encode(&mut again);
            });
            assert!(bytes.starts_with(&again) && (read.is_err() || again == bytes));
        }
        1 => {
            let mut count = 0;
            let read = cache::held(bytes, |_: Held| count += 1);
            assert!(read.is_err() || count * Held::BYTES == bytes.len());
        }
        2 => drop(message::Login::decode(bytes)),
        _ => drop(message::Evictions::decode(bytes)),
    }
}
