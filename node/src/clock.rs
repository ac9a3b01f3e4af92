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

/// A wall clock that stands before the program was made is wrong. Clocks a little apart are not worth a word, and
/// neither is a program that was unpacked in another zone.
const BEHIND_MAX_S: u64 = 2 * 24 * 3_600;

/// Warns when the wall clock stands before the program's own file was written.
pub fn warn_if_behind() {
    let written = || {
        let file = std::env::current_exe()?.metadata()?.modified()?;
        Ok::<_, std::io::Error>(file.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    };
    // Without a file to ask there is nothing to compare with.
    let Ok(written) = written() else { return };
    if let Some(days) = days_behind(unix_seconds(), written) {
        tracing::warn!(
            days,
            "the clock of this machine stands before this program was made: tickets and certificates are judged by \
             it and will be refused; set it right. Leases do not depend on it"
        );
    }
}

fn days_behind(now_s: u64, written_s: u64) -> Option<u64> {
    let behind = written_s.saturating_sub(now_s);
    (behind > BEHIND_MAX_S).then_some(behind / (24 * 3_600))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: BI-119.
    #[test]
    fn a_clock_before_the_program_is_noticed_and_one_that_is_a_little_off_is_not() {
        let made = 1_800_000_000;
        assert_eq!(days_behind(made + 1_000_000_000, made), None);
        assert_eq!(days_behind(made - BEHIND_MAX_S, made), None);
        assert_eq!(days_behind(made - 10 * 365 * 24 * 3_600, made), Some(3_650));
        assert_eq!(days_behind(0, made), Some(20_833));
    }
}
