//! Core: which records providers contend for. 1,024 counters over the last minute (space-saving, Metwally 2005): a record
//! that is among the hottest is never missed, and what is shown of it is what was surely seen.

use std::collections::{BTreeMap, BTreeSet};

use base::{Mono, Span};

/// Records that are counted at once.
pub const COUNTERS: usize = 1_024;
/// What is counted is forgotten slice by slice, so that the past minute is what counts.
const SLICE: Span = Span::secs(10);
const SLICES: usize = 6;

/// The counters.
#[derive(Debug)]
pub struct Hot {
    counters: Vec<Counter>,
    /// Where the counter of a record stands.
    places: BTreeMap<Box<[u8]>, usize>,
    /// Counters by their weight, so that the least is found at once.
    order: BTreeSet<(u64, usize)>,
    began: Mono,
    /// The slice that is counted in, from the beginning of time.
    slice: u64,
}

#[derive(Debug, Clone)]
struct Counter {
    key: Box<[u8]>,
    seen: [u32; SLICES],
    /// What it may owe to a record whose counter it took. It ends later than what it stands for, so that a record is never
    /// thought colder than it is.
    others: [u32; SLICES],
}

impl Counter {
    fn seen(&self) -> u64 {
        self.seen.iter().map(|count| u64::from(*count)).sum()
    }

    /// The record was not contended more often.
    fn weight(&self) -> u64 {
        self.seen() + self.others.iter().map(|count| u64::from(*count)).sum::<u64>()
    }
}

/// One of the hottest.
#[derive(Debug, Clone, PartialEq)]
pub struct Hottest {
    pub key: Box<[u8]>,
    /// Waits a second, over at most the last minute.
    pub per_second: f64,
}

impl Hot {
    pub fn new(now: Mono) -> Self {
        let (counters, places, order) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Self { counters, places, order, began: now, slice: slice_of(now) }
    }

    /// A request for this record had to wait.
    pub fn contended(&mut self, now: Mono, key: &[u8]) {
        self.forget(now);
        let slice = (self.slice % SLICES as u64) as usize;
        let at = match self.places.get(key) {
            Some(at) => *at,
            None => self.enter(key, slice),
        };
        let counter = &mut self.counters[at];
        self.order.remove(&(counter.weight(), at));
        counter.seen[slice] = counter.seen[slice].saturating_add(1);
        self.order.insert((counter.weight(), at));
    }

    /// A counter for a record that has none: a new one, or the least of all.
    fn enter(&mut self, key: &[u8], slice: usize) -> usize {
        let mut new = Counter { key: key.into(), seen: [0; SLICES], others: [0; SLICES] };
        let full = self.counters.len() >= COUNTERS && !base::planted::is("hot_records_unbounded");
        let least = if full { self.order.pop_first() } else { None };
        let at = match least {
            Some((weight, at)) => {
                self.places.remove(&self.counters[at].key);
                new.others[slice] = u32::try_from(weight).unwrap_or(u32::MAX);
                self.counters[at] = new;
                at
            }
            None => {
                self.counters.push(new);
                self.counters.len() - 1
            }
        };
        self.places.insert(key.into(), at);
        at
    }

    /// The hottest first, at most `most`.
    pub fn top(&mut self, now: Mono, most: usize) -> Vec<Hottest> {
        self.forget(now);
        let mut all: Vec<(u64, &Counter)> =
            self.counters.iter().map(|counter| (counter.seen(), counter)).collect();
        all.sort_by_key(|(seen, _)| std::cmp::Reverse(*seen));
        let seconds = self.covered(now).as_millis().max(1_000) as f64 / 1_000.0;
        let hottest = |(seen, counter): (u64, &Counter)| Hottest {
            key: counter.key.clone(),
            per_second: seen as f64 / seconds,
        };
        all.into_iter().take(most).map(hottest).collect()
    }

