//! Whether a balancer stands in front, and which addresses are balancers.

use std::borrow::Cow;
use std::net::IpAddr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Whether each client connection begins with a PROXY header, version 1 or 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProxyProtocol {
    Off,
    Required,
}

/// An address, or all addresses that begin alike: `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Net {
    addr: IpAddr,
    bits: u8,
}

/// The operator's to mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no net; write such as 10.0.0.0/8 or 192.0.2.7")]
pub struct BadNet(String);

impl Net {
    pub fn contains(&self, addr: IpAddr) -> bool {
        let first_bits = |bytes: &[u8]| {
            bytes.iter().fold(0u128, |sum, &byte| sum << 8 | u128::from(byte)) << (128 - 8 * bytes.len())
        };
        let (ours, theirs) = match (self.addr, addr.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (first_bits(&a.octets()), first_bits(&b.octets())),
            (IpAddr::V6(a), IpAddr::V6(b)) => (first_bits(&a.octets()), first_bits(&b.octets())),
            _ => return false,
        };
        (ours ^ theirs).leading_zeros() >= self.bits.into()
    }
}

impl TryFrom<String> for Net {
    type Error = BadNet;

    fn try_from(text: String) -> Result<Self, BadNet> {
        let (addr, bits) = text.split_once('/').map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
        let Ok(addr) = addr.parse::<IpAddr>() else { return Err(BadNet(text)) };
        let whole = if addr.is_ipv4() { 32 } else { 128 };
        match bits.map_or(Ok(whole), str::parse) {
            Ok(bits) if bits <= whole => Ok(Net { addr, bits }),
            _ => Err(BadNet(text)),
        }
    }
}

impl From<Net> for String {
    fn from(net: Net) -> String {
        format!("{}/{}", net.addr, net.bits)
    }
}

impl JsonSchema for Net {
    fn schema_name() -> Cow<'static, str> {
        "Net".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_net_holds_what_begins_like_it() {
        let holds =
            |net: &str, addr: &str| Net::try_from(net.to_string()).unwrap().contains(addr.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.1.2") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.1.1") && !holds("10.0.0.0/8", "::1"));
        assert!(holds("192.0.2.7", "192.0.2.7") && !holds("192.0.2.7", "192.0.2.8"));
        assert!(holds("0.0.0.0/0", "8.8.8.8") && holds("2001:db8::/33", "2001:db8:7fff::1"));
        assert!(!holds("2001:db8::/33", "2001:db8:8000::1"));
        for bad in ["", "10.0.0.0/33", "ten/8", "10.0.0.0/", "::/129"] {
            assert!(Net::try_from(bad.to_string()).is_err(), "{bad}");
        }
    }
}
