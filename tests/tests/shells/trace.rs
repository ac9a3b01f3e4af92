//! The trace of a run: every packet that turmoil moves, what the nodes log, and what players see, in their order and
//! with the virtual time. Two runs of one seed write the same, or something depends on more than the seed.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::hash;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Whose events are kept, by the first part of their target.
const OURS: &[&str] = &["base", "client", "linkd", "linkstead", "net", "node", "service_manager", "shells"];
/// Packets.
const PACKETS: &str = "turmoil";
/// A packet from or to here is kept without its bytes: HTTP/2 answers carry the wall clock's time in a header.
const OPAQUE_PORT: &str = ":7720";

/// The lines of a run. A clone is the same trace.
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lines: Mutex<Vec<String>>,
    now_ms: AtomicU64,
    /// Names of the hosts that run, by span, and which of them is inside.
    hosts: Mutex<Vec<String>>,
    inside: Mutex<Vec<u64>>,
}

impl Trace {
    /// The time that the lines from here on carry.
    pub fn set_now(&self, now: Duration) {
        self.0.now_ms.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lines.lock())
    }

    fn push(&self, line: &str) {
        let inside = self.0.inside.lock().last().copied();
        let hosts = self.0.hosts.lock();
        let host = inside.and_then(|id| hosts.get(usize::try_from(id).ok()? - 1));
        let (now, host) = (self.0.now_ms.load(Ordering::Relaxed), host.map_or("-", String::as_str));
        self.0.lines.lock().push(format!("{now:>7} {host:<9} {line}"));
    }
}

impl Subscriber for Trace {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let crate_name = metadata.target().split(':').next().unwrap_or_default();
        match metadata.is_span() {
            true => crate_name == PACKETS,
            false => crate_name == PACKETS || OURS.contains(&crate_name) && *metadata.level() <= Level::DEBUG,
        }
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut name = Line::default();
        span.record(&mut name);
        let mut hosts = self.0.hosts.lock();
        let name = name.text.trim().trim_start_matches("name=").trim_matches('"').to_owned();
        let at = hosts.iter().position(|host| *host == name).unwrap_or(hosts.len());
        if at == hosts.len() {
            hosts.push(name);
        }
        Id::from_u64(at as u64 + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        // One for each tick says nothing.
        if !line.text.starts_with("step ") {
            let target = event.metadata().target();
            self.push(&format!("{target}: {}", line.text));
        }
    }

    fn enter(&self, span: &Id) {
        self.0.inside.lock().push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.inside.lock().pop();
    }
}

/// An event's fields in one line; of a packet's bytes their count and hash.
#[derive(Default)]
struct Line {
    text: String,
    opaque: bool,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A `String` takes everything.
        let _ = match field.name() {
            "message" => write!(self.text, "{value:?} "),
            "protocol" => {
                let mut packet = Packet { into: &mut self.text, opaque: self.opaque, bytes: None };
                let _ = write!(packet, "{value:?}");
                packet.end();
                Ok(())
            }
            name => write!(self.text, "{name}={value:?} "),
        };
        // Addresses come before what they send each other.
        self.opaque |= matches!(field.name(), "src" | "dst") && self.text.trim_end().ends_with(OPAQUE_PORT);
    }
}

/// Takes a packet as turmoil prints it, `TCP [0xA, 0xB]`.
struct Packet<'a> {
    into: &'a mut String,
    opaque: bool,
    /// Of the text of the bytes, once they have begun: how much, and its hash.
    bytes: Option<(usize, u64)>,
}

impl Write for Packet<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let text = match text.split_once('[') {
            Some((before, rest)) if self.bytes.is_none() => {
                self.into.push_str(before);
                self.bytes = Some((0, 0));
                rest
            }
            _ => text,
        };
        match &mut self.bytes {
            None => self.into.push_str(text),
            Some(_) if self.opaque => return Err(fmt::Error),
            Some((count, sum)) => {
                *count += text.len();
                *sum = hash::mix(sum.wrapping_add(hash::bytes(text.as_bytes())));
            }
        }
        Ok(())
    }
}

impl Packet<'_> {
    fn end(self) {
        match self.bytes {
            Some((count, sum)) if !self.opaque => {
                let _ = write!(self.into, "{count}/{sum:016x} ");
            }
            Some(_) => self.into.push_str("… "),
            None => self.into.push(' '),
        }
    }
}
