//! How many may be inside: connections in all, per address, and not yet logged in. Shared by all workers. Who is turned
//! away before a session began is counted here, by cause.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use net::strangers::PerAddress;
use parking_lot::Mutex;
use wire::code::{self, Code};

/// The caps of one linkd.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    pub connections_max: usize,
    pub per_address_max: usize,
    pub unauthed_max: usize,
}

/// Why a connection became no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turned {
    TooManyConnections,
    TooManyUnauthed,
    TooManyFromAddress,
    /// Not one of the balancers that are believed.
    ProxyUntrusted,
    ProxyMissing,
    ProxyUnreadable,
    Tls,
    /// No request for a WebSocket, or not from a page that may.
    Upgrade,
    HandshakeTimeout,
    /// The client left before it was inside.
    Left,
    /// The worker's mailbox was full.
    Handover,
    Stopping,
}

impl Turned {
    pub const ALL: [Turned; 12] = [
        Turned::TooManyConnections,
        Turned::TooManyUnauthed,
        Turned::TooManyFromAddress,
        Turned::ProxyUntrusted,
        Turned::ProxyMissing,
        Turned::ProxyUnreadable,
        Turned::Tls,
        Turned::Upgrade,
        Turned::HandshakeTimeout,
        Turned::Left,
        Turned::Handover,
        Turned::Stopping,
    ];

    /// The counter's label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Turned::TooManyConnections => "too_many_connections",
            Turned::TooManyUnauthed => "too_many_unauthed",
            Turned::TooManyFromAddress => "too_many_from_address",
            Turned::ProxyUntrusted => "proxy_untrusted",
            Turned::ProxyMissing => "proxy_missing",
            Turned::ProxyUnreadable => "proxy_unreadable",
            Turned::Tls => "tls",
            Turned::Upgrade => "upgrade",
            Turned::HandshakeTimeout => "handshake_timeout",
            Turned::Left => "left",
            Turned::Handover => "handover",
            Turned::Stopping => "stopping",
        }
    }

    /// What the client is told, if a code exists for it.
    pub const fn code(self) -> Option<&'static Code> {
        match self {
            Turned::TooManyConnections => Some(&code::TOO_MANY_CONNECTIONS),
            Turned::TooManyUnauthed => Some(&code::TOO_MANY_UNAUTHED),
            Turned::TooManyFromAddress => Some(&code::TOO_MANY_FROM_ADDRESS),
            Turned::HandshakeTimeout => Some(&code::HANDSHAKE_TIMEOUT),
            Turned::Stopping => Some(&code::SHUTTING_DOWN),
            _ => None,
        }
    }
}

/// Counts who is inside. A clone is the same door.
#[derive(Debug, Clone)]
pub struct Door {
    caps: Caps,
    inside: Arc<Mutex<Inside>>,
    turned: Arc<[AtomicU64; Turned::ALL.len()]>,
}

#[derive(Debug, Default)]
struct Inside {
    connections: usize,
    unauthed: usize,
    per_address: PerAddress,
}

/// One connection's place; dropping it leaves.
#[derive(Debug)]
pub struct Admission {
    door: Door,
    /// `None`: a balancer has not said yet whose connection it is.
    address: Option<IpAddr>,
    authed: bool,
}

impl Door {
    pub fn new(caps: Caps) -> Self {
        Self { caps, inside: Arc::default(), turned: Arc::default() }
    }

    /// Lets a connection in, or says which cap refuses it. Who refuses counts it.
    pub fn admit(&self, address: IpAddr) -> Result<Admission, Turned> {
        let mut admission = self.admit_unknown()?;
        admission.comes_from(address)?;
        Ok(admission)
    }

    /// Lets a connection in whose address is not known yet: it comes through a balancer.
    pub fn admit_unknown(&self) -> Result<Admission, Turned> {
        let mut inside = self.inside.lock();
        if inside.connections >= self.caps.connections_max {
            return Err(Turned::TooManyConnections);
        }
        if inside.unauthed >= self.caps.unauthed_max {
            return Err(Turned::TooManyUnauthed);
        }
        inside.connections += 1;
        inside.unauthed += 1;
        Ok(Admission { door: self.clone(), address: None, authed: false })
    }

    /// Counts one that was turned away.
    pub fn turned_away(&self, why: Turned) {
        if let Some(index) = Turned::ALL.iter().position(|&turned| turned == why) {
            self.turned[index].fetch_add(1, Relaxed);
        }
    }

    /// How many were turned away so far, by cause.
    pub fn turned(&self) -> BTreeMap<&'static str, u64> {
        Turned::ALL.iter().zip(self.turned.iter()).map(|(why, n)| (why.as_str(), n.load(Relaxed))).collect()
    }

    pub fn connections(&self) -> usize {
        self.inside.lock().connections
    }
}

impl Admission {
    /// The client's address is known now: its own cap may refuse it.
    pub fn comes_from(&mut self, address: IpAddr) -> Result<(), Turned> {
        debug_assert!(self.address.is_none());
        if !self.door.inside.lock().per_address.enter(address, self.door.caps.per_address_max) {
            return Err(Turned::TooManyFromAddress);
        }
        self.address = Some(address);
        Ok(())
    }

    pub fn door(&self) -> Door {
        self.door.clone()
    }

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
        if let Some(address) = self.address {
            inside.per_address.leave(address);
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
        assert_eq!(door.admit(b).unwrap_err(), Turned::TooManyUnauthed);
        first.authed();
        second.authed();
        assert_eq!(door.admit(a).unwrap_err(), Turned::TooManyFromAddress);
        let third = door.admit(b).unwrap();
        assert_eq!(door.admit(b).unwrap_err(), Turned::TooManyConnections);
        drop((first, third));
        assert!(door.admit(a).is_ok());
        drop(second);
        let mut behind = door.admit_unknown().unwrap();
        assert_eq!(door.connections(), 1);
        behind.comes_from(a).unwrap();
        drop(behind);
        door.turned_away(Turned::Tls);
        assert_eq!(door.turned()["tls"], 1);
        assert_eq!((door.connections(), door.inside.lock().per_address.len()), (0, 0));
    }
}
