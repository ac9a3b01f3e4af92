//! Monotonic time as a value. Cores receive it as an argument; only shells read a clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point on one process's monotonic clock, in microseconds since that process chose its zero.
/// Points of two processes are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub u64);

/// A length of monotonic time in microseconds. Arithmetic saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

impl Mono {
    pub const ZERO: Self = Self(0);

    /// The time since `earlier`; zero when `earlier` is later.
    pub const fn since(self, earlier: Mono) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    pub const ZERO: Self = Self(0);

    pub const fn micros(n: u64) -> Self {
        Self(n)
    }

    pub const fn millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    pub const fn secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl From<Duration> for Span {
    fn from(d: Duration) -> Self {
        Self(u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for Duration {
    fn from(s: Span) -> Self {
        Duration::from_micros(s.0)
    }
}

impl Add<Span> for Mono {
    type Output = Mono;
    fn add(self, span: Span) -> Mono {
        Mono(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Mono {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Mono> for Mono {
    type Output = Span;
    fn sub(self, earlier: Mono) -> Span {
        self.since(earlier)
    }
}

impl Add<Span> for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Mono {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from(*self))
    }
}
