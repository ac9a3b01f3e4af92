//! The clock of a process. Cores receive [`Mono`] from here; the wall clock is read in this file only, and
//! decides nothing but whether certificates and tickets hold.

use base::Mono;
use tokio::time::Instant;

/// Monotonic time since a zero chosen once. Copies share the zero. Under a paused tokio clock it stands still too.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// A clock whose zero is now. One per process: points of two clocks are not comparable.
    pub fn start() -> Self {
        Self { zero: Instant::now() }
    }

    pub fn now(&self) -> Mono {
        Mono::ZERO + self.zero.elapsed().into()
    }

    /// The point of tokio's clock at which this clock shows `at`, for `sleep_until`.
    pub fn instant(&self, at: Mono) -> Instant {
        self.zero + at.since(Mono::ZERO).into()
    }
}

/// Microseconds since 1970 by the wall clock; 0 when it stands before that. Where a directory without a durable store
/// begins to count epochs, what log lines show, and what the times in certificates and tickets are compared with; it may
/// jump either way, so nothing else may ask it.
#[allow(clippy::disallowed_methods, reason = "the one reader of the wall clock")]
pub fn unix_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

/// The same in whole seconds, as tickets and certificates count.
pub fn unix_seconds() -> u64 {
    unix_micros() / 1_000_000
}
