//! ReportError: how linkd tells a client what went wrong outside any request.

use base::{ModuleId, ProtocolId, TypeId};
use bytes::{BufMut, BytesMut};

use crate::payload::{self, Head};
use crate::tagged::{BadBean, Reader, Value, Writer};

pub const REPORT_ERROR: TypeId = TypeId::new(ModuleId(11011), ProtocolId(918874807));

/// Who reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// The gateway; `code` is a number of [`crate::code`].
    Link = 0,
    /// A provider's Kick; `code` is the game's.
    Provider = 1,
    /// A dynamic module that is bound to nobody; `code` is its module id.
    DynamicModule = 2,
}

/// One report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportError {
    pub from: i64,
    pub code: i64,
    pub text: String,
}

impl ReportError {
    pub fn decode(body: &[u8]) -> Result<Self, BadBean> {
        let mut report = Self { from: 0, code: 0, text: String::new() };
        let mut reader = Reader::new(body);
        while let Some(field) = reader.field()? {
            match field {
                (1, Value::Integer(v)) => report.from = v,
                (2, Value::Integer(v)) => report.code = v,
                (3, Value::Bytes(v)) => report.text = String::from_utf8_lossy(v).into_owned(),
                _ => {}
            }
        }
        Ok(report)
    }
}

/// Appends a whole ReportError frame.
pub fn encode(out: &mut BytesMut, from: From, code: i32, text: &str) {
    payload::encode_frame(out, REPORT_ERROR, Head::PROTOCOL, |out| encode_body(out, from, code, text));
}

fn encode_body(out: &mut impl BufMut, from: From, code: i32, text: &str) {
    let mut writer = Writer::new(out);
    writer.integer(1, from as i64);
    writer.integer(2, code.into());
    writer.bytes(3, text.as_bytes());
    writer.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_the_ancestors() {
        let mut out = BytesMut::new();
        encode(&mut out, From::Link, 2, "np");
        let expected =
            [3, 0x2b, 0, 0, 0xb7, 0xea, 0xc4, 0x36, 8, 0, 0, 0, 2, 0x20, 2, 0x13, 2, 0x6e, 0x70, 0];
        assert_eq!(&out[..], expected);
        let report = ReportError::decode(&out[13..]).unwrap();
        assert_eq!(report, ReportError { from: 0, code: 2, text: "np".into() });
    }
}
