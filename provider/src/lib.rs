//! What a game links: its modules become a provider that gateways route requests to.
//!
//! A module is a type with an `impl` block under [`#[module]`](macro@module); each `#[handler]` in it is one request of
//! clients. [`provider`] makes a program of them.
//!
//! ```no_run
//! use linkstead::{Cx, Result, module};
//!
//! #[derive(Clone, PartialEq, prost::Message)]
//! pub struct Say { #[prost(string, tag = "1")] pub text: String }
//! #[derive(Clone, PartialEq, prost::Message)]
//! pub struct Said { #[prost(string, tag = "1")] pub who: String, #[prost(string, tag = "2")] pub text: String }
//!
//! pub struct Chat;
//!
//! #[module(id = 7, choice = "hash_account", pushes(Said))]
//! impl Chat {
//!     /// Everybody who is connected to any gateway hears it.
//!     #[handler(level = "sheddable")]
//!     async fn say(&self, cx: &Cx, say: Say) -> Result<()> {
//!         cx.broadcast(&Said { who: cx.account().to_string(), text: say.text });
//!         Ok(())
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     linkstead::provider("chat").module(|_| Ok(Chat)).run().await
//! }
//! ```
//!
//! Requests of one session run one after another, in the order the client sent them, and the end of the session comes
//! last; `#[handler(parallel)]` overlaps. Handlers of different sessions run at once. A handler that does not wait runs
//! on the thread that received it, so it must not block: no `std::fs`, no `block_in_place`; put long computations into
//! `tokio::task::spawn_blocking`. A handler that panics answers EXCEPTION and harms nobody else.

mod answer;
mod auth;
mod bind;
mod broadcast;
mod config;
mod conn;
mod conns;
mod control;
mod counted;
mod cx;
mod dial;
mod disable;
mod discovery;
mod error;
mod fast;
mod hub;
mod intake;
mod job;
mod kick;
pub mod kicks;
pub mod linkds;
mod links;
pub mod load;
mod meters;
mod module;
mod online;
pub mod overload;
mod records;
mod room;
mod run;
mod running;
mod send;
mod session;
pub mod sessions;
mod start;
mod table;
mod threads;
mod tx;
mod types;

pub use auth::{AuthRequest, Authenticator};
pub use base::{Account, AppVersion, Epoch, LinkSid, NodeId, Role, Secret, ServerId};
pub use broadcast::{Audience, Reached};
pub use config::{Choice, Config, ModuleConfig, Overload, PRESETS};
pub use cx::Cx;
pub use disable::Acknowledged;
pub use error::{Error, Result};
pub use linkds::Linkd;
pub use links::{Checked, LinkRef, Links};
pub use module::{Descriptor, Handlers, Module, Payload, Protocol};
pub use node::Directory;
pub use node::config::BadSetting;
pub use online::Online;
pub use records::{Arbiter, BackendKind, RecordsConfig};
pub use redirect_macros::{handler, module, on_broken};
pub use run::{Operator, Root};
pub use running::{Running, Status};
pub use start::{Builder, Env, Linkds, OnlineHandle, Setup, StartError};
pub use tables::{AutoKey, Changed, Db, Durability, Key, Record, Table, TableId};
pub use tables::{Level as Isolation, Options as TxOptions};
pub use tx::Tx;
pub use types::TypesError;
pub use wire::code;
pub use wire::{Code, Level, Notify, Push, Rpc};

/// Begins a provider called `name`, which names its program and, with the server id, its node: `chat-1`.
pub fn provider(name: &str) -> Builder {
    Builder::new(name)
}

/// What generated code refers to. Not for games.
#[doc(hidden)]
pub mod private {
    pub use base::TypeId;
    pub use base::hash::hash32;
    pub use tables::private::kept;

    pub use crate::table::type_id;

    /// Whether a number stands in a list.
    pub const fn contains(list: &[i32], id: i32) -> bool {
        let mut at = 0;
        while at < list.len() {
            if list[at] == id {
                return true;
            }
            at += 1;
        }
        false
    }
}
