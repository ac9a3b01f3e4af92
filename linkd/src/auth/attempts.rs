//! How often logins from one address may fail. Whoever fails faster is refused before any proof is looked at, so that
//! guessing costs the gateway nothing.

use std::collections::HashMap;
use std::net::IpAddr;

use base::{Mono, Span};
use parking_lot::Mutex;

/// Addresses remembered at once, in two halves: when the newer half is full, the older one is forgotten. Who comes from
/// that many addresses is held back by the caps of the door.
const ADDRESSES_MAX: usize = 65_536;

/// The table of all workers.
#[derive(Debug)]
pub struct Attempts {
    /// How much of the burst grows back in a second.
    per_second: u32,
    burst: u32,
    halves: Mutex<Halves>,
}

#[derive(Debug, Default)]
struct Halves {
    newer: HashMap<IpAddr, Debt>,
    older: HashMap<IpAddr, Debt>,
}

/// When the address will have paid off its failures.
#[derive(Debug, Clone, Copy)]
struct Debt(Mono);

impl Attempts {
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self { per_second: per_second.max(1), burst: burst.max(1), halves: Mutex::default() }
    }

    /// Whether another try is looked at.
    pub fn allowed(&self, now: Mono, address: IpAddr) -> bool {
        let address = network(address);
        let halves = self.halves.lock();
        let debt = halves.newer.get(&address).or_else(|| halves.older.get(&address));
        debt.is_none_or(|debt| debt.0.since(now) + self.price() <= self.whole())
    }

    /// A try failed.
    pub fn failed(&self, now: Mono, address: IpAddr) {
        let address = network(address);
        let price = self.price();
        let mut halves = self.halves.lock();
        let old = halves.older.remove(&address);
        let debt = halves.newer.get(&address).copied().or(old).unwrap_or(Debt(now));
        if halves.newer.len() >= ADDRESSES_MAX / 2 && !halves.newer.contains_key(&address) {
            halves.older = std::mem::take(&mut halves.newer);
        }
        let paid = if debt.0 > now { debt.0 } else { now };
        let debt = Debt((paid + price).min(now + self.whole() + price));
        halves.newer.insert(address, debt);
    }

    /// What one failure costs.
    fn price(&self) -> Span {
        Span(1_000_000 / u64::from(self.per_second))
    }

    fn whole(&self) -> Span {
        self.price().times(self.burst.into())
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
