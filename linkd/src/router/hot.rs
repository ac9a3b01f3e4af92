//! Core: which accounts ask most. It looks at every 64th request and keeps 64 counters: an account with more than a
//! sixty-fourth of the requests is never missed, one with less may stand in for another (space-saving, Metwally 2005).

use std::collections::BTreeMap;

use base::{Account, Mono, Span};

/// Requests between two that are looked at.
const SAMPLE: u32 = 64;
const COUNTERS: usize = 64;
/// What was counted halves this often, so that yesterday's crowd is forgotten.
const HALF_LIFE: Span = Span::secs(5);
/// How many are shown.
pub const SHOWN: usize = 10;

/// The counters of one worker.
#[derive(Debug, Default, Clone)]
pub struct Hot {
    passed: u32,
    /// What was seen, and how much of it may have been another account's.
    counters: BTreeMap<Account, Counter>,
    total: u64,
    halved: Mono,
}

#[derive(Debug, Clone, Copy)]
struct Counter {
    seen: u64,
    others: u64,
}

impl Hot {
    /// Whether the request at hand is one to be counted.
    pub fn looks(&mut self) -> bool {
        self.passed = (self.passed + 1) % SAMPLE;
        self.passed == 0
    }

    pub fn count(&mut self, account: &Account) {
        self.total += 1;
        if let Some(counter) = self.counters.get_mut(account) {
            counter.seen += 1;
            return;
        }
        let mut others = 0;
        if self.counters.len() >= COUNTERS {
            let least = self.counters.iter().min_by_key(|(_, counter)| counter.seen);
            let Some((least, counter)) = least.map(|(account, counter)| (account.clone(), *counter)) else {
                return;
            };
            self.counters.remove(&least);
            others = counter.seen;
        }
        self.counters.insert(account.clone(), Counter { seen: others + 1, others });
    }

    pub fn tick(&mut self, now: Mono) {
        if now.since(self.halved) < HALF_LIFE {
            return;
        }
        self.halved = now;
        self.total /= 2;
        self.counters.retain(|_, counter| {
            (counter.seen, counter.others) = (counter.seen / 2, counter.others / 2);
            counter.seen > 0
        });
    }

    /// Puts the counters of another worker beside these.
    pub fn add(&mut self, other: &Hot) {
        self.total += other.total;
        for (account, counter) in &other.counters {
            let sum = self.counters.entry(account.clone()).or_insert(Counter { seen: 0, others: 0 });
            (sum.seen, sum.others) = (sum.seen + counter.seen, sum.others + counter.others);
        }
    }

    /// The busiest first, each with its share of all requests in percent, at least.
    pub fn top(&self) -> Vec<(&Account, u64)> {
        let share = |counter: &Counter| (counter.seen - counter.others) * 100 / self.total.max(1);
        let all = self.counters.iter().map(|(account, counter)| (account, share(counter)));
        let mut busy: Vec<_> = all.filter(|(_, share)| *share > 0).collect();
        busy.sort_by_key(|&(_, share)| std::cmp::Reverse(share));
        busy.truncate(SHOWN);
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> Account {
        Account::new(name).unwrap()
    }

    #[test]
    fn who_asks_much_is_found_among_many_and_forgotten_when_calm() {
        let mut hot = Hot::default();
        for i in 0..30_000u32 {
            let name = if i % 5 == 0 { "busy".to_owned() } else { format!("player-{}", i % 9_973) };
            hot.count(&account(&name));
        }
        assert!(hot.counters.len() <= COUNTERS);
        let (first, share) = hot.top()[0];
        assert_eq!(first, &account("busy"));
        assert!((18..=20).contains(&share), "{share} %");
        assert!(hot.top().len() <= SHOWN);
        for second in 0..200 {
            hot.tick(Mono(second * 1_000_000));
        }
        assert!(hot.top().is_empty());
    }

    #[test]
    fn the_counters_of_two_workers_add_up() {
        let (mut one, mut two) = (Hot::default(), Hot::default());
        one.count(&account("ann"));
        two.count(&account("ann"));
        two.count(&account("bob"));
        one.add(&two);
        assert_eq!(one.top(), [(&account("ann"), 66), (&account("bob"), 33)]);
    }
}
