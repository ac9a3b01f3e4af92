//! Login tickets: made and signed by a login service, shown once to a linkd. Fixed canonical bytes and an Ed25519
//! signature; whoever checks them holds no secret. Pure: time and keys are arguments.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | version: 1 |
//! | 1 | 1 | type: 1 login |
//! | 2 | 2 | key id |
//! | 4 | 8 | issued, Unix seconds |
//! | 12 | 8 | not before, Unix seconds |
//! | 20 | 8 | expires, Unix seconds |
//! | 28 | 16 | ticket id: random, never twice |
//! | 44 | 2 | main app version; 0 any |
//! | 46 | 1 + n | length and bytes of the audience: the cluster's name, 1–64 |
//! | 47 + n | 1 + m | length and bytes of the account, 1–128 of UTF-8 |
//! | 48 + n + m | 64 | Ed25519 signature of [`DOMAIN`] and all bytes before |
//!
//! Numbers are little-endian. Nothing follows. The text form is base64url without padding.

mod key;
mod layout;
mod verify;

use std::fmt;

use base::Account;

use crate::code::{self, Code};

pub use key::{BadKey, KEY_FILE_BYTES_MAX, Key, Keys, Signer};
pub use verify::Expect;

/// What every signature covers before the ticket's own bytes, so that no other signature of the same key is a ticket.
pub const DOMAIN: &[u8] = b"linkstead ticket v1\0";
/// The longest ticket in bytes.
pub const TICKET_BYTES_MAX: usize = 384;
/// The longest audience in bytes.
pub const AUDIENCE_BYTES_MAX: usize = 64;
/// From not-before to expiry, in seconds: half a day. A used ticket is remembered for as long.
pub const LIFE_SECONDS_MAX: u64 = 12 * 3_600;
/// How far the clocks of login service and linkd may be apart, in seconds.
pub const SKEW_SECONDS: u64 = 30;

/// What a ticket says. Not its text: that one is a secret for as long as it is unused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    pub kid: u16,
    /// Unix seconds, as the two below.
    pub issued: u64,
    pub not_before: u64,
    pub expires: u64,
    pub id: [u8; 16],
    /// 0: any.
    pub app_main: u16,
    pub audience: String,
    pub account: Account,
}

/// Why a ticket is refused. One error for everything that a signature protects: who made a wrong ticket learns nothing
/// about which part was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    #[error("the ticket is not one that these keys have signed")]
    Invalid,
    #[error("the ticket's time is over")]
    Expired,
    #[error("the ticket's time has not begun")]
    NotYetValid,
    #[error("the ticket is for another account, cluster or version")]
    Mismatch,
    /// Signed, but the login service put something there that can't be an account.
    #[error("the ticket's account can't be one")]
    Name,
}

impl TicketError {
    pub const fn code(self) -> &'static Code {
        match self {
            Self::Invalid => &code::TICKET_INVALID,
            Self::Expired => &code::TICKET_EXPIRED,
            Self::NotYetValid => &code::TICKET_NOT_YET_VALID,
            Self::Mismatch => &code::TICKET_MISMATCH,
            Self::Name => &code::NAME_INVALID,
        }
    }
}

/// What can't be signed. The login service's mistake; another try with the same values never helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTicket {
    #[error("the audience has {0} bytes; the cluster's name has 1 to {AUDIENCE_BYTES_MAX}")]
    Audience(usize),
    #[error("the ticket's time is {seconds} s; allowed are 1 s to {LIFE_SECONDS_MAX} s")]
    Life { seconds: u64 },
}

/// The ticket id as it stands in claims and in `linkstead ticket show`.
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests;
