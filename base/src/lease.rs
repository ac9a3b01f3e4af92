//! The one lease rule. Monotonic time only; wall clocks decide nothing.
//!
//! The holder counts from the **send** time of the last answered renewal, the granter from **receipt**: so the
//! holder always stops first, whatever the network did between them.

use crate::{Mono, Span};

/// How long each side of a lease waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How often the holder renews.
    pub renew: Span,
    /// After this long without an answered renewal the holder stops using what it holds.
    pub self_release: Span,
    /// How long after that it may still finish what it had committed before.
    pub flush: Span,
    /// After this long without a renewal the granter gives it to others.
    pub eviction: Span,
}

/// Terms that would let granter and holder disagree. The start refuses them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "lease terms don't hold: (self_release {self_release} + flush {flush}) x 1.25 + 2 x ping {ping} + scan {scan} \
     = {sum}, which must be less than eviction {eviction}; raise the eviction or shorten the others"
)]
pub struct BadTerms {
    pub self_release: Span,
    pub flush: Span,
    pub ping: Span,
    pub scan: Span,
    pub sum: Span,
    pub eviction: Span,
}

impl Terms {
    /// The default profile: renew 1 s, self-release 4 s, flush 3 s, eviction 10 s.
    pub const DEFAULT: Self = Self {
        renew: Span::secs(1),
        self_release: Span::secs(4),
        flush: Span::secs(3),
        eviction: Span::secs(10),
    };

    /// Refuses terms under which a holder with a clock 25 % slow could outlive its eviction.
    pub fn check(&self, ping: Span, scan: Span) -> Result<(), BadTerms> {
        let held = self.self_release + self.flush;
        let sum = held + Span(held.0 / 4) + ping.times(2) + scan;
        if sum < self.eviction {
            return Ok(());
        }
        let (self_release, flush, eviction) = (self.self_release, self.flush, self.eviction);
        Err(BadTerms { self_release, flush, ping, scan, sum, eviction })
    }
}

/// What a holder may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Use everything.
    Held,
    /// Start nothing and commit nothing; finish what was committed before.
    Releasing,
    /// Drop everything and log in anew.
    Lost,
}

/// The holder's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    terms: Terms,
    confirmed: Mono,
}

impl Lease {
    /// A lease granted in answer to a request sent at `sent`.
    pub fn new(terms: Terms, sent: Mono) -> Self {
        Self { terms, confirmed: sent }
    }

    /// A renewal sent at `sent` was answered. Answers out of order never move it back.
    pub fn renewed(&mut self, sent: Mono) {
        self.confirmed = self.confirmed.max(sent);
    }

    pub fn standing(&self, now: Mono) -> Standing {
        let silent = now.since(self.confirmed);
        if silent < self.terms.self_release {
            Standing::Held
        } else if silent < self.terms.self_release + self.terms.flush {
            Standing::Releasing
        } else {
            Standing::Lost
        }
    }

    /// When it must stop using what it holds, if nothing more is answered.
    pub fn self_release_at(&self) -> Mono {
        self.confirmed + self.terms.self_release
    }
}

/// The granter's side: when the holder was last heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    at: Mono,
    eviction: Span,
}

impl Heard {
    pub fn new(now: Mono, eviction: Span) -> Self {
        Self { at: now, eviction }
    }

    pub fn renew(&mut self, now: Mono) {
        self.at = self.at.max(now);
    }

    pub fn expired(&self, now: Mono) -> bool {
        now.since(self.at) >= self.eviction
    }

    pub fn expires_at(&self) -> Mono {
        self.at + self.eviction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_stops_before_the_granter_evicts() {
        let lease = Lease::new(Terms::DEFAULT, Mono::ZERO);
        let heard = Heard::new(Mono::ZERO, Terms::DEFAULT.eviction);
        let at = |s| Mono::ZERO + Span::millis(s);
        assert_eq!(lease.standing(at(3_999)), Standing::Held);
        assert_eq!(lease.standing(at(4_000)), Standing::Releasing);
        assert_eq!(lease.standing(at(7_000)), Standing::Lost);
        assert!(!heard.expired(at(9_999)));
        assert!(heard.expired(at(10_000)));
    }

    #[test]
    fn a_late_answer_never_shortens_the_lease() {
        let mut lease = Lease::new(Terms::DEFAULT, Mono(5_000_000));
        lease.renewed(Mono(1_000_000));
        assert_eq!(lease.self_release_at(), Mono(9_000_000));
    }

    /// Holds: Z-57, A15.
    #[test]
    fn terms_that_break_the_inequality_are_refused_with_their_numbers() {
        assert!(Terms::DEFAULT.check(Span::millis(250), Span::millis(500)).is_ok());
        let broken = Terms { eviction: Span::secs(9), ..Terms::DEFAULT };
        let why = broken.check(Span::millis(250), Span::millis(500)).unwrap_err().to_string();
        assert!(why.contains("9.75s") && why.contains("eviction 9s"), "{why}");
    }
}
