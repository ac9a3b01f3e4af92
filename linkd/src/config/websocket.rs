//! The `[linkd.websocket]` section.

use net::ws::Origins;
use node::config::{BadSetting, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::frame::HEADER_BYTES;

use super::Listen;

/// The origin that stands for all of them.
const ANY: &str = "*";

/// How a WebSocket begins and what it may carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebSocket {
    /// The sites whose pages may connect, such as `https://game.example`; `*` is every site. Empty: every site on
    /// loopback, and the start is refused elsewhere. Only browsers say where a page came from, so this keeps foreign
    /// pages out and nothing else.
    pub origins: Vec<String>,
    /// The largest message a client may send, all its fragments together. A message may carry many frames.
    pub message_max: Size,
}

impl Default for WebSocket {
    fn default() -> Self {
        Self { origins: Vec::new(), message_max: Size::kib(256) }
    }
}

impl WebSocket {
    pub(super) fn check(&self, listen: &Listen, frame_max: Size) -> Result<(), BadSetting> {
        let bad = |key, why: String| Err(BadSetting::new("linkd", key, why));
        let Some(addr) = listen.addr() else { return Ok(()) };
        if self.origins.is_empty() && !addr.ip().is_loopback() {
            let why = format!("beyond loopback ({addr}) the sites that may connect are listed, or \"*\"");
            return bad("websocket.origins", why);
        }
        let odd = |origin: &&String| *origin != ANY && !origin.contains("://") && *origin != "null";
        if let Some(origin) = self.origins.iter().find(odd) {
            let why = format!("{origin:?} is no origin; write such as \"https://game.example\"");
            return bad("websocket.origins", why);
        }
        if self.message_max.0 < frame_max.0 + HEADER_BYTES as u64 {
            let why = format!("must hold a frame of linkd.frame_max ({frame_max}) and its header");
            return bad("websocket.message_max", why);
        }
        Ok(())
    }

    pub fn origins(&self) -> Origins {
        match self.origins.is_empty() || self.origins.iter().any(|origin| origin == ANY) {
            true => Origins::Any,
            false => Origins::Only(self.origins.clone().into()),
        }
    }
}
