//! Core: how fast something may come. A bucket is one number, the time at which everything taken so far would have
//! come at the steady rate.

use base::Mono;

/// Bits of a cost behind the nanosecond: a gigabyte per second is about one.
const FRACTION_BITS: u32 = 16;

/// A steady rate and how much may come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// What one costs, in 2^-16 ns; 0 is off.
    cost: u64,
    burst_ns: u64,
}

/// What taking from a bucket found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    Within,
    /// Beyond the burst: refused and counted.
    Over,
    /// Beyond twice the burst: nobody who means well comes here.
    Flood,
}

/// What came so far. Eight bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    paid_until_ns: u64,
}

impl Rate {
    /// Allows everything.
    pub const OFF: Rate = Rate { cost: 0, burst_ns: 0 };

    /// `per_second` 0 allows everything.
    pub fn new(per_second: u64, burst: u64) -> Self {
        if per_second == 0 {
            return Self::OFF;
        }
        let rate = Self { cost: ((1_000_000_000 << FRACTION_BITS) / per_second).max(1), burst_ns: 0 };
        Self { burst_ns: rate.nanos(burst), ..rate }
    }

    fn nanos(self, amount: u64) -> u64 {
        let nanos = (u128::from(amount) * u128::from(self.cost)) >> FRACTION_BITS;
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

impl Bucket {
    /// Takes `amount`, which counts whether it was allowed or not: who goes on in spite of refusals floods.
    pub fn take(&mut self, now: Mono, rate: Rate, amount: u64) -> Taken {
        if rate == Rate::OFF || base::planted::is("rate_not_enforced") {
            return Taken::Within;
        }
        let ahead = self.ahead(now, rate, amount);
        self.paid_until_ns = nanos(now).saturating_add(ahead);
        match ahead {
            ahead if ahead <= rate.burst_ns => Taken::Within,
            ahead if ahead <= rate.burst_ns.saturating_mul(2) => Taken::Over,
            _ => Taken::Flood,
        }
    }

    /// Whether `amount` more would be within the burst. Takes nothing.
    pub fn has_room(&self, now: Mono, rate: Rate, amount: u64) -> bool {
        self.ahead(now, rate, amount) <= rate.burst_ns
    }

    /// As [`take`](Self::take), but never more than `most` beyond the burst is remembered.
    pub fn take_at_most(&mut self, now: Mono, rate: Rate, amount: u64, most: u64) {
        let ahead = self.ahead(now, rate, amount).min(rate.burst_ns.saturating_add(rate.nanos(most)));
        self.paid_until_ns = nanos(now).saturating_add(ahead);
    }

    /// How far ahead of the steady rate everything with `amount` more would be.
    fn ahead(&self, now: Mono, rate: Rate, amount: u64) -> u64 {
        let now = nanos(now);
        self.paid_until_ns.max(now).saturating_add(rate.nanos(amount)) - now
    }
}

fn nanos(now: Mono) -> u64 {
    now.0.saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Span;
    use proptest::prelude::*;

    #[test]
    fn a_burst_is_free_then_comes_refusal_then_flood_and_time_heals() {
        let rate = Rate::new(10, 5);
        let (mut bucket, mut now) = (Bucket::default(), Mono(7_000_000));
        let mut take = |now| bucket.take(now, rate, 1);
        let taken: Vec<_> = (0..11).map(|_| take(now)).collect();
        assert_eq!(taken[..5], [Taken::Within; 5]);
        assert_eq!(taken[5..10], [Taken::Over; 5]);
        assert_eq!(taken[10], Taken::Flood);
        now += Span::millis(1_100);
        assert_eq!(take(now), Taken::Within);
        assert_eq!(Bucket::default().take(now, Rate::OFF, u64::MAX), Taken::Within);
        assert_eq!(std::mem::size_of::<[Bucket; 2]>(), 16);
    }

    proptest! {
        /// Over any time, no more than the burst and the rate's share come through.
        #[test]
        fn never_more_than_burst_and_rate(per_second in 1..10_000u64, burst in 1..1_000u64, waits in prop::collection::vec(0..50_000u64, 1..300)) {
            let rate = Rate::new(per_second, burst);
            let (mut bucket, mut now, mut within) = (Bucket::default(), Mono(1), 0u64);
            for wait in waits {
                now += Span(wait);
                within += u64::from(bucket.take(now, rate, 1) == Taken::Within);
            }
            prop_assert!(within <= burst + per_second * (now.0 - 1) / 1_000_000 + 1);
        }
    }
}
