//! The built-in Auth of the client wire: module 10000, the ancestor's id and tagged fields, so that its clients log in
//! unchanged.

use base::{ModuleId, ProtocolId, TypeId};
use bytes::BufMut;

use crate::tagged::{BadBean, Reader, Value, Writer};

pub const AUTH: TypeId = TypeId::new(ModuleId(10000), ProtocolId(-997899722));

/// What a client says to log in. Every field is as sent: judged by the authentication, not here.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Auth<'a> {
    pub account: &'a [u8],
    pub token: &'a [u8],
    /// "a.b.c.d", or empty.
    pub app_version: &'a [u8],
    pub queue_token: &'a [u8],
}

/// Tokens are secrets.
impl std::fmt::Debug for Auth<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (account, version) = (self.account.escape_ascii(), self.app_version.escape_ascii());
        write!(f, "Auth {{ account: {account}, token: ***, app_version: {version}, queue_token: *** }}")
    }
}

impl<'a> Auth<'a> {
    pub fn decode(body: &'a [u8]) -> Result<Self, BadBean> {
        let mut auth = Self::default();
        let mut reader = Reader::new(body);
        while let Some((id, value)) = reader.field()? {
            let Value::Bytes(bytes) = value else { continue };
            match id {
                1 => auth.account = bytes,
                2 => auth.token = bytes,
                3 => auth.app_version = bytes,
                4 => auth.queue_token = bytes,
                _ => {}
            }
        }
        Ok(auth)
    }

    pub fn encode(&self, out: &mut impl BufMut) {
        let mut writer = Writer::new(out);
        writer.bytes(1, self.account);
        writer.bytes(2, self.token);
        writer.bytes(3, self.app_version);
        writer.bytes(4, self.queue_token);
        writer.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{self, Head};
    use bytes::BytesMut;

    /// Captured from the ancestor's C# test client.
    #[test]
    fn the_bytes_are_the_ancestors() {
        let auth = Auth { account: b"ZezeTest", ..Auth::default() };
        let mut out = BytesMut::new();
        payload::encode_frame(&mut out, AUTH, Head::request(1), |out| auth.encode(out));
        let mut expected = vec![0x10, 0x27, 0, 0, 0x36, 0x42, 0x85, 0xc4, 0x0d, 0, 0, 0, 1, 1, 0x13, 8];
        expected.extend_from_slice(b"ZezeTest\0");
        assert_eq!(&out[..], &expected[..]);
    }

    #[test]
    fn fields_come_back_and_unknown_ones_are_skipped() {
        let auth = Auth { account: b"a", token: b"t", app_version: b"1.2.3.4", queue_token: b"q" };
        let mut out = Vec::new();
        auth.encode(&mut out);
        out.pop();
        out.extend_from_slice(&[0x30, 5, 0]);
        assert_eq!(Auth::decode(&out), Ok(auth));
    }
}
