//! Frames of both wires and what stands in front of their bodies.

use base::TypeId;
use bytes::BytesMut;
use prost::Message;
use wire::frame::{self, PAYLOAD_BYTES_DEFAULT};
use wire::node::{self, Meta, Owned};
use wire::payload::{self, Family};
use wire::skim::{self, Key};

use crate::pieces::{receive, same_in_pieces};

/// What a stream of client frames is read as.
type Frames = (Vec<(TypeId, Vec<u8>)>, Option<frame::BadFrame>, bool);

fn read_client(bytes: &[u8], piece: usize) -> Frames {
    let mut frames = Vec::new();
    let (bad, partial) = receive(bytes, piece, |bytes| {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match frame::decode(rest, PAYLOAD_BYTES_DEFAULT) {
                Ok(frame::Decoded::Incomplete { need }) => {
                    assert!(need > rest.len(), "{need} asked for, {} there", rest.len());
                    assert!(need <= frame::HEADER_BYTES + PAYLOAD_BYTES_DEFAULT as usize);
                    return (used, Ok(()));
                }
                Ok(frame::Decoded::Frame(frame)) => {
                    used += frame.whole.len();
                    let mut again = BytesMut::new();
                    frame::encode(&mut again, frame.type_id, |out| out.extend_from_slice(frame.payload));
                    assert_eq!(again, frame.whole);
                    frames.push((frame.type_id, frame.payload.to_vec()));
                }
                Err(bad) => return (used, Err(bad)),
            }
        }
    });
    (frames, bad, partial)
}

/// A stream of client frames.
pub fn client(bytes: &[u8]) {
    same_in_pieces(bytes, |piece| read_client(bytes, piece));
}

/// What a stream of node frames is read as.
type NodeFrames = (Vec<Owned>, Option<node::BadFrame>, bool);

fn read_node(bytes: &[u8], piece: usize) -> NodeFrames {
    let mut frames = Vec::new();
    let (bad, partial) = receive(bytes, piece, |bytes| {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match node::decode(rest, node::FRAME_BYTES_MAX) {
                Ok(node::Decoded::Incomplete { need }) => {
                    assert!(need > rest.len(), "{need} asked for, {} there", rest.len());
                    assert!(need <= 4 + node::FRAME_BYTES_MAX);
                    return (used, Ok(()));
                }
                Ok(node::Decoded::Frame(frame)) => {
                    let mut again = BytesMut::new();
                    node::encode(&mut again, &frame.meta, frame.head, frame.body);
                    assert_eq!(again, &rest[..frame.size]);
                    used += frame.size;
                    frames.push(frame.into());
                }
                Err(bad) => return (used, Err(bad)),
            }
        }
    });
    (frames, bad, partial)
}

/// A stream of node frames.
pub fn node(bytes: &[u8]) {
    same_in_pieces(bytes, |piece| read_node(bytes, piece));
    // A message written as a frame is the same as its bytes written as one.
    if let Ok(message) = wire::hello::Refusal::decode(bytes) {
        let (mut one, mut other) = (BytesMut::new(), BytesMut::new());
        node::encode_message(&mut one, &Meta::notice(node::Kind::GOODBYE), &message);
        node::encode(&mut other, &Meta::notice(node::Kind::GOODBYE), &[], &message.encode_to_vec());
        assert_eq!(one, other);
    }
}

/// The head of a client frame's payload.
pub fn payload(bytes: &[u8]) {
    let Ok((head, body)) = payload::decode(bytes) else { return };
    assert_eq!(payload::family(bytes), Ok(head.family));
    assert!(bytes.ends_with(body));
    assert!(head.family != Family::Protocol || head.session == 0);
    let mut again = Vec::new();
    head.encode(&mut again);
    // A code of 0 and a number that takes more bytes than it needs are read, and never written.
    assert!(again.len() <= bytes.len() - body.len());
    again.extend_from_slice(body);
    assert_eq!(payload::decode(&again), Ok((head, body)));
}

/// One field of a body, as protobuf would read it.
#[derive(Clone, PartialEq, Message)]
struct Numbered {
    #[prost(uint64, tag = "3")]
    key: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
}

/// The key that a request is routed by: what protobuf reads is what is skimmed.
pub fn skim(bytes: &[u8]) {
    match skim::field(bytes, 3) {
        Ok(Some(Key::Number(key))) => {
            if let Ok(read) = Numbered::decode(bytes) {
                assert_eq!(read.key, key);
            }
        }
        Ok(Some(Key::Bytes(key))) => {
            assert!(key.is_empty() || bytes.windows(key.len()).any(|window| window == key));
            if let Ok(read) = Named::decode(bytes) {
                assert_eq!(read.key, key);
            }
        }
        Ok(None) => {
            if let (Ok(number), Ok(name)) = (Numbered::decode(bytes), Named::decode(bytes)) {
                assert!(number.key == 0 && name.key.is_empty());
            }
        }
        Err(_) => {}
    }
    for tag in [0, 1, u32::MAX] {
        let _ = skim::field(bytes, tag);
    }
}
