//! Judging a ticket: the signature first, and only then what it says.

use std::sync::LazyLock;

use base::{Account, AppVersion};
use ed25519_dalek::{Signature, Verifier, VerifyingKey};

use super::layout::{Raw, SIGNATURE_BYTES, bytes_of};
use super::{DOMAIN, Keys, LIFE_SECONDS_MAX, SKEW_SECONDS, Signer, Ticket, TicketError};

/// What a ticket must be for.
#[derive(Debug, Clone, Copy)]
pub struct Expect<'a> {
    pub now_unix: u64,
    /// The cluster's name.
    pub audience: &'a str,
    /// The client's version; 0 matches all.
    pub app: AppVersion,
    /// The account that the client says; `None` takes the ticket's.
    pub account: Option<&'a Account>,
}

/// The order of the group: a signature's second half is below it, or is none.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// Nobody's key: checked against when there is no other, so that every refusal costs one check.
static DECOY: LazyLock<VerifyingKey> = LazyLock::new(|| Signer::new(0, &[7; 32]).public().key);

impl Ticket {
    /// The ticket behind `text`, if one of `keys` signed it for this moment, cluster, version and account.
    ///
    /// Every refused text costs the same: one signature check of the same length class, whether it is no base64, has
    /// another shape, names no key, or carries a wrong signature. There is no secret here that time could betray (the
    /// keys are public), but a stranger also shall not learn from the clock which key ids exist.
    pub fn verify(text: &[u8], keys: &Keys, expect: Expect<'_>) -> Result<Self, TicketError> {
        let bytes = bytes_of(text).unwrap_or_default();
        let raw = Raw::read(&bytes);
        let key = raw.as_ref().and_then(|raw| keys.at(raw.kid, expect.now_unix));
        let (Some(raw), Some(key)) = (raw, key) else {
            check(&DECOY, &[0; SIGNATURE_BYTES], &[]);
            return Err(TicketError::Invalid);
        };
        if !check(&key.key, raw.signature, raw.signed) {
            return Err(TicketError::Invalid);
        }
        let (audience, account) = raw.ticket().ok_or(TicketError::Invalid)?;
        let account = account.ok_or(TicketError::Name)?;
        let ticket = raw.with(audience, account);
        ticket.fits(expect)?;
        Ok(ticket)
    }

    fn fits(&self, expect: Expect<'_>) -> Result<(), TicketError> {
        let now = expect.now_unix;
        if self.expires.saturating_sub(self.not_before) > LIFE_SECONDS_MAX || self.expires <= self.not_before
        {
            return Err(TicketError::Invalid);
        }
        if now > self.expires.saturating_add(SKEW_SECONDS) {
            return Err(TicketError::Expired);
        }
        let soon = now.saturating_add(SKEW_SECONDS);
        if self.not_before > soon || self.issued > soon {
            return Err(TicketError::NotYetValid);
        }
        let app = self.app_main == 0 || expect.app.0 == 0 || expect.app.main() == self.app_main;
        let account = expect.account.is_none_or(|account| *account == self.account);
        if self.audience != expect.audience || !app || !account {
            return Err(TicketError::Mismatch);
        }
        Ok(())
    }

    /// How many seconds from `now_unix` on it could be shown again: how long it must be remembered as used.
    pub fn remembered_seconds(&self, now_unix: u64) -> u64 {
        // One more: it is good until the end of its last second.
        (self.expires + SKEW_SECONDS + 1).saturating_sub(now_unix).max(1)
    }
}

/// One signature check. `verify` always does the whole sum, and does not begin it for a second half out of range, so that
/// one is checked against the decoy. What passes is then also held to the strict rules.
fn check(key: &VerifyingKey, signature: &[u8; SIGNATURE_BYTES], signed: &[u8]) -> bool {
    let mut message = DOMAIN.to_vec();
    message.extend_from_slice(signed);
    let in_range = signature[32..].iter().rev().lt(ORDER.iter().rev());
    if !in_range {
        let _ = DECOY.verify(&message, &Signature::from_bytes(&[0; SIGNATURE_BYTES]));
        return false;
    }
    let signature = Signature::from_bytes(signature);
    key.verify(&message, &signature).is_ok() && key.verify_strict(&message, &signature).is_ok()
}
