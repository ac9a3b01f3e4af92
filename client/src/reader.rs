//! What arrives on one connection, frame by frame: answers to their requests, keep-alives answered, the rest gathered
//! as events. Reads no socket and no clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::TypeId;
use bytes::{Bytes, BytesMut};
use wire::frame::{self, Decoded, Frame};
use wire::handshake;
use wire::payload::{self, Family, Head};
use wire::report::{REPORT_ERROR, ReportError};
use wire::varint::{read_long, read_uint};

use crate::client::Counters;
use crate::link::Link;
use crate::{Cause, Event, Push, Report};

/// The state of one connection's receiving side.
#[derive(Debug)]
pub(crate) struct Reader {
    link: Arc<Link>,
    counters: Arc<Counters>,
    /// The server has greeted.
    pub greeted: bool,
    /// What one read brought and nobody has taken yet: bounded by the bytes of that read.
    pub events: Vec<Event>,
    /// The report that nothing has followed so far: if the connection ends now, that is why.
    pub last_words: Option<Report>,
}

impl Reader {
    pub fn new(link: Arc<Link>, counters: Arc<Counters>) -> Self {
        Self { link, counters, greeted: false, events: Vec::new(), last_words: None }
    }

    /// Takes every whole frame off the front. Returns the bytes used up; an error ends the connection.
    pub fn decode(&mut self, bytes: &[u8]) -> (usize, Result<(), Cause>) {
        let mut used = 0;
        loop {
            let handled = match frame::decode(&bytes[used..], frame::PAYLOAD_BYTES_CEILING) {
                Ok(Decoded::Incomplete { .. }) => break,
                Ok(Decoded::Frame(frame)) => {
                    used += frame.whole.len();
                    self.frame(frame)
                }
                Err(error) => Err(Cause::BadFrame(error.to_string())),
            };
            if handled.is_err() {
                return (used, handled);
            }
        }
        (used, Ok(()))
    }

    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Cause> {
        let (head, body) =
            payload::decode(frame.payload).map_err(|error| Cause::BadFrame(error.to_string()))?;
        self.last_words = None;
        match head.family {
            Family::Response => self.response(frame.type_id, head, body),
            Family::Request => self.asked(frame.type_id, head.session),
            Family::Protocol => return self.message(frame.type_id, body),
        }
        Ok(())
    }

    fn response(&mut self, type_id: TypeId, head: Head, body: &[u8]) {
        if type_id == handshake::KEEP_ALIVE || self.link.calls.answer(head.session, type_id, head.code, body)
        {
            return;
        }
        if !base::planted::is("client_counts_no_late_answers") {
            self.counters.late_replies.fetch_add(1, Ordering::Relaxed);
        }
        tracing::debug!(%type_id, session = head.session, "an answer nobody waits for");
    }

    /// The server asks us: only whether we live.
    fn asked(&mut self, type_id: TypeId, session: i64) {
        let answer = |out: &mut BytesMut| match type_id {
            handshake::KEEP_ALIVE => handshake::keep_alive_answer(out, session),
            other => payload::encode_refusal(out, other, session, wire::code::UNKNOWN_PROTOCOL.result()),
        };
        if type_id != handshake::KEEP_ALIVE {
            self.counters.unexpected.fetch_add(1, Ordering::Relaxed);
        }
        // A full outbox needs no answer: the bytes in it show that we live.
        if self.link.outbox.push(64, answer).is_ok() {
            self.link.outbox.wake();
        }
    }

    fn message(&mut self, type_id: TypeId, body: &[u8]) -> Result<(), Cause> {
        match type_id {
            handshake::SHANDSHAKE0 if !self.greeted => {
                is_plain(body)?;
                self.greeted = true;
            }
            REPORT_ERROR => match ReportError::decode(body) {
                Ok(ReportError { from, code, text }) => {
                    let report = Report { from, number: code, text };
                    self.last_words = Some(report.clone());
                    self.events.push(Event::Report(report));
                }
                Err(error) => return Err(Cause::BadFrame(error.to_string())),
            },
            framework if framework.module().0 == 0 => {
                self.counters.unexpected.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(type_id = %framework, "a message of the framework that this client doesn't know");
            }
            _ => {
                self.counters.pushes.fetch_add(1, Ordering::Relaxed);
                self.events.push(Event::Push(Push { type_id, body: Bytes::copy_from_slice(body) }));
            }
        }
        Ok(())
    }
}

/// Whether a greeting asks for neither encryption nor compression, which this wire doesn't have.
fn is_plain(mut greeting: &[u8]) -> Result<(), Cause> {
    let unreadable = |_| Cause::BadFrame("its greeting can't be read".into());
    let refuse =
        |what: &str| Err(Cause::BadFrame(format!("its greeting asks for {what}, which we don't have")));
    if read_long(&mut greeting).map_err(unreadable)? != 0 {
        return refuse("encryption");
    }
    if greeting.is_empty() {
        // The short form of old servers.
        return Ok(());
    }
    for _ in 0..read_uint(&mut greeting).map_err(unreadable)? {
        read_long(&mut greeting).map_err(unreadable)?;
    }
    for _ in 0..2 {
        if read_long(&mut greeting).map_err(unreadable)? != 0 {
            return refuse("compression");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_that_asks_for_what_we_lack_is_refused() {
        assert!(is_plain(&[0, 0, 0, 0, 0]).is_ok());
        assert!(is_plain(&[0, 3, 1, 2, 3, 0, 0, 2, 2, 1]).is_ok(), "the ancestor's default greeting");
        assert!(is_plain(&[0]).is_ok());
        assert!(is_plain(&[1, 0, 0, 0, 0]).is_err());
        assert!(is_plain(&[0, 0, 1, 0, 0]).is_err());
        assert!(is_plain(&[0, 0xf0, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(is_plain(&[]).is_err());
    }
}
