//! The arbiter of records: which provider may hold which record, to read or to change it.
//!
//! | module | is |
//! |---|---|
//! | [`arbiter`] | the core, which decides; it knows time, sessions and keys, and no value of any record |
//! | [`server`] | the shell: providers' connections in front of the core |
//! | [`config`] | the `[global_cache]` section |

pub mod arbiter;
pub mod config;
pub mod server;

pub use arbiter::Arbiter;
pub use config::{Config, PRESETS};
pub use server::{Env, Server, StartError, start};
