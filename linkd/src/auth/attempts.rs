//! How often logins from one address may fail. Whoever fails faster is refused before any proof is looked at, so that
//! guessing costs the gateway nothing.

use std::collections::HashMap;
use std::net::IpAddr;

use base::Mono;
use parking_lot::Mutex;

use crate::router::{Bucket, Rate};

/// Addresses remembered at once, in two halves: when the newer half is full, the older one is forgotten. Who comes from
/// that many addresses is held back by the caps of the door.
const ADDRESSES_MAX: usize = 65_536;

/// The table of all workers.
#[derive(Debug)]
pub struct Attempts {
    failures: Rate,
    halves: Mutex<Halves>,
}

#[derive(Debug, Default)]
struct Halves {
    newer: HashMap<IpAddr, Bucket>,
    older: HashMap<IpAddr, Bucket>,
}

impl Attempts {
    pub fn new(per_second: u32, burst: u32) -> Self {
        let failures = Rate::new(per_second.max(1).into(), burst.max(1).into());
        Self { failures, halves: Mutex::default() }
    }

    /// Whether another try is looked at.
    pub fn allowed(&self, now: Mono, address: IpAddr) -> bool {
        let address = network(address);
        let halves = self.halves.lock();
        let failed = halves.newer.get(&address).or_else(|| halves.older.get(&address));
        failed.is_none_or(|failed| failed.has_room(now, self.failures, 1))
    }

    /// A try failed.
    pub fn failed(&self, now: Mono, address: IpAddr) {
        let address = network(address);
        let mut halves = self.halves.lock();
        let old = halves.older.remove(&address);
        let mut failed = halves.newer.get(&address).copied().or(old).unwrap_or_default();
        if halves.newer.len() >= ADDRESSES_MAX / 2 && !halves.newer.contains_key(&address) {
            halves.older = std::mem::take(&mut halves.newer);
        }
        // Tries that were under way already prolong the wait by one at most.
        failed.take_at_most(now, self.failures, 1, 1);
        halves.newer.insert(address, failed);
    }

    #[cfg(test)]
    fn remembered(&self) -> usize {
        let halves = self.halves.lock();
        halves.newer.len() + halves.older.len()
    }
}

/// Who counts as one: an IPv4 address, or the /64 network that one customer of IPv6 has.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Span;

    /// Holds: BI-026.
    #[test]
    fn a_burst_and_then_so_many_a_second() {
        let attempts = Attempts::new(10, 20);
        let (a, b): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let mut now = Mono(5_000_000);
        let tries = |now: Mono, tries: usize| {
            let looked_at = |_: &usize| {
                let allowed = attempts.allowed(now, a);
                if allowed {
                    attempts.failed(now, a);
                }
                allowed
            };
            (0..tries).filter(looked_at).count()
        };
        assert_eq!(tries(now, 10_000), 20);
        now += Span::millis(999);
        assert_eq!(tries(now, 10_000), 9);
        now += Span::secs(60);
        assert_eq!(tries(now, 10_000), 20);
        assert!(attempts.allowed(now, b), "another address pays for itself");
        // A failure that was under way already does not prolong the wait beyond one more.
        for _ in 0..1_000 {
            attempts.failed(now, a);
        }
        assert!(attempts.allowed(now + Span::millis(201), a));
    }

    #[test]
    fn a_customers_network_counts_as_one() {
        let attempts = Attempts::new(1, 1);
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        attempts.failed(Mono(0), address("2001:db8::1"));
        assert!(!attempts.allowed(Mono(0), address("2001:db8::ffff:1")));
        assert!(attempts.allowed(Mono(0), address("2001:db8:0:1::1")));
        attempts.failed(Mono(0), address("::ffff:10.0.0.1"));
        assert!(!attempts.allowed(Mono(0), address("10.0.0.1")));
    }

    /// Holds: BI-026.
    #[test]
    fn a_spray_of_addresses_takes_bounded_memory() {
        let attempts = Attempts::new(1, 1);
        for n in 0..300_000u32 {
            attempts.failed(Mono(0), IpAddr::V4(n.into()));
        }
        assert!(attempts.remembered() <= ADDRESSES_MAX);
        assert!(!attempts.allowed(Mono(0), IpAddr::V4(299_999.into())));
    }
}
