//! Times and sizes as people write them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time: `5s`, `200ms`, `1m 30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub Duration);

/// A number of bytes: `64KiB`, `2MB`, or a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size(pub u64);

/// A text that is not of the unit it should be. The operator's to mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUnit {
    #[error("{0:?} is not a time; write such as 5s, 200ms or 1m30s")]
    Time(String),
    #[error("{0:?} is not a size; write such as 64KiB, 2MB or 4096")]
    Size(String),
}

impl Time {
    pub const fn millis(n: u64) -> Self {
        Self(Duration::from_millis(n))
    }

    pub const fn secs(n: u64) -> Self {
        Self(Duration::from_secs(n))
    }

    pub fn span(self) -> Span {
        self.0.into()
    }
}

impl Size {
    pub const fn kib(n: u64) -> Self {
        Self(n * 1024)
    }

    pub const fn mib(n: u64) -> Self {
        Self(n * 1024 * 1024)
    }

    /// In bytes; everything addressable on a machine smaller than the number.
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for Time {
    type Err = BadUnit;

    fn from_str(text: &str) -> Result<Self, BadUnit> {
        humantime::parse_duration(text).map(Self).map_err(|_| BadUnit::Time(text.to_owned()))
    }
}

impl FromStr for Size {
    type Err = BadUnit;

    fn from_str(text: &str) -> Result<Self, BadUnit> {
        let size: Result<bytesize::ByteSize, _> = text.parse();
        size.map(|size| Self(size.as_u64())).map_err(|_| BadUnit::Size(text.to_owned()))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl fmt::Display for Size {
    /// Exact: the largest binary unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.iter().find(|(bits, _)| self.0 != 0 && self.0.is_multiple_of(1 << bits)) {
            Some((bits, unit)) => write!(f, "{}{unit}", self.0 >> bits),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// Reads a text, and for sizes a bare number.
struct Reader<T> {
    expecting: &'static str,
    number: Option<fn(u64) -> T>,
}

impl<T: FromStr<Err = BadUnit>> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let refused = || E::invalid_type(de::Unexpected::Unsigned(number), &self);
        self.number.map(|make| make(number)).ok_or_else(refused)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
        }
    }
}

macro_rules! unit {
    ($name:ident, $format:literal, $expecting:literal, $number:expr) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Reader { expecting: $expecting, number: $number })
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": $format })
            }
        }
    };
}

unit!(Time, "time", "a time such as \"5s\" or \"200ms\"", None);
unit!(Size, "size", "a size such as \"64KiB\"", Some(Size));

/// A text that is never shown: it prints as `***` wherever the configuration is printed.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for whoever must send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.0.is_empty() { "" } else { "***" })
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "secret", "writeOnly": true })
    }
}
