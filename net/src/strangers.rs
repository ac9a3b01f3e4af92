//! How many may be here who have not said who they are: bounded in all and from one address, so that the silent ones of
//! one address keep nobody else out. What is logged of them is bounded too: anybody can be turned away a thousand times.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The least time between two log lines about strangers.
const LINE: Duration = Duration::from_secs(1);

/// Counts strangers. A clone is the same count.
#[derive(Debug, Clone)]
pub struct Strangers {
    max: usize,
    per_address_max: usize,
    here: Arc<Mutex<Here>>,
    log: Arc<Seldom>,
}

#[derive(Debug, Default)]
struct Here {
    all: usize,
    per_address: PerAddress,
}

/// How many are here from each address. Who is counted leaves with the address they came with.
#[derive(Debug, Default)]
pub struct PerAddress(HashMap<IpAddr, usize>);

impl PerAddress {
    /// Counts one more from `address`; false, and nothing changes: there are `max` already.
    pub fn enter(&mut self, address: IpAddr, max: usize) -> bool {
        let address = address.to_canonical();
        let from_here = self.0.get(&address).copied().unwrap_or_default();
        let room = from_here < max;
        if room {
            self.0.insert(address, from_here + 1);
        }
        room
    }

    pub fn leave(&mut self, address: IpAddr) {
        let address = address.to_canonical();
        if let Some(count) = self.0.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&address);
            }
        }
    }

    /// Addresses that somebody is here from.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One stranger's place; dropping it makes room.
#[derive(Debug)]
pub struct Place {
    strangers: Strangers,
    address: IpAddr,
}

/// Which bound a stranger met. Trying again later helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("too many connections have not said yet who they are")]
    Everywhere,
    #[error("too many connections from this address have not said yet who they are")]
    FromAddress,
}

impl Full {
    /// The value of a counter's label.
    pub const fn label(self) -> &'static str {
        match self {
            Full::Everywhere => "strangers",
            Full::FromAddress => "strangers_from_address",
        }
    }
}

impl Strangers {
    /// At most `max` at once, and `per_address_max` of them from one address.
    pub fn new(max: usize, per_address_max: usize) -> Self {
        Self { max, per_address_max, here: Arc::default(), log: Arc::default() }
    }

    pub fn enter(&self, address: IpAddr) -> Result<Place, Full> {
        let mut here = self.here.lock();
        if here.all >= self.max {
            return Err(Full::Everywhere);
        }
        if !here.per_address.enter(address, self.per_address_max) {
            return Err(Full::FromAddress);
        }
        here.all += 1;
        Ok(Place { strangers: self.clone(), address })
    }

    /// Whose log line this would be, once a second.
    pub fn log(&self) -> Arc<Seldom> {
        self.log.clone()
    }

    pub fn count(&self) -> usize {
        self.here.lock().all
    }
}

/// One log line a second; the others are counted.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// How many lines were left out since the last one, if it is time for another.
    pub fn turn(&self) -> Option<u64> {
        let (now, mut last) = (Instant::now(), self.0.lock());
        if last.0.is_some_and(|last| now.duration_since(last) < LINE) {
            last.1 += 1;
            return None;
        }
        last.0 = Some(now);
        Some(std::mem::take(&mut last.1))
    }
}

impl Place {
    /// As [`Strangers::log`].
    pub fn log(&self) -> Arc<Seldom> {
        self.strangers.log()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut here = self.strangers.here.lock();
        here.all -= 1;
        here.per_address.leave(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_fill_the_room() {
        let strangers = Strangers::new(3, 2);
        let (a, b): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let held =
            [strangers.enter(a).unwrap(), strangers.enter("::ffff:10.0.0.1".parse().unwrap()).unwrap()];
        assert_eq!(strangers.enter(a).unwrap_err(), Full::FromAddress);
        let other = strangers.enter(b).unwrap();
        assert_eq!(strangers.enter(b).unwrap_err(), Full::Everywhere);
        drop(held);
        assert!(strangers.enter(b).is_ok());
        drop(other);
        assert_eq!((strangers.count(), strangers.here.lock().per_address.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_logged_of_strangers_is_bounded() {
        let seldom = Seldom::default();
        assert_eq!(seldom.turn(), Some(0));
        assert_eq!((seldom.turn(), seldom.turn()), (None, None));
        tokio::time::advance(LINE).await;
        assert_eq!(seldom.turn(), Some(2));
        assert_eq!(seldom.turn(), None);
    }
}
