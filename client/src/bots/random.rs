//! A bot's own random numbers: the same seed and index give the same ones, however many bots run beside it.

use std::ops::Range;
use std::time::Duration;

use base::hash::mix;

/// A stream of numbers (SplitMix64). Not for secrets.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(mix(seed ^ mix(stream.wrapping_add(1))))
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Below `bound`; 0 when the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product: no division, and a bias too small to see.
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// One of `items`; `None` when there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len() as u64) as usize)
    }

    /// At least `range.start` and below `range.end`; `range.start` when the range is empty.
    pub fn duration(&mut self, range: &Range<Duration>) -> Duration {
        let width = range.end.saturating_sub(range.start).as_nanos();
        range.start + Duration::from_nanos(self.below(u64::try_from(width).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.number(), random.number()]
        };
        assert_eq!(draw(7, 3), draw(7, 3));
        assert_ne!(draw(7, 3), draw(7, 4));
        assert_ne!(draw(7, 3), draw(8, 3));
    }

    #[test]
    fn draws_stay_in_their_ranges_and_reach_all_of_them() {
        let mut random = Random::new(1, 1);
        let mut seen = [false; 5];
        for _ in 0..500 {
            seen[random.below(5) as usize] = true;
            let range = Duration::from_millis(5)..Duration::from_millis(7);
            assert!(range.contains(&random.duration(&range)));
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.pick::<u8>(&[]), None);
        assert_eq!(random.duration(&(Duration::from_secs(1)..Duration::ZERO)), Duration::from_secs(1));
    }
}
