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
}

impl Gauge {
    pub fn new(config: &config::Overload) -> Self {
        Self {
            threshold: config.threshold.span(),
            overload: config.overload.span(),
            in_flight_max: config.in_flight_max,
            worst: AtomicU64::new(0),
            probe: AtomicU64::new(0),
            pressure: AtomicU8::new(0),
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
        self.pressure.store(pressure as u8, Ordering::Relaxed);
        pressure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_probes_and_crowds_raise_the_level_and_calm_lowers_it() {
        let gauge = Gauge::new(&config::Overload::default());
        assert_eq!(gauge.look(Mono(1), 0), Pressure::Fine);
        gauge.note(Span::millis(2_000));
        assert_eq!(gauge.look(Mono(2), 0), Pressure::Threshold);
        assert_eq!(gauge.look(Mono(3), 0), Pressure::Fine);
        assert!(gauge.probe(Mono(4)) && !gauge.probe(Mono(5)));
        let late = Mono(4) + Span::millis(4_000);
        assert_eq!(gauge.look(late, 0), Pressure::Overload);
        gauge.probed(late);
        assert_eq!(gauge.look(late, 40_000), Pressure::Overload);
        assert_eq!((gauge.look(late, 40_000), gauge.pressure()), (Pressure::Threshold, Pressure::Threshold));
        assert!(gauge.probe(late));
    }

    #[test]
    fn the_most_critical_runs_longest() {
        let runs =
            |pressure: Pressure| Level::ALL.into_iter().filter(|&level| pressure.admits(level)).count();
        assert_eq!([Pressure::Fine, Pressure::Threshold, Pressure::Overload].map(runs), [4, 3, 1]);
    }
}
