//! A ticket's bytes: written in one way only, and read back only if they are those.

use base::Account;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{AUDIENCE_BYTES_MAX, BadTicket, DOMAIN, LIFE_SECONDS_MAX, Signer, TICKET_BYTES_MAX, Ticket};

const VERSION: u8 = 1;
const LOGIN: u8 = 1;
const FIXED_BYTES: usize = 46;
const ACCOUNT_BYTES_MAX: usize = base::id::ACCOUNT_BYTES_MAX;
pub const SIGNATURE_BYTES: usize = 64;
/// Base64 of the longest ticket; anything longer is not looked at.
const TEXT_BYTES_MAX: usize = TICKET_BYTES_MAX.div_ceil(3) * 4;

/// A ticket's parts where they stand. Only the shape was looked at.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a> {
    pub kid: u16,
    /// All that is signed but the domain.
    pub signed: &'a [u8],
    pub signature: &'a [u8; SIGNATURE_BYTES],
    issued: u64,
    not_before: u64,
    expires: u64,
    id: [u8; 16],
    app_main: u16,
    audience: &'a [u8],
    account: &'a [u8],
}

/// The bytes of a text; `None` unless it is the one way to write them.
pub fn bytes_of(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    // Strict: no padding, and no bits set beyond the last byte.
    URL_SAFE_NO_PAD.decode(text).ok()
}

pub fn text_of(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl<'a> Raw<'a> {
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() > TICKET_BYTES_MAX {
            return None;
        }
        let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_BYTES>()?;
        let mut rest = signed;
        let [version, kind] = *take(&mut rest)?;
        if version != VERSION || kind != LOGIN {
            return None;
        }
        let raw = Self {
            signed,
            signature,
            kid: u16::from_le_bytes(*take(&mut rest)?),
            issued: u64::from_le_bytes(*take(&mut rest)?),
            not_before: u64::from_le_bytes(*take(&mut rest)?),
            expires: u64::from_le_bytes(*take(&mut rest)?),
            id: *take(&mut rest)?,
            app_main: u16::from_le_bytes(*take(&mut rest)?),
            audience: text(&mut rest, AUDIENCE_BYTES_MAX)?,
            account: text(&mut rest, ACCOUNT_BYTES_MAX)?,
        };
        rest.is_empty().then_some(raw)
    }

    /// `None`: the audience is no text. The account is judged apart, because its fault has a name of its own.
    pub fn ticket(&self) -> Option<(String, Option<Account>)> {
        let audience = std::str::from_utf8(self.audience).ok()?.to_owned();
        let account = std::str::from_utf8(self.account).ok().and_then(|text| Account::new(text).ok());
        Some((audience, account))
    }

    pub fn with(&self, audience: String, account: Account) -> Ticket {
        let Self { kid, issued, not_before, expires, id, app_main, .. } = *self;
        Ticket { kid, issued, not_before, expires, id, app_main, audience, account }
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, others) = rest.split_first_chunk::<N>()?;
    *rest = others;
    Some(first)
}

/// A length of one byte, 1 to `max`, and as many bytes.
fn text<'a>(rest: &mut &'a [u8], max: usize) -> Option<&'a [u8]> {
    let [len] = *take(rest)?;
    let len = usize::from(len);
    if len == 0 || len > max {
        return None;
    }
    let (text, others) = rest.split_at_checked(len)?;
    *rest = others;
    Some(text)
}

impl Ticket {
    /// The ticket's text, signed by `signer`, whose key id it carries.
    pub fn sign(&self, signer: &Signer) -> Result<String, BadTicket> {
        if !(1..=AUDIENCE_BYTES_MAX).contains(&self.audience.len()) {
            return Err(BadTicket::Audience(self.audience.len()));
        }
        let seconds = self.expires.saturating_sub(self.not_before);
        if !(1..=LIFE_SECONDS_MAX).contains(&seconds) {
            return Err(BadTicket::Life { seconds });
        }
        let mut bytes = DOMAIN.to_vec();
        self.write(signer.kid(), &mut bytes);
        let signature = signer.sign(&bytes);
        bytes.extend_from_slice(&signature);
        Ok(text_of(&bytes[DOMAIN.len()..]))
    }

    fn write(&self, kid: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&[VERSION, LOGIN]);
        out.extend_from_slice(&kid.to_le_bytes());
        for seconds in [self.issued, self.not_before, self.expires] {
            out.extend_from_slice(&seconds.to_le_bytes());
        }
        out.extend_from_slice(&self.id);
        out.extend_from_slice(&self.app_main.to_le_bytes());
        for text in [self.audience.as_bytes(), self.account.as_str().as_bytes()] {
            // Both fit: the audience was looked at, an account is never longer than 128 bytes.
            out.push(text.len() as u8);
            out.extend_from_slice(text);
        }
        debug_assert!(out.len() >= DOMAIN.len() + FIXED_BYTES);
    }

    /// What a ticket says, whoever made it: for people who look at one. Nothing may be decided by it.
    pub fn read_unverified(text: &str) -> Option<Self> {
        let bytes = bytes_of(text.as_bytes())?;
        let raw = Raw::read(&bytes)?;
        let (audience, account) = raw.ticket()?;
        Some(raw.with(audience, account?))
    }
}
