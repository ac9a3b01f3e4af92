//! What a connection begins with, read from the connection itself: to its end and no further.

use base::{Epoch, NodeId};
use net::hello::{self, HelloError, Ours, Proof, Role};
use net::ws::decode::{Decoder, End, Found};
use net::ws::upgrade::HEAD_BYTES_MAX;
use net::{preface, proxy, ws};
use wire::node::{self, Kind};

use crate::pieces::{Pieces, block, same_in_pieces};

/// A balancer's PROXY header, version 1 or 2.
pub fn proxy(bytes: &[u8]) {
    same_in_pieces(bytes, |piece| {
        let mut stream = Pieces::new(bytes, piece);
        let read = block(proxy::read(&mut stream)).map_err(|error| error.to_string());
        let used = bytes.len() - stream.unread().len();
        assert!(used <= proxy::HEADER_BYTES_MAX, "{used} bytes were read");
        (read, used)
    });
}

/// A provider's preface.
pub fn preface(bytes: &[u8]) {
    same_in_pieces(bytes, |piece| {
        let mut stream = Pieces::new(bytes, piece);
        let worker = block(preface::read(&mut stream)).ok();
        if let Some(worker) = worker {
            assert_eq!(bytes.len() - stream.unread().len(), node::HEADER_BYTES);
            let mut said = Pieces::new(&[], 1);
            block(preface::send(&mut said, worker)).expect("a Pieces can always be written to");
            assert_eq!(block(preface::read(&mut Pieces::new(&said.heard, 1))).ok(), Some(worker));
        }
        (worker, stream.unread())
    });
}

/// A node's hello, and what it is answered: our own hello to who is welcome, a goodbye to who is refused, nothing to a
/// stranger.
pub fn hello(bytes: &[u8]) {
    let ours = Ours {
        cluster: "dev".to_owned(),
        node: NodeId::new("linkd-1").expect("a proper id"),
        role: Role::Linkd,
        epoch: Epoch(1),
        worker: 0,
    };
    same_in_pieces(bytes, |piece| {
        let mut stream = Pieces::new(bytes, piece);
        let peer = block(hello::accept(&mut stream, &Proof::Simulated, &ours, &[Role::Provider]));
        let answer = match node::decode(&stream.heard, node::FRAME_BYTES_MAX) {
            Ok(node::Decoded::Frame(frame)) => Some(frame.meta.kind),
            _ => None,
        };
        match &peer {
            Ok(peer) => {
                assert_eq!((peer.role, answer), (Role::Provider, Some(Kind::HELLO)));
                assert_ne!(peer.epoch, Epoch(0));
            }
            Err(HelloError::Refused { .. }) => assert_eq!(answer, Some(Kind::GOODBYE)),
            Err(_) => assert!(stream.heard.is_empty()),
        }
        (peer.map_err(|error| error.to_string()), answer, stream.unread())
    });
}

/// The request that begins a WebSocket: answered in HTTP, whatever it is.
pub fn upgrade(bytes: &[u8]) {
    // What follows the request before its answer is seen only when it comes with it.
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let request = &bytes[..end];
    let only = ws::Origins::Only(["https://game.example".to_owned()].into());
    same_in_pieces(request, |piece| {
        let mut stream = Pieces::new(request, piece);
        let judged = block(ws::upgrade::upgrade(&mut stream, &only));
        let status = stream.heard.get(..12).map(<[u8]>::to_vec);
        match &judged {
            Ok(()) => assert_eq!(status.as_deref(), Some(&b"HTTP/1.1 101"[..])),
            Err(ws::Refused::Io(_)) => assert_eq!(status, None),
            Err(_) => assert!(stream.heard.starts_with(b"HTTP/1.1 4")),
        }
        assert!(request.len() - stream.unread().len() <= HEAD_BYTES_MAX);
        (judged.map_err(|error| error.to_string()), status)
    });
}

/// The frames of a WebSocket client. The first two bytes choose the largest message.
pub fn websocket(bytes: &[u8]) {
    let Some((limit, bytes)) = bytes.split_first_chunk::<2>() else { return };
    let limit = u64::from(u16::from_le_bytes(*limit));
    same_in_pieces(bytes, |piece| {
        let (mut decoder, mut data) = (Decoder::new(limit), Vec::new());
        let mut all = Found::default();
        for bytes in bytes.chunks(piece.min(bytes.len().max(1))) {
            let (mut bytes, mut found) = (bytes.to_vec(), Found::default());
            let len = decoder.decode(&mut bytes, &mut found);
            data.extend_from_slice(&bytes[..len]);
            all.controls += found.controls;
            all.ping = found.ping.or(all.ping);
            all.end = found.end;
            if all.end.is_some() {
                break;
            }
        }
        assert!(all.ping.as_ref().is_none_or(|ping| ping.len() <= 125));
        assert!(data.len() < bytes.len().max(1), "a frame has a header");
        if let Some(End::Violation(violation)) = all.end {
            assert!((1002..=1009).contains(&violation.close_code()));
        }
        (data, all)
    });
}
