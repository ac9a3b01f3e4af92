//! Core: what is given up when there is too much: toward a provider that can't keep up, and toward clients when more
//! leaves than the line carries. Both look at a smoothed measure, so that one batch sheds nothing.

use base::{Mono, Span};
use wire::Level;
use wire::payload::Family;

use super::Loss;

/// Over which time rates are smoothed.
const RATE_OVER: Span = Span::secs(1);
/// Over which time a backlog is smoothed.
const BACKLOG_OVER: Span = Span::millis(100);
/// Rates are worked out this often; what comes in between waits in a sum.
const FOLD: Span = Span::millis(10);
const FRACTION_BITS: u32 = 8;

/// How a measure stands to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pressure {
    Calm,
    /// Above 70 %.
    High,
    /// Above the limit.
    Full,
}

impl Pressure {
    /// A limit of 0 is none.
    fn of(measure: u64, limit: u64) -> Self {
        match limit {
            0 => Pressure::Calm,
            _ if measure > limit => Pressure::Full,
            _ if measure > limit - limit / 10 * 3 => Pressure::High,
            _ => Pressure::Calm,
        }
    }
}

/// A rate per second, exponentially smoothed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meter {
    /// With [`FRACTION_BITS`] behind the point: what is rounded off a hundred times a second would add up.
    per_second: u64,
    /// Since `at`.
    sum: u64,
    at: Mono,
}

impl Meter {
    pub fn add(&mut self, now: Mono, amount: u64) {
        self.fold(now);
        self.sum = self.sum.saturating_add(amount);
    }

    pub fn per_second(&mut self, now: Mono) -> u64 {
        self.fold(now);
        self.per_second >> FRACTION_BITS
    }

    fn fold(&mut self, now: Mono) {
        let passed = now.since(self.at);
        if passed < FOLD {
            return;
        }
        let before = self.per_second.saturating_mul(RATE_OVER.0);
        let fresh = self.sum.saturating_mul(1_000_000 << FRACTION_BITS);
        let whole = before.saturating_add(fresh);
        self.per_second = whole / RATE_OVER.0.saturating_add(passed.0);
        (self.sum, self.at) = (0, now);
    }
}

/// The guard toward clients: bytes that leave one worker.
#[derive(Debug, Clone, Copy, Default)]
pub struct Line {
    bytes: Meter,
}

impl Line {
    pub fn sent(&mut self, now: Mono, bytes: usize) {
        self.bytes.add(now, bytes as u64);
    }

    /// Whether something of this level is given up now. Answers and what keeps a session alive are not asked about.
    pub fn sheds(&mut self, now: Mono, bytes_per_second_max: u64, level: Level) -> bool {
        if bytes_per_second_max == 0 {
            return false;
        }
        match Pressure::of(self.bytes.per_second(now), bytes_per_second_max) {
            Pressure::Calm => false,
            Pressure::High => level == Level::Sheddable,
            Pressure::Full => level > Level::Critical,
        }
    }
}

/// What one provider may be loaded with by one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that may wait for it.
    pub backlog_bytes_max: u64,
    /// 0 is no limit.
    pub requests_per_second_max: u64,
}

/// A client's frame on its way to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    pub family: Family,
    pub level: Level,
    /// The session is bound there.
    pub bound: bool,
    pub bytes: usize,
}

/// The guard toward one provider.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guard {
    backlog: u64,
    smoothed: u64,
    at: Mono,
    requests: Meter,
}

impl Guard {
    /// This many bytes wait for the provider.
    pub fn observe(&mut self, now: Mono, backlog: usize) {
        // Longer ago is as good as for ever, and can't overflow.
        let passed = now.since(self.at).min(BACKLOG_OVER.times(100)).0;
        self.backlog = backlog as u64;
        let whole = self.smoothed * BACKLOG_OVER.0 + self.backlog * passed;
        self.smoothed = whole / (BACKLOG_OVER.0 + passed);
        self.at = now;
    }

    /// Lets a frame through, or says why not: a request is then answered Busy. A one-way message that can't be answered
    /// is let through as long as its client can be held back instead; only a sheddable one is given up.
    pub fn admit(&mut self, now: Mono, bounds: Bounds, weight: Weight) -> Result<(), Loss> {
        let request = weight.family == Family::Request;
        let spared = weight.family == Family::Response || weight.level == Level::CriticalPlus && weight.bound;
        if !spared {
            self.judge(now, bounds, weight)?;
        }
        self.backlog += weight.bytes as u64;
        if request {
            self.requests.add(now, 1);
        }
        Ok(())
    }

