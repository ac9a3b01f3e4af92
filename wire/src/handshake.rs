//! The client wire's handshake without encryption, and keep-alive. The ancestor's ids and bytes.
//!
//! linkd speaks first: [`server_hello`]. The client answers CHandshakeDone and may pipeline Auth behind it.
//! A CHandshake asks for encryption or compression, which this wire doesn't offer: TLS does.

use base::{ModuleId, ProtocolId, TypeId};
use bytes::{BufMut, BytesMut};

use crate::payload::{self, Head};
use crate::varint::{read_long, read_uint};

const fn framework(protocol: i32) -> TypeId {
    TypeId::new(ModuleId(0), ProtocolId(protocol))
}

pub const SHANDSHAKE0: TypeId = framework(-2018202792);
pub const CHANDSHAKE: TypeId = framework(-554021601);
pub const SHANDSHAKE: TypeId = framework(-723986006);
pub const CHANDSHAKE_DONE: TypeId = framework(1896283174);
pub const KEEP_ALIVE: TypeId = framework(-183352608);

/// Appends the frame linkd sends on accept: the long form, offering neither encryption nor compression. Clients
/// reject the ancestor's short form, and stay silent for ever without this frame.
pub fn server_hello(out: &mut BytesMut) {
    // encrypt, count of encrypts, compress s2c, compress c2s, count of compresses: all 0.
    payload::encode_frame(out, SHANDSHAKE0, Head::PROTOCOL, |out| out.put_slice(&[0; 5]));
}

/// Appends the answer to a CHandshake that asks for nothing: no parameter, no compression, no encryption.
pub fn server_handshake(out: &mut BytesMut) {
    payload::encode_frame(out, SHANDSHAKE, Head::PROTOCOL, |out| out.put_slice(&[0; 4]));
}

/// Appends what the client answers.
pub fn client_done(out: &mut BytesMut) {
    payload::encode_frame(out, CHANDSHAKE_DONE, Head::PROTOCOL, |out| out.put_u8(0));
}

/// Appends a keep-alive request.
pub fn keep_alive(out: &mut BytesMut, session: i64) {
    payload::encode_frame(out, KEEP_ALIVE, Head::request(session), |out| out.put_u8(0));
}

/// Appends the answer to a keep-alive.
pub fn keep_alive_answer(out: &mut BytesMut, session: i64) {
    payload::encode_frame(out, KEEP_ALIVE, Head::response(session, 0), |out| out.put_u8(0));
}

/// Whether a CHandshake's body asks for nothing this wire lacks. An unreadable one asks for something.
pub fn is_plain(mut body: &[u8]) -> bool {
    let mut read = || -> Option<bool> {
        let encrypt = read_long(&mut body).ok()?;
        let param = read_uint(&mut body).ok()? as usize;
        body = body.get(param..)?;
        Some(encrypt == 0 && read_long(&mut body).ok()? == 0 && read_long(&mut body).ok()? == 0)
    };
    read().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    #[test]
    fn the_bytes_are_the_ancestors() {
        let hello = [0, 0, 0, 0, 0x58, 0xab, 0xb4, 0x87, 6, 0, 0, 0, 2, 0, 0, 0, 0, 0];
        assert_eq!(bytes(server_hello), hello);
        assert_eq!(bytes(client_done), [0, 0, 0, 0, 0x26, 0xfc, 0x06, 0x71, 2, 0, 0, 0, 2, 0]);
        let ask = [0, 0, 0, 0, 0xe0, 0x42, 0x12, 0xf5, 3, 0, 0, 0, 1, 1, 0];
        assert_eq!(bytes(|out| keep_alive(out, 1)), ask);
        let answer = [0, 0, 0, 0, 0xe0, 0x42, 0x12, 0xf5, 3, 0, 0, 0, 0, 1, 0];
        assert_eq!(bytes(|out| keep_alive_answer(out, 1)), answer);
    }

    #[test]
    fn ids_are_the_hashes_of_the_ancestors_names() {
        for (id, name) in [
            (SHANDSHAKE0, "SHandshake0"),
            (CHANDSHAKE, "CHandshake"),
            (SHANDSHAKE, "SHandshake"),
            (CHANDSHAKE_DONE, "CHandshakeDone"),
            (KEEP_ALIVE, "KeepAlive"),
        ] {
            assert_eq!(
                id.protocol().0,
                base::hash::hash32(&format!("Zeze.Services.Handshake.{name}")),
                "{name}"
            );
        }
    }

    #[test]
    fn a_client_handshake_that_asks_for_encryption_is_seen() {
        assert!(is_plain(&[0, 0, 0, 0]));
        assert!(!is_plain(&[2, 3, 1, 2, 3, 0, 0]));
        assert!(!is_plain(&[0, 0, 1, 0]));
        assert!(!is_plain(&[0, 0xf0, 0xff, 0xff, 0xff, 0xff]));
        assert!(!is_plain(&[]));
    }
}
