//! How many may be inside: connections in all, per address, and not yet logged in. Shared by all workers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use wire::code::{self, Code};

/// The caps of one linkd.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    pub connections_max: usize,
    pub per_address_max: usize,
    pub unauthed_max: usize,
}

/// Counts who is inside. A clone is the same door.
#[derive(Debug, Clone)]
pub struct Door {
    caps: Caps,
    inside: Arc<Mutex<Inside>>,
}

#[derive(Debug, Default)]
struct Inside {
    connections: usize,
    unauthed: usize,
    per_address: HashMap<IpAddr, usize>,
}

/// One connection's place; dropping it leaves.
#[derive(Debug)]
pub struct Admission {
    door: Door,
    address: IpAddr,
    authed: bool,
}

impl Door {
    pub fn new(caps: Caps) -> Self {
        Self { caps, inside: Arc::default() }
    }

    /// Lets a connection in, or says which cap refuses it.
    pub fn admit(&self, address: IpAddr) -> Result<Admission, &'static Code> {
        let address = address.to_canonical();
        let mut inside = self.inside.lock();
        if inside.connections >= self.caps.connections_max {
            return Err(&code::TOO_MANY_CONNECTIONS);
        }
        if inside.unauthed >= self.caps.unauthed_max {
            return Err(&code::TOO_MANY_UNAUTHED);
        }
        let from_here = inside.per_address.entry(address).or_default();
        if *from_here >= self.caps.per_address_max {
            return Err(&code::TOO_MANY_FROM_ADDRESS);
        }
        *from_here += 1;
        inside.connections += 1;
        inside.unauthed += 1;
        Ok(Admission { door: self.clone(), address, authed: false })
    }

    pub fn connections(&self) -> usize {
        self.inside.lock().connections
    }
}

impl Admission {
    /// The session logged in: it no longer counts as a stranger.
    pub fn authed(&mut self) {
        if !self.authed {
            self.authed = true;
            self.door.inside.lock().unauthed -= 1;
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut inside = self.door.inside.lock();
        inside.connections -= 1;
        inside.unauthed -= usize::from(!self.authed);
        if let Some(count) = inside.per_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                inside.per_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: BI-010.
    #[test]
    fn each_cap_refuses_with_its_code_and_leaving_makes_room() {
        let door = Door::new(Caps { connections_max: 3, per_address_max: 2, unauthed_max: 2 });
        let (a, b): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let mut first = door.admit(a).unwrap();
        let mut second = door.admit("::ffff:10.0.0.1".parse().unwrap()).unwrap();
        assert_eq!(door.admit(b).unwrap_err(), &code::TOO_MANY_UNAUTHED);
        first.authed();
        second.authed();
        assert_eq!(door.admit(a).unwrap_err(), &code::TOO_MANY_FROM_ADDRESS);
        let third = door.admit(b).unwrap();
        assert_eq!(door.admit(b).unwrap_err(), &code::TOO_MANY_CONNECTIONS);
        drop((first, third));
        assert!(door.admit(a).is_ok());
        drop(second);
        assert_eq!((door.connections(), door.inside.lock().per_address.len()), (0, 0));
    }
}
