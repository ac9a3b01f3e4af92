//! Reads one top-level field of a protobuf body without decoding the rest: what `route_by` needs.

/// The value of the field, as far as routing uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl Key<'_> {
    /// The stable hash that a ring places it by.
    pub fn hash(&self) -> u64 {
        match self {
            Key::Number(n) => base::hash::bytes(&n.to_le_bytes()),
            Key::Bytes(b) => base::hash::bytes(b),
        }
    }
}

/// Bytes that are no protobuf message, or hold the field with a type that can't be routed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBody {
    #[error("the body ends inside a field")]
    Truncated,
    #[error("the body holds a number of more than 64 bits or an unknown wire type")]
    Malformed,
    #[error("field {0} is neither a varint nor a string")]
    NotRoutable(u32),
}

/// Finds the last occurrence of `tag` at the top level, as protobuf reads a repeated scalar. `None`: the field is
/// absent or default; what that routes to is the caller's rule.
pub fn field(mut body: &[u8], tag: u32) -> Result<Option<Key<'_>>, BadBody> {
    let mut found = None;
    while !body.is_empty() {
        let key = varint(&mut body)?;
        let number = u32::try_from(key >> 3).map_err(|_| BadBody::Malformed)?;
        let ours = number == tag;
        match key & 7 {
            0 => {
                let value = varint(&mut body)?;
                if ours {
                    found = Some(Key::Number(value));
                }
            }
            2 => {
                let len = usize::try_from(varint(&mut body)?).map_err(|_| BadBody::Truncated)?;
                let value = take(&mut body, len)?;
                if ours {
                    found = Some(Key::Bytes(value));
                }
            }
            wire @ (1 | 5) => {
                take(&mut body, if wire == 1 { 8 } else { 4 })?;
                if ours {
                    return Err(BadBody::NotRoutable(tag));
                }
            }
            _ => return Err(BadBody::Malformed),
        }
    }
    Ok(found)
}

fn varint(body: &mut &[u8]) -> Result<u64, BadBody> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = body.split_first().ok_or(BadBody::Truncated)?;
        *body = rest;
        if shift == 63 && byte > 1 {
            return Err(BadBody::Malformed);
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(BadBody::Malformed)
}

fn take<'a>(body: &mut &'a [u8], len: usize) -> Result<&'a [u8], BadBody> {
    let (head, rest) = body.split_at_checked(len).ok_or(BadBody::Truncated)?;
    *body = rest;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use prost::Message;

    #[derive(Clone, PartialEq, prost::Message)]
    struct Say {
        #[prost(string, tag = "1")]
        room: String,
        #[prost(uint64, tag = "2")]
        to: u64,
        #[prost(double, tag = "3")]
        loud: f64,
    }

    #[test]
    fn a_field_is_found_behind_others() {
        let body = Say { room: "attic".into(), to: 300, loud: 0.5 }.encode_to_vec();
        assert_eq!(field(&body, 1), Ok(Some(Key::Bytes(b"attic"))));
        assert_eq!(field(&body, 2), Ok(Some(Key::Number(300))));
        assert_eq!(field(&body, 3), Err(BadBody::NotRoutable(3)));
        assert_eq!(field(&body, 4), Ok(None));
    }

    /// Holds: BI-031.
    #[test]
    fn overlong_numbers_are_refused() {
        let overlong = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(field(&overlong, 1), Err(BadBody::Malformed));
        assert_eq!(field(&[0x0b, 0x0c], 1), Err(BadBody::Malformed));
        assert_eq!(field(&[0x12, 0xff, 0xff, 0xff, 0xff, 0x0f], 1), Err(BadBody::Truncated));
    }

    proptest! {
        #[test]
        fn agrees_with_prost(room in ".{0,20}", to: u64) {
            let body = Say { room: room.clone(), to, loud: 1.0 }.encode_to_vec();
            let found = field(&body, 1).unwrap();
            prop_assert_eq!(found, (!room.is_empty()).then_some(Key::Bytes(room.as_bytes())));
        }

        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = field(&bytes, 1);
        }
    }
}
