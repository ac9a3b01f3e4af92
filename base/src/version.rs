//! The game's own version, `a.b.c.d`: main versions (`a`) don't mix, the rest is compatible.

use std::fmt;
use std::str::FromStr;

/// Four 16-bit parts in one number, most significant first. 0 means "not stated" and matches every main version, on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AppVersion(pub u64);

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version; write up to four numbers of 0 to 65535 with dots between, such as 1.2.0.0")]
pub struct BadVersion(String);

impl AppVersion {
    pub const fn new(a: u16, b: u16, c: u16, d: u16) -> Self {
        Self((a as u64) << 48 | (b as u64) << 32 | (c as u64) << 16 | d as u64)
    }

    /// The part across which nothing is compatible.
    pub const fn main(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Whether a client of `self` may be served by a provider of `provider`: same main version, or one of them
    /// states none.
    pub const fn matches(self, provider: AppVersion) -> bool {
        self.0 == 0 || provider.0 == 0 || self.main() == provider.main()
    }
}

impl FromStr for AppVersion {
    type Err = BadVersion;

    fn from_str(text: &str) -> Result<Self, BadVersion> {
        if text.is_empty() {
            return Ok(Self(0));
        }
        let bad = || BadVersion(text.chars().take(32).collect());
        let mut parts = [0u16; 4];
        let mut given = text.split('.');
        for part in &mut parts {
            let Some(word) = given.next() else { break };
            if word.is_empty() || !word.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad());
            }
            *part = word.parse().map_err(|_| bad())?;
        }
        match given.next() {
            Some(_) => Err(bad()),
            None => Ok(Self::new(parts[0], parts[1], parts[2], parts[3])),
        }
    }
}

impl fmt::Display for AppVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0;
        write!(f, "{}.{}.{}.{}", v >> 48, v >> 32 & 0xffff, v >> 16 & 0xffff, v & 0xffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: BI-041.
    #[test]
    fn versions_are_read_strictly() {
        assert_eq!("1.2.3.4".parse(), Ok(AppVersion::new(1, 2, 3, 4)));
        assert_eq!("7".parse(), Ok(AppVersion::new(7, 0, 0, 0)));
        assert_eq!("".parse(), Ok(AppVersion(0)));
        for bad in ["99999999999.x", "1.2.3.4.5", "1..2", "+1", "65536", "1.", " 1"] {
            assert!(bad.parse::<AppVersion>().is_err(), "{bad}");
        }
        assert_eq!(AppVersion::new(1, 2, 3, 4).to_string(), "1.2.3.4");
    }

    #[test]
    fn an_unstated_version_matches_every_other() {
        assert!(AppVersion(0).matches(AppVersion::new(3, 0, 0, 0)));
        assert!(AppVersion::new(3, 0, 0, 0).matches(AppVersion(0)));
        assert!(AppVersion::new(1, 9, 0, 0).matches(AppVersion::new(1, 0, 0, 0)));
        assert!(!AppVersion::new(2, 0, 0, 0).matches(AppVersion::new(1, 0, 0, 0)));
    }
}
