//! The ancestor's tagged encoding, as much of it as Auth and ReportError need: integers and bytes read and written,
//! every other kind of field skipped.
//!
//! A bean is its non-default fields in ascending id, each `tag value`, closed by `00`. A tag is
//! `(id - previous id) << 4 | kind`; a difference of 15 or more is `f0 | kind` and a varuint of the rest.

use bytes::BufMut;

use crate::varint::{self, Truncated, read_long, read_uint};

/// Bytes that are no bean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBean {
    #[error("the bytes end inside a bean")]
    Truncated,
    #[error("field {id} has kind {kind}, which no bean has")]
    Kind { id: u32, kind: u8 },
    #[error("beans are nested more than {DEPTH_MAX} deep")]
    Depth,
}

impl From<Truncated> for BadBean {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

const DEPTH_MAX: u32 = 32;

/// One field's value; kinds that the built-in protocols don't use are skipped whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
    Skipped,
}

/// Reads a bean's fields in order.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    id: u32,
    done: bool,
}

impl<'a> Reader<'a> {
    pub fn new(bean: &'a [u8]) -> Self {
        Self { rest: bean, id: 0, done: false }
    }

    /// The next field, or `None` at the closing `00`. What follows it is left unread, as the ancestor leaves it.
    pub fn field(&mut self) -> Result<Option<(u32, Value<'a>)>, BadBean> {
        if self.done {
            return Ok(None);
        }
        let Some(kind) = tag(&mut self.rest, &mut self.id)? else {
            self.done = true;
            return Ok(None);
        };
        let value = match kind {
            0 => Value::Integer(read_long(&mut self.rest)?),
            3 => Value::Bytes(bytes(&mut self.rest)?),
            _ => {
                skip(&mut self.rest, kind, self.id, 0)?;
                Value::Skipped
            }
        };
        Ok(Some((self.id, value)))
    }
}

/// Reads a tag and moves `id` on; `None` is the closing `00`.
fn tag(rest: &mut &[u8], id: &mut u32) -> Result<Option<u8>, BadBean> {
    let first = byte(rest)?;
    if first == 0 {
        return Ok(None);
    }
    let delta = match first >> 4 {
        15 => read_uint(rest)?.saturating_add(15),
        small => u32::from(small),
    };
    *id = id.saturating_add(delta);
    Ok(Some(first & 15))
}

fn skip(rest: &mut &[u8], kind: u8, id: u32, depth: u32) -> Result<(), BadBean> {
    if depth > DEPTH_MAX {
        return Err(BadBean::Depth);
    }
    match kind {
        0 => drop(read_long(rest)?),
        1 => take(rest, 4)?,
        2 | 8 => take(rest, 8)?,
        3 => drop(bytes(rest)?),
        4 => {
            let head = byte(rest)?;
            let count = count(rest, head >> 4)?;
            for _ in 0..count {
                skip(rest, head & 15, id, depth + 1)?;
            }
        }
        5 => {
            let kinds = byte(rest)?;
            for _ in 0..read_uint(rest)? {
                skip(rest, kinds >> 4, id, depth + 1)?;
                skip(rest, kinds & 15, id, depth + 1)?;
            }
        }
        6 => skip_bean(rest, depth + 1)?,
        7 => {
            read_long(rest)?;
            skip_bean(rest, depth + 1)?;
        }
        9 | 11 => {
            for _ in 0..(if kind == 9 { 2 } else { 3 }) {
                read_long(rest)?;
            }
        }
        10 => take(rest, 12)?,
        12 => take(rest, 16)?,
        _ => return Err(BadBean::Kind { id, kind }),
    }
    Ok(())
}

fn skip_bean(rest: &mut &[u8], depth: u32) -> Result<(), BadBean> {
    let mut id = 0;
    while let Some(kind) = tag(rest, &mut id)? {
        skip(rest, kind, id, depth)?;
    }
    Ok(())
}

