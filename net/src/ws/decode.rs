//! Reads the frames of a WebSocket client where the system wrote them: what they carry is unmasked and moved to the
//! front of the same buffer. A connection keeps a header at most, never a message. Pure.

/// A masked header's most bytes.
const HEADER_BYTES_MAX: usize = 14;
/// A control frame carries no more.
const CONTROL_BYTES_MAX: u64 = 125;

/// How a client breaks the protocol, and what the close frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("a text message; this port speaks binary")]
    Text,
    #[error("a message of {announced} bytes, more than the {limit} allowed")]
    TooLarge { announced: u64, limit: u64 },
    #[error("a frame without a mask")]
    Unmasked,
    #[error("a frame with reserved bits or an unknown kind")]
    Reserved,
    #[error("a fragment where none belongs")]
    Fragment,
    #[error("a control frame that is too long or in pieces")]
    Control,
}

impl Violation {
    /// The code of the close frame, of RFC 6455.
    pub const fn close_code(self) -> u16 {
        match self {
            Violation::Text => 1003,
            Violation::TooLarge { .. } => 1009,
            _ => 1002,
        }
    }
}

/// What stood between the data of one read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Pings and pongs.
    pub controls: u32,
    /// What the last ping carried, which the pong repeats.
    pub ping: Option<Vec<u8>>,
    pub end: Option<End>,
}

/// No data comes any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client said goodbye, with this code if it gave one.
    Close(Option<u16>),
    Violation(Violation),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data { last: bool },
    Ping,
    Pong,
    Close,
}

/// Where in the stream of frames a connection is.
#[derive(Debug)]
pub struct Decoder {
    message_bytes_max: u64,
    /// Bytes of the message so far, all fragments together.
    message_bytes: u64,
    /// A fragment came whose message is not over.
    in_message: bool,
    header: [u8; HEADER_BYTES_MAX],
    header_len: usize,
    /// The frame at hand.
    kind: Kind,
    mask: [u8; 4],
    /// Payload bytes still to come.
    left: u64,
    /// What the control frame at hand has brought so far; empty between them.
    control: Vec<u8>,
}

impl Decoder {
    pub fn new(message_bytes_max: u64) -> Self {
        Self {
            message_bytes_max,
            message_bytes: 0,
            in_message: false,
            header: [0; HEADER_BYTES_MAX],
            header_len: 0,
            kind: Kind::Data { last: true },
            mask: [0; 4],
            left: 0,
            control: Vec::new(),
        }
    }

    /// Takes all of `bytes`, which follow those of the last call, and leaves their data at the front. Answers how many
    /// data bytes there are. After an end nothing may be decoded any more.
    pub fn decode(&mut self, bytes: &mut [u8], found: &mut Found) -> usize {
        let (mut at, mut data) = (0, 0);
        while at < bytes.len() && found.end.is_none() {
            if self.left == 0 {
                at += self.take_header(&bytes[at..], found);
                continue;
            }
            let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - at);
            let payload = &mut bytes[at..at + take];
            unmask(payload, self.mask);
            self.mask.rotate_left(take % 4);
            self.left -= take as u64;
            if let Kind::Data { .. } = self.kind {
                bytes.copy_within(at..at + take, data);
                data += take;
            } else {
                self.control.extend_from_slice(payload);
            }
            at += take;
            if self.left == 0 {
                self.frame_over(found);
            }
        }
        data
    }

    /// Reads on in the header. Answers the bytes used.
    fn take_header(&mut self, bytes: &[u8], found: &mut Found) -> usize {
        let before = self.header_len;
        for &byte in bytes {
            self.header[self.header_len] = byte;
            self.header_len += 1;
            if self.header_len >= 2 && self.header_len == self.header_need() {
                let used = self.header_len - before;
                self.header_len = 0;
                if let Err(violation) = self.begin_frame() {
                    found.end = Some(End::Violation(violation));
                } else if self.left == 0 {
                    self.frame_over(found);
                }
                return used;
            }
        }
        bytes.len()
    }

    /// Bytes of the header, as far as its first two tell.
    fn header_need(&self) -> usize {
        let extended = match self.header[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if self.header[1] & 0x80 == 0 { 0 } else { 4 };
        2 + extended + mask
    }

    fn begin_frame(&mut self) -> Result<(), Violation> {
        let [first, second, ..] = self.header;
        let last = first & 0x80 != 0;
        if first & 0x70 != 0 {
            return Err(Violation::Reserved);
        }
        if second & 0x80 == 0 {
            return Err(Violation::Unmasked);
        }
        let length = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        let (left, mask_at) = match second & 0x7f {
            126 => (length(&self.header[2..4]), 4),
            127 => (length(&self.header[2..10]), 10),
            short => (u64::from(short), 2),
        };
        self.mask.copy_from_slice(&self.header[mask_at..mask_at + 4]);
        self.left = left;
        self.kind = match first & 0x0f {
            0 if !self.in_message => return Err(Violation::Fragment),
            0 | 2 => Kind::Data { last },
            1 => return Err(Violation::Text),
            8..=10 if !last || left > CONTROL_BYTES_MAX => return Err(Violation::Control),
            8 => Kind::Close,
            9 => Kind::Ping,
            10 => Kind::Pong,
            _ => return Err(Violation::Reserved),
        };
        if let Kind::Data { .. } = self.kind {
            if first & 0x0f == 2 && self.in_message {
                return Err(Violation::Fragment);
            }
            self.in_message = true;
            self.message_bytes = self.message_bytes.saturating_add(left);
            if self.message_bytes > self.message_bytes_max {
                let (announced, limit) = (self.message_bytes, self.message_bytes_max);
                return Err(Violation::TooLarge { announced, limit });
            }
        }
        Ok(())
    }

    fn frame_over(&mut self, found: &mut Found) {
        match self.kind {
            Kind::Data { last: false } => {}
            Kind::Data { last: true } => (self.in_message, self.message_bytes) = (false, 0),
            Kind::Pong => {
                found.controls += 1;
                self.control = Vec::new();
            }
            Kind::Ping => {
                found.controls += 1;
                found.ping = Some(std::mem::take(&mut self.control));
            }
            Kind::Close => {
                let code = match self.control[..] {
                    [high, low, ..] => Some(u16::from_be_bytes([high, low])),
                    _ => None,
                };
                found.end = Some(match self.control.len() {
                    1 => End::Violation(Violation::Control),
                    _ => End::Close(code),
                });
            }
        }
    }
}