    /// How much of the past the counters speak of.
    fn covered(&self, now: Mono) -> Span {
        let oldest = self.slice.saturating_sub(SLICES as u64 - 1);
        let from = Mono::ZERO + Span::millis(oldest * SLICE.as_millis());
        now.since(from.max(self.began))
    }

    /// Drops the slices that have ended more than a minute ago.
    fn forget(&mut self, now: Mono) {
        let slice = slice_of(now);
        let passed = slice.saturating_sub(self.slice).min(SLICES as u64);
        if passed == 0 {
            return;
        }
        for ended in (slice + 1 - passed)..=slice {
            let at = (ended % SLICES as u64) as usize;
            for counter in &mut self.counters {
                (counter.seen[at], counter.others[at]) = (0, 0);
            }
        }
        self.slice = slice;
        // Who was not waited for within a minute has no counter.
        self.counters.retain(|counter| counter.seen() > 0);
        let counters = || self.counters.iter().enumerate();
        self.places = counters().map(|(at, counter)| (counter.key.clone(), at)).collect();
        self.order = counters().map(|(at, counter)| (counter.weight(), at)).collect();
    }

    /// What always holds between two steps.
    pub fn check(&self) {
        assert!(self.counters.len() <= COUNTERS, "counters are bounded");
        assert_eq!((self.places.len(), self.order.len()), (self.counters.len(), self.counters.len()));
        for (at, counter) in self.counters.iter().enumerate() {
            assert_eq!(self.places.get(&counter.key), Some(&at), "a counter is found by its key");
            assert!(self.order.contains(&(counter.weight(), at)), "a counter is found by its weight");
        }
    }
}

fn slice_of(now: Mono) -> u64 {
    now.since(Mono::ZERO).as_millis() / SLICE.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono::ZERO + Span::millis(ms)
    }

    fn names(hot: &mut Hot, now: Mono, most: usize) -> Vec<String> {
        hot.top(now, most).iter().map(|hottest| String::from_utf8_lossy(&hottest.key).into_owned()).collect()
    }

    /// A storm of records that are waited for once takes no place of one that is waited for all the time, and no memory.
    #[test]
    fn the_hottest_is_found_among_any_number_of_others() {
        let mut hot = Hot::new(at(0));
        for n in 0..20_000_u64 {
            hot.contended(at(n), format!("once/{n}").as_bytes());
            if n % 20 == 0 {
                hot.contended(at(n), b"market");
            }
            if n % 100 == 0 {
                hot.check();
            }
        }
        hot.check();
        let top = hot.top(at(20_000), 2);
        assert_eq!(&*top[0].key, b"market");
        // What it may owe to others is not shown.
        assert!((45.0..=50.0).contains(&top[0].per_second), "{top:?}");
        assert!(top[1].per_second <= 0.1, "{top:?}");
        assert_eq!(hot.top(at(20_000), 3).len(), 3);
    }

    #[test]
    fn what_was_hot_is_forgotten_within_a_minute() {
        let mut hot = Hot::new(at(0));
        (0..100).for_each(|_| hot.contended(at(5_000), b"yesterday"));
        hot.contended(at(40_000), b"today");
        assert_eq!(names(&mut hot, at(59_999), 9), ["yesterday", "today"]);
        assert_eq!(names(&mut hot, at(60_000), 9), ["today"]);
        assert_eq!(names(&mut hot, at(1_000_000), 9), [""; 0]);
        assert!(hot.counters.is_empty());
        hot.check();
    }

    /// From a young arbiter's first seconds on the figure is a rate, and one of the past minute later.
    #[test]
    fn a_rate_is_by_the_second() {
        let mut hot = Hot::new(at(1_000));
        for n in 0..10_000 {
            hot.contended(at(1_000 + n * 10), b"k");
            let rate = hot.top(at(1_000 + n * 10), 1)[0].per_second;
            assert!(n < 200 || (99.0..=101.5).contains(&rate), "{rate} after {n}");
        }
    }
}
