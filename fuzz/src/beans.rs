//! The ancestor's tagged encoding and its numbers.

use bytes::BytesMut;
use wire::auth::Auth;
use wire::handshake;
use wire::report::ReportError;
use wire::tagged::{Reader, Writer};
use wire::varint;

/// Auth: what was read is read again from what is written.
pub fn auth(bytes: &[u8]) {
    let Ok(auth) = Auth::decode(bytes) else { return };
    let mut again = Vec::new();
    auth.encode(&mut again);
    assert_eq!(Auth::decode(&again), Ok(auth));
    assert!(again.len() <= bytes.len(), "{} bytes were written of {}", again.len(), bytes.len());
    let shown = format!("{auth:?}");
    assert!(shown.contains("token: ***") && !shown.contains(char::is_control));
}

/// ReportError, and the CHandshake that has a similar body.
pub fn report(bytes: &[u8]) {
    if let Ok(report) = ReportError::decode(bytes) {
        let mut again = BytesMut::new();
        let mut writer = Writer::new(&mut again);
        writer.integer(1, report.from);
        writer.integer(2, report.code);
        writer.bytes(3, report.text.as_bytes());
        writer.end();
        assert_eq!(ReportError::decode(&again), Ok(report));
    }
    // What asks for nothing goes on asking for nothing when more follows.
    if handshake::is_plain(bytes) {
        assert!(handshake::is_plain(&[bytes, &[1]].concat()));
    }
}

/// Any bean: ends, with no more fields than bytes, in ascending order, and says the same again.
pub fn bean(bytes: &[u8]) {
    let (mut reader, mut fields, mut last) = (Reader::new(bytes), 0, 0);
    while let Ok(Some((id, _))) = reader.field() {
        assert!(id >= last);
        (fields, last) = (fields + 1, id);
        assert!(fields <= bytes.len());
    }
}

/// Both numbers of variable length.
pub fn varint(bytes: &[u8]) {
    let mut rest = bytes;
    if let Ok(value) = varint::read_long(&mut rest) {
        let mut again = Vec::new();
        varint::write_long(&mut again, value);
        assert!(again.len() <= bytes.len() - rest.len());
        assert_eq!(varint::read_long(&mut &again[..]), Ok(value));
    }
    let mut rest = bytes;
    if let Ok(value) = varint::read_uint(&mut rest) {
        let mut again = Vec::new();
        varint::write_uint(&mut again, value);
        assert!(again.len() <= bytes.len() - rest.len());
        assert_eq!(varint::read_uint(&mut &again[..]), Ok(value));
    }
}