fn unmask(bytes: &mut [u8], mask: [u8; 4]) {
    let (words, rest) = bytes.as_chunks_mut::<4>();
    let word_mask = u32::from_ne_bytes(mask);
    for word in words {
        *word = (u32::from_ne_bytes(*word) ^ word_mask).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A client's frame: first byte, and a payload that is masked here.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![first];
        match payload.len() {
            n if n < 126 => out.push(0x80 | n as u8),
            n if n < 65_536 => out.extend([&[0x80 | 126][..], &(n as u16).to_be_bytes()].concat()),
            n => out.extend([&[0x80 | 127][..], &(n as u64).to_be_bytes()].concat()),
        }
        let mask = [0x11, 0x22, 0x33, 0x44];
        out.extend(mask);
        out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        out
    }

    fn decode(bytes: &[u8], pieces: usize) -> (Vec<u8>, Found) {
        let (mut decoder, mut found, mut out) = (Decoder::new(100_000), Found::default(), Vec::new());
        for piece in bytes.chunks(pieces) {
            let mut piece = piece.to_vec();
            let data = decoder.decode(&mut piece, &mut found);
            out.extend_from_slice(&piece[..data]);
            if found.end.is_some() {
                break;
            }
        }
        (out, found)
    }

    fn violation(bytes: &[u8]) -> Violation {
        match decode(bytes, 7).1.end {
            Some(End::Violation(violation)) => violation,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn data_comes_out_and_controls_are_told_apart() {
        let mut bytes = frame(0x02, b"one ");
        bytes.extend(frame(0x89, b"are you there"));
        bytes.extend(frame(0x80, b"two "));
        bytes.extend(frame(0x82, b""));
        bytes.extend(frame(0x8a, b""));
        bytes.extend(frame(0x82, &[7; 300]));
        bytes.extend(frame(0x88, &[0x03, 0xe8]));
        bytes.extend(frame(0x82, b"after the end"));
        for pieces in [1, 2, 3, 5, 1_000] {
            let (data, found) = decode(&bytes, pieces);
            assert_eq!(data, [b"one two ".as_slice(), &[7; 300]].concat());
            assert_eq!((found.controls, found.end), (2, Some(End::Close(Some(1000)))));
            assert_eq!(found.ping.as_deref(), Some(b"are you there".as_slice()));
        }
    }

    #[test]
    fn each_way_to_break_the_protocol_has_its_name_and_code() {
        assert_eq!(violation(&frame(0x81, b"hi")), Violation::Text);
        assert_eq!(violation(&[0x82, 1, 5]), Violation::Unmasked);
        assert_eq!(violation(&frame(0xc2, b"x")), Violation::Reserved);
        assert_eq!(violation(&frame(0x83, b"x")), Violation::Reserved);
        assert_eq!(violation(&frame(0x8b, b"x")), Violation::Reserved);
        assert_eq!(violation(&frame(0x80, b"x")), Violation::Fragment);
        let twice = [frame(0x02, b"a"), frame(0x82, b"b")].concat();
        assert_eq!(violation(&twice), Violation::Fragment);
        assert_eq!(violation(&frame(0x09, b"x")), Violation::Control);
        assert_eq!(violation(&frame(0x89, &[0; 126])), Violation::Control);
        assert_eq!(violation(&frame(0x88, &[3])), Violation::Control);
        let codes = [Violation::Text, Violation::TooLarge { announced: 2, limit: 1 }, Violation::Reserved];
        assert_eq!(codes.map(Violation::close_code), [1003, 1009, 1002]);
    }

    /// The announced size is judged, fragments summed up, before any of it comes.
    #[test]
    fn a_message_has_a_limit() {
        let huge = [0x82, 0x80 | 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        assert_eq!(violation(&huge), Violation::TooLarge { announced: u64::MAX, limit: 100_000 });
        let fragments = [frame(0x02, &[0; 60_000]), frame(0x00, &[0; 50_000])].concat();
        assert_eq!(violation(&fragments), Violation::TooLarge { announced: 110_000, limit: 100_000 });
        assert_eq!(decode(&frame(0x82, &[1; 100_000]), 9_999).0.len(), 100_000);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_and_splits_change_nothing(bytes in prop::collection::vec(any::<u8>(), 0..400), pieces in 1..50usize) {
            let (whole, split) = (decode(&bytes, bytes.len().max(1)), decode(&bytes, pieces));
            prop_assert_eq!(whole, split);
        }

        #[test]
        fn what_was_masked_comes_back(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8), pieces in 1..50usize) {
            let bytes: Vec<u8> = messages.iter().flat_map(|m| frame(0x82, m)).collect();
            let (data, found) = decode(&bytes, pieces);
            prop_assert_eq!(data, messages.concat());
            prop_assert_eq!(found, Found::default());
        }
    }
}
