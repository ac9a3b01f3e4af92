//! How hard it is to be served: the wait in front of the worker threads, and how much is in flight.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use base::{Mono, Span};
use wire::Level;

use crate::config;

/// What may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Pressure {
    /// Everything.
    Fine = 0,
    /// All but what is sheddable.
    Threshold = 1,
    /// Only what is critical_plus.
    Overload = 2,
}

impl Pressure {
    /// Whether a protocol of this level runs.
    pub fn admits(self, level: Level) -> bool {
        match self {
            Pressure::Fine => true,
            Pressure::Threshold => level < Level::Sheddable,
            Pressure::Overload => level == Level::CriticalPlus,
        }
    }

    fn of(number: u8) -> Self {
        match number {
            0 => Pressure::Fine,
            1 => Pressure::Threshold,
            _ => Pressure::Overload,
        }
    }
}

/// The measure. Workers note waits as they meet them; the control thread draws the conclusion a few times a second.
#[derive(Debug)]
pub(crate) struct Gauge {
    threshold: Span,
    overload: Span,
    in_flight_max: usize,
    /// The longest wait since the last look, in microseconds.
    worst: AtomicU64,
    /// When the probe was put in front of the workers, in microseconds; 0 when none waits there.
    probe: AtomicU64,
    pressure: AtomicU8,
    /// Since when a lower level would do, in microseconds; 0 while it would not.
    calm: AtomicU64,
}

/// A level is left once a lower one would have done for this long, so that linkds are not told back and forth.
const CALM: Span = Span::secs(1);

impl Gauge {
    pub fn new(config: &config::Overload) -> Self {
        Self {
            threshold: config.threshold.span(),
            overload: config.overload.span(),
            in_flight_max: config.in_flight_max,
            worst: AtomicU64::new(0),
            probe: AtomicU64::new(0),
            pressure: AtomicU8::new(0),
            calm: AtomicU64::new(0),
        }
    }

    pub fn pressure(&self) -> Pressure {
        Pressure::of(self.pressure.load(Ordering::Relaxed))
    }

    /// Something waited this long before it ran, or kept others waiting this long.
    pub fn note(&self, waited: Span) {
        self.worst.fetch_max(waited.0, Ordering::Relaxed);
    }

    /// A probe was put in front of the workers. False: one waits there already.
    pub fn probe(&self, now: Mono) -> bool {
        self.probe.compare_exchange(0, now.0.max(1), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The probe ran.
    pub fn probed(&self, now: Mono) {
        let since = self.probe.swap(0, Ordering::Relaxed);
        self.note(now.since(Mono(since)));
    }

    /// Judges what was noted since the last look. A probe that still waits counts by its age, so that a stuck pool is
    /// seen before anything comes out of it.
    pub fn look(&self, now: Mono, in_flight: usize) -> Pressure {
        let probe = self.probe.load(Ordering::Relaxed);
        let age = if probe == 0 { Span::ZERO } else { now.since(Mono(probe)) };
        let worst = Span(self.worst.swap(0, Ordering::Relaxed)).max(age);
        let pressure = if worst >= self.overload || in_flight >= self.in_flight_max {
            Pressure::Overload
        } else if worst >= self.threshold || in_flight >= self.in_flight_max.div_ceil(2) {
            Pressure::Threshold
        } else {
            Pressure::Fine
        };
        let pressure = self.settle(now, pressure);
        self.pressure.store(pressure as u8, Ordering::Relaxed);
        pressure
    }

    /// Up at once, down after a while.
    fn settle(&self, now: Mono, measured: Pressure) -> Pressure {
        let present = self.pressure();
        if measured >= present || base::planted::is("overload_flaps") {
            self.calm.store(0, Ordering::Relaxed);
            return measured;
        }
        let since = match self.calm.load(Ordering::Relaxed) {
            0 => now.0.max(1),
            since => since,
        };
        let settled = now.since(Mono(since)) >= CALM;
        self.calm.store(if settled { 0 } else { since }, Ordering::Relaxed);
        if settled { measured } else { present }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The boundaries, to the millisecond. Each is measured by a gauge of its own, since levels are left slowly.
    ///
    /// Holds: Z-27, A71.
    #[test]
    fn waits_and_crowds_raise_the_level() {
        let after = |wait: u64, in_flight| {
            let gauge = Gauge::new(&config::Overload::default());
            gauge.note(Span::millis(wait));
            gauge.look(Mono(1), in_flight)
        };
        let levels = [0, 1_999, 2_000, 3_999, 4_000].map(|wait| after(wait, 0));
        use Pressure::{Fine, Overload, Threshold};
        assert_eq!(levels, [Fine, Fine, Threshold, Threshold, Overload]);
        let crowds = [32_767, 32_768, 65_535, 65_536].map(|in_flight| after(0, in_flight));
        assert_eq!(crowds, [Fine, Threshold, Threshold, Overload]);
    }

    /// A probe that still waits counts by its age: a pool that stands still is seen before anything comes out of it.
    ///
    /// Holds: Z-29.
    #[test]
    fn a_probe_is_not_starved_by_what_it_measures() {
        let gauge = Gauge::new(&config::Overload::default());
        assert!(gauge.probe(Mono(4)) && !gauge.probe(Mono(5)));
        assert_eq!(gauge.look(Mono(4) + Span::millis(3_999), 0), Pressure::Threshold);
        let late = Mono(4) + Span::millis(4_000);
        assert_eq!(gauge.look(late, 0), Pressure::Overload);
        gauge.probed(late);
        assert!(gauge.probe(late));
    }

    /// Up at once, down after a second of calm: at most one change down in a second.
    ///
    /// Holds: Z-30.
    #[test]
    fn a_level_is_left_after_a_second_of_calm() {
        let gauge = Gauge::new(&config::Overload::default());
        let look = |millis: u64, wait: u64| {
            gauge.note(Span::millis(wait));
            gauge.look(Mono(millis * 1_000), 0) as u8
        };
        let looks = [(1, 4_000), (200, 0), (400, 2_500), (900, 0), (1_199, 0), (1_200, 2_500), (1_400, 0)];
        assert_eq!(looks.map(|(at, wait)| look(at, wait)), [2, 2, 2, 2, 2, 1, 1]);
        assert_eq!(
            [(1_600, 2_000), (1_800, 0), (2_799, 0), (2_800, 0)].map(|(at, wait)| look(at, wait)),
            [1, 1, 1, 0]
        );
    }

    #[test]
    fn the_most_critical_runs_longest() {
        let runs =
            |pressure: Pressure| Level::ALL.into_iter().filter(|&level| pressure.admits(level)).count();
        assert_eq!([Pressure::Fine, Pressure::Threshold, Pressure::Overload].map(runs), [4, 3, 1]);
    }
}
