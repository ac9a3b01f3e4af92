//! Which port each part of `up` listens on.

use std::net::{Ipv4Addr, SocketAddr};

/// Ports counted from a base, 100 further for each instance; or whatever is free.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    base: u16,
}

impl Ports {
    /// A base of 0 takes free ports.
    pub fn new(base: u16) -> Self {
        Self { base }
    }

    fn at(self, offset: u16, instance: u16) -> SocketAddr {
        let port = match self.base {
            0 => 0,
            base => base.saturating_add(offset).saturating_add(instance * 100),
        };
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    pub fn directory(self) -> SocketAddr {
        self.at(20, 0)
    }

    pub fn directory_ops(self) -> SocketAddr {
        self.at(0, 0)
    }

    pub fn arbiter(self) -> SocketAddr {
        self.at(30, 0)
    }

    pub fn arbiter_ops(self) -> SocketAddr {
        self.at(1, 0)
    }

    pub fn linkd_clients(self, instance: u16) -> SocketAddr {
        self.at(10, instance)
    }

    pub fn linkd_websockets(self, instance: u16) -> SocketAddr {
        self.at(11, instance)
    }

    pub fn linkd_providers(self, instance: u16) -> SocketAddr {
        self.at(12, instance)
    }

    pub fn linkd_ops(self, instance: u16) -> SocketAddr {
        self.at(2, instance)
    }

    pub fn web(self) -> SocketAddr {
        self.at(80, 0)
    }

    pub fn provider_ops(self, instance: u16) -> SocketAddr {
        self.at(3, instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_stand_a_hundred_apart() {
        let ports = Ports::new(7700);
        assert_eq!((ports.linkd_clients(0).port(), ports.linkd_clients(1).port()), (7710, 7810));
        assert_eq!((ports.linkd_websockets(0).port(), ports.linkd_websockets(1).port()), (7711, 7811));
        assert_eq!((ports.directory().port(), ports.provider_ops(1).port()), (7720, 7803));
        assert_eq!((ports.arbiter().port(), ports.arbiter_ops().port()), (7730, 7701));
        assert_eq!(Ports::new(0).linkd_ops(3).port(), 0);
    }
}
