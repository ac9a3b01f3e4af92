//! Words as frames and frames as words.

use base::{Epoch, Fence, NodeId, RequestId, Span};
use net::link::{Closed, Link};
use net::outbox::NotQueued;
use prost::Message;
use wire::cache::{self, Ask, Deny, Grant, Held, Reduce, Reduced, Refused, message};
use wire::code;
use wire::node::{Frame, Kind, Meta};

use crate::arbiter::{Evicted, Heard, Mode, Word};

/// A body is closed when it has so many bytes: asks of long keys stay well below what a frame may have.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// Records of one kind that travel together.
struct Body<'a> {
    link: &'a Link,
    kind: Kind,
    records: usize,
    bytes: Vec<u8>,
}

impl Body<'_> {
    fn add(&mut self, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), NotQueued> {
        if self.kind != kind || self.records == cache::RECORDS_MAX || self.bytes.len() >= BODY_BYTES_MAX {
            self.close()?;
        }
        self.kind = kind;
        self.records += 1;
        write(&mut self.bytes);
        Ok(())
    }

    fn close(&mut self) -> Result<(), NotQueued> {
        if self.records > 0 {
            self.link.push(&Meta::notice(self.kind), &[], &self.bytes)?;
            self.records = 0;
            self.bytes.clear();
        }
        Ok(())
    }
}

/// Queues words in their order. Errors: the connection takes no more; those that it took are gone from `words`, or were in
/// the frame that it did not take.
pub(super) fn push(link: &Link, words: &mut Vec<Word>) -> Result<(), NotQueued> {
    let mut body = Body { link, kind: cache::ACQUIRE, records: 0, bytes: Vec::new() };
    for word in words.drain(..) {
        match word {
            Word::Ask { request, want, have, key } => body.add(cache::ACQUIRE, |out| {
                Ask { request: RequestId(request), want: want.byte(), have, key: &key }.encode(out);
            })?,
            Word::Reassert { record, mode } => body.add(cache::REASSERT, |out| {
                out.extend_from_slice(&Held { record, mode: mode.byte(), seq: 0 }.encode());
            })?,
            Word::Reduced { record, seq, to, flushed } => {
                body.close()?;
                let head = Reduced { record, seq, to: to.byte(), flushed }.encode();
                link.push(&Meta::notice(cache::REDUCED), &head, &[])?;
            }
            Word::Refused { record, seq, until } => {
                body.close()?;
                let until_ms = u32::try_from(until.as_millis()).unwrap_or(u32::MAX);
                let head = Refused { record, seq, until_ms }.encode();
                link.push(&Meta::notice(cache::REFUSED), &head, &[])?;
            }
        }
    }
    body.close()
}

/// What a frame of the arbiter says.
pub(super) fn read(frame: &Frame<'_>, heard: &mut Vec<Heard>) -> Result<(), Closed> {
    match frame.meta.kind {
        cache::GRANT => {
            let Grant { request, mode, must_reload, seq, version_min } =
                Grant::decode(frame.head).map_err(unreadable)?;
            let evictions = message::Evictions::decode(frame.body).map_err(unreadable)?.evictions;
            let evicted = evictions.into_iter().map(evicted).collect::<Result<_, _>>()?;
            let (mode, must_reload) = (read_mode(mode)?, must_reload != 0);
            heard.push(Heard::Granted { request, mode, seq, must_reload, version_min, evicted });
        }
        cache::DENY => {
            let Deny { request, code, retry_after_ms } = Deny::decode(frame.head).map_err(unreadable)?;
            let retry_after = Span::millis(retry_after_ms.into());
            heard.push(Heard::Denied { request, code, retry_after });
        }
        cache::REDUCE => {
            let Reduce { record, seq, to, within_ms } = Reduce::decode(frame.head).map_err(unreadable)?;
            let (to, within) = (read_mode(to)?, Span::millis(within_ms.into()));
            heard.push(Heard::Reduce { record, seq, to, within });
        }
        cache::REASSERTED => cache::held(frame.body, |Held { record, seq, .. }| {
            heard.push(Heard::Reasserted { record, seq: Some(seq).filter(|seq| *seq > 0) });
        })
        .map_err(unreadable)?,
        kind => return Err(unreadable(format!("kind {}", kind.0))),
    }
    Ok(())
}

fn evicted(eviction: message::Eviction) -> Result<Evicted, Closed> {
    let node = match eviction.node.as_str() {
        "" => None,
        name => Some(NodeId::new(name).map_err(unreadable)?),
    };
    Ok(Evicted { node, below: Fence::new(Epoch(eviction.epoch), eviction.session) })
}

fn read_mode(byte: u8) -> Result<Mode, Closed> {
    Mode::of_byte(byte).ok_or_else(|| unreadable(format!("mode {byte}")))
}

fn unreadable(error: impl std::fmt::Display) -> Closed {
    Closed::Refused { code: &code::BAD_MESSAGE, text: error.to_string() }
}
