//! The keys of records, as a storage keeps them.

use base::{Account, NodeId};
use tables::Key;

/// The first byte says which type is read. What is taken is written as it stood there, and ends where it ended.
pub fn key(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 8 {
        0 => read::<i64>(bytes),
        1 => read::<(bool, char)>(bytes),
        2 => read::<Vec<u8>>(bytes),
        3 => read::<String>(bytes),
        4 => read::<Account>(bytes),
        5 => read::<NodeId>(bytes),
        6 => read::<(String, u8, Vec<u8>)>(bytes),
        _ => read::<([u8; 3], bytes::Bytes, i16, String)>(bytes),
    }
}

fn read<K: Key>(bytes: &[u8]) {
    let mut rest = bytes;
    let Some(key) = K::decode(&mut rest) else { return };
    let mut again = Vec::new();
    key.encode(&mut again);
    assert!(bytes.strip_suffix(rest) == Some(again.as_slice()), "{key:?} is written otherwise");
    assert!(K::decode(&mut again.as_slice()).as_ref() == Some(&key));
    // The end is part of the key, so less of it is none.
    again.pop();
    assert!(K::decode(&mut again.as_slice()).is_none(), "{key:?} is read from less");
}
