//! An address to listen on, or none.

use std::borrow::Cow;
use std::net::SocketAddr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

const OFF: &str = "off";

/// A port that may be closed for good: `127.0.0.1:7711`, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Listen {
    Off,
    At(SocketAddr),
}

/// The operator's to mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address; write such as 127.0.0.1:7711, or off")]
pub struct BadListen(String);

impl Listen {
    pub fn addr(self) -> Option<SocketAddr> {
        match self {
            Listen::Off => None,
            Listen::At(addr) => Some(addr),
        }
    }
}

impl TryFrom<String> for Listen {
    type Error = BadListen;

    fn try_from(text: String) -> Result<Self, BadListen> {
        match text.as_str() {
            OFF => Ok(Listen::Off),
            addr => addr.parse().map(Listen::At).map_err(|_| BadListen(text)),
        }
    }
}

impl From<Listen> for String {
    fn from(listen: Listen) -> String {
        listen.addr().map_or_else(|| OFF.to_string(), |addr| addr.to_string())
    }
}

impl JsonSchema for Listen {
    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}