/// A list's count stands in the head's high bits up to 14, else behind it.
fn count(rest: &mut &[u8], high: u8) -> Result<u32, BadBean> {
    Ok(if high == 15 { read_uint(rest)?.saturating_add(15) } else { u32::from(high) })
}

fn byte(rest: &mut &[u8]) -> Result<u8, BadBean> {
    let (&first, tail) = rest.split_first().ok_or(BadBean::Truncated)?;
    *rest = tail;
    Ok(first)
}

fn bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], BadBean> {
    let len = read_uint(rest)? as usize;
    let (head, tail) = rest.split_at_checked(len).ok_or(BadBean::Truncated)?;
    *rest = tail;
    Ok(head)
}

fn take(rest: &mut &[u8], len: usize) -> Result<(), BadBean> {
    *rest = rest.get(len..).ok_or(BadBean::Truncated)?;
    Ok(())
}

/// Writes a bean's fields, which must come in ascending id. Default values are left out.
#[derive(Debug)]
pub struct Writer<'a, B> {
    out: &'a mut B,
    id: u32,
}

impl<'a, B: BufMut> Writer<'a, B> {
    pub fn new(out: &'a mut B) -> Self {
        Self { out, id: 0 }
    }

    pub fn integer(&mut self, id: u32, value: i64) {
        if value != 0 {
            self.tag(id, 0);
            varint::write_long(self.out, value);
        }
    }

    pub fn bytes(&mut self, id: u32, value: &[u8]) {
        if !value.is_empty() {
            self.tag(id, 3);
            varint::write_uint(self.out, value.len() as u32);
            self.out.put_slice(value);
        }
    }

    /// Closes the bean.
    pub fn end(self) {
        self.out.put_u8(0);
    }

    fn tag(&mut self, id: u32, kind: u8) {
        let delta = id.saturating_sub(self.id);
        self.id = id;
        if delta < 15 {
            self.out.put_u8((delta as u8) << 4 | kind);
        } else {
            self.out.put_u8(0xf0 | kind);
            varint::write_uint(self.out, delta - 15);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_far_apart_come_back() {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out);
        w.integer(1, -5);
        w.bytes(40, b"x");
        w.integer(41, 0);
        w.end();
        let mut r = Reader::new(&out);
        assert_eq!(r.field(), Ok(Some((1, Value::Integer(-5)))));
        assert_eq!(r.field(), Ok(Some((40, Value::Bytes(b"x")))));
        assert_eq!(r.field(), Ok(None));
    }

    #[test]
    fn unknown_kinds_of_fields_are_skipped() {
        // 1: list of two integers, 2: map<int,bytes> of one, 3: bean {1: 7}, 4: float, then 5: integer 9.
        let bean =
            [0x14, 0x20, 1, 2, 0x15, 0x03, 1, 5, 1, b'a', 0x16, 0x10, 7, 0, 0x11, 0, 0, 0, 0, 0x10, 9, 0];
        let mut r = Reader::new(&bean);
        for id in 1..=4 {
            assert_eq!(r.field(), Ok(Some((id, Value::Skipped))));
        }
        assert_eq!(r.field(), Ok(Some((5, Value::Integer(9)))));
        assert_eq!(r.field(), Ok(None));
    }

    /// Nested deep, or claiming two billion elements: refused before anything is allocated.
    ///
    /// Holds: BI-028, BI-030.
    #[test]
    fn deep_and_huge_claims_are_refused() {
        assert_eq!(Reader::new(&[0x16; 10_000]).field(), Err(BadBean::Depth));
        let claim = [0x14, 0xf0, 0xf0, 0x7f, 0xff, 0xff, 0xff];
        assert_eq!(Reader::new(&claim).field(), Err(BadBean::Truncated));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let mut r = Reader::new(&bytes);
            while let Ok(Some(_)) = r.field() {}
        }
    }
}