    fn judge(&mut self, now: Mono, bounds: Bounds, weight: Weight) -> Result<(), Loss> {
        let request = weight.family == Family::Request;
        let rate = match request {
            true => Pressure::of(self.requests.per_second(now), bounds.requests_per_second_max),
            false => Pressure::Calm,
        };
        let crowded = Pressure::of(self.smoothed, bounds.backlog_bytes_max).max(rate);
        let full = Pressure::of(self.backlog + weight.bytes as u64, bounds.backlog_bytes_max).max(rate);
        if weight.level == Level::Sheddable && (crowded >= Pressure::High || full == Pressure::Full) {
            return Err(Loss::ProviderShed);
        }
        if request && full == Pressure::Full {
            return Err(Loss::ProviderFull);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { backlog_bytes_max: 1_000, requests_per_second_max: 0 };

    fn weigh(family: Family, level: Level, bound: bool) -> Weight {
        Weight { family, level, bound, bytes: 10 }
    }

    /// What each level gets at a backlog that has stood for long.
    fn admitted(backlog: usize, family: Family, bound: bool) -> [Result<(), Loss>; 4] {
        Level::ALL.map(|level| {
            let mut guard = Guard::default();
            guard.observe(Mono(0), backlog);
            guard.observe(Mono(60_000_000), backlog);
            guard.admit(Mono(60_000_000), BOUNDS, weigh(family, level, bound))
        })
    }

    #[test]
    fn a_crowded_provider_loses_the_sheddable_first_and_then_everything_but_the_bound_critical_plus() {
        let (full, shed) = (Err(Loss::ProviderFull), Err(Loss::ProviderShed));
        assert_eq!(admitted(600, Family::Request, true), [Ok(()); 4]);
        assert_eq!(admitted(800, Family::Request, true), [Ok(()), Ok(()), Ok(()), shed]);
        assert_eq!(admitted(1_200, Family::Request, true), [Ok(()), full, full, shed]);
        assert_eq!(admitted(1_200, Family::Request, false), [full, full, full, shed]);
        assert_eq!(admitted(1_200, Family::Protocol, true), [Ok(()), Ok(()), Ok(()), shed]);
        assert_eq!(admitted(1_200, Family::Response, false), [Ok(()); 4]);
    }

    #[test]
    fn one_batch_sheds_nothing_and_the_limit_holds_within_it() {
        let mut guard = Guard::default();
        guard.observe(Mono(0), 0);
        guard.observe(Mono(50), 900);
        let sheddable = weigh(Family::Request, Level::Sheddable, true);
        assert_eq!(guard.admit(Mono(50), BOUNDS, sheddable), Ok(()));
        let normal = weigh(Family::Request, Level::Normal, true);
        let admitted = (0..20).filter(|_| guard.admit(Mono(50), BOUNDS, normal).is_ok()).count();
        assert_eq!(admitted, 9);
    }

    #[test]
    fn a_rate_of_requests_is_smoothed_and_bounded() {
        let bounds = Bounds { backlog_bytes_max: 1 << 20, requests_per_second_max: 100 };
        let (mut guard, mut now) = (Guard::default(), Mono(0));
        let mut admitted = 0;
        for _ in 0..10_000 {
            now += Span::millis(1);
            admitted +=
                u32::from(guard.admit(now, bounds, weigh(Family::Request, Level::Normal, true)).is_ok());
        }
        assert!((950..=1_200).contains(&admitted), "{admitted} in 10 s at 100 per second");
    }

    /// Holds: Q32.
    #[test]
    fn a_full_line_sheds_by_level_and_recovers() {
        let sheds = |line: &mut Line, now| Level::ALL.map(|level| line.sheds(now, 100_000, level));
        let (mut line, mut now) = (Line::default(), Mono(0));
        let mut run = |line: &mut Line, bytes_per_ms: usize| {
            for _ in 0..5_000 {
                now += Span::millis(1);
                line.sent(now, bytes_per_ms);
            }
            now
        };
        let calm = run(&mut line, 60);
        assert_eq!(sheds(&mut line, calm), [false; 4]);
        let high = run(&mut line, 85);
        assert_eq!(sheds(&mut line, high), [false, false, false, true]);
        let full = run(&mut line, 130);
        assert_eq!(sheds(&mut line, full), [false, false, true, true]);
        assert!(!line.sheds(full, 0, Level::Sheddable));
        let rested = full + Span::secs(5);
        assert_eq!(sheds(&mut line, rested), [false; 4]);
    }
}
