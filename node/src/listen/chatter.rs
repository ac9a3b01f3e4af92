//! Counts what a connection of HTTP/2 says beside its calls: each PING and each SETTINGS wants an answer, so whoever sends
//! nothing else makes work without end and is never refused anything. It only watches, and changes no byte.

use std::time::Duration;

use tokio::time::Instant;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
/// Frames of one kind are counted for so long.
const WINDOW: Duration = Duration::from_secs(10);
/// Frames that carry nothing; a client of ours sends a handful.
const IDLE_MAX: u32 = 1_000;
/// Whoever takes in a long list says so every 32 KiB.
const UPDATES_MAX: u32 = 20_000;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

#[derive(Debug)]
pub(super) struct Chatter {
    reading: Reading,
    began: Instant,
    idle: u32,
    updates: u32,
}

#[derive(Debug)]
enum Reading {
    /// So much of the preface.
    Preface(usize),
    /// So much of the next frame's head.
    Head { have: usize, head: [u8; HEAD] },
    /// What is left of a frame's body.
    Body(usize),
    /// It speaks something else.
    Other,
}

impl Chatter {
    pub fn new(now: Instant) -> Self {
        Self { reading: Reading::Preface(0), began: now, idle: 0, updates: 0 }
    }

    /// Whether the connection may go on after these bytes.
    pub fn allows(&mut self, now: Instant, mut bytes: &[u8]) -> bool {
        if now.duration_since(self.began) >= WINDOW {
            (self.began, self.idle, self.updates) = (now, 0, 0);
        }
        while let Some((&first, rest)) = bytes.split_first() {
            bytes = match &mut self.reading {
                Reading::Other => return true,
                Reading::Preface(have) => {
                    let next = *have + 1;
                    self.reading = match (PREFACE[*have] == first, next == PREFACE.len()) {
                        (false, _) => Reading::Other,
                        (true, false) => Reading::Preface(next),
                        (true, true) => Reading::Head { have: 0, head: [0; HEAD] },
                    };
                    rest
                }
                Reading::Head { have, head } => {
                    head[*have] = first;
                    *have += 1;
                    if *have == HEAD {
                        let (head, len) = (*head, u32::from_be_bytes([0, head[0], head[1], head[2]]));
                        self.count(head[3], len);
                        self.reading = Reading::Body(len as usize);
                    }
                    rest
                }
                Reading::Body(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    if *left == 0 {
                        self.reading = Reading::Head { have: 0, head: [0; HEAD] };
                    }
                    &bytes[taken..]
                }
            };
        }
        self.idle <= IDLE_MAX && self.updates <= UPDATES_MAX
    }

    fn count(&mut self, kind: u8, len: u32) {
        match kind {
            // What these carry is bounded where it is read.
            DATA | HEADERS | CONTINUATION if len > 0 => {}
            WINDOW_UPDATE => self.updates += 1,
            _ => self.idle += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: u8 = 4;
    const PING: u8 = 6;

    fn frame(kind: u8, len: u8) -> Vec<u8> {
        [&[0, 0, len, kind, 0, 0, 0, 0, 0][..], &vec![6; len.into()]].concat()
    }

    /// How many frames of a kind pass, however the bytes come.
    fn passed(kind: u8, len: u8, piece: usize) -> usize {
        let now = Instant::now();
        let mut chatter = Chatter::new(now);
        assert!(chatter.allows(now, PREFACE));
        let frame = frame(kind, len);
        let passes = |_: &usize| frame.chunks(piece).all(|bytes| chatter.allows(now, bytes));
        (0..30_000).take_while(passes).count()
    }

    /// Holds: BI-095.
    #[test]
    fn who_says_nothing_but_controls_is_not_heard_for_long() {
        for piece in [1, 2, 9, 10, 64] {
            assert_eq!(passed(PING, 8, piece), 1_000);
            assert_eq!(passed(SETTINGS, 0, piece), 1_000);
            assert_eq!(passed(DATA, 0, piece), 1_000);
            assert_eq!(passed(77, 3, piece), 1_000);
            assert_eq!(passed(WINDOW_UPDATE, 4, piece), 20_000);
            assert_eq!(passed(DATA, 200, piece), 30_000);
        }
    }

    #[test]
    fn it_is_counted_anew_after_a_while_and_other_protocols_pass() {
        let begun = Instant::now();
        let mut chatter = Chatter::new(begun);
        let thousand = frame(PING, 8).repeat(1_000);
        assert!(chatter.allows(begun, &[PREFACE, &thousand].concat()));
        assert!(chatter.allows(begun + WINDOW, &thousand));
        assert!(!chatter.allows(begun + WINDOW, &frame(PING, 8)));
        let mut other = Chatter::new(begun);
        assert!(other.allows(begun, b"PRINT /livez HTTP/1.1\r\n\r\n"));
        assert!(other.allows(begun, &thousand.repeat(3)));
    }
}
