//! The arbiter of records: which provider may hold which record, to read or to change it.
//!
//! | module | is |
//! |---|---|
//! | [`arbiter`] | the core, which decides; it knows time, sessions and keys, and no value of any record |
//! | [`server`] | the shell: providers' connections in front of the core |
//! | [`hot`] | which records are waited for most |
//! | [`operator`], [`show`] | what an operator may ask and see |
//! | [`config`] | the `[global_cache]` section |

pub mod arbiter;
pub mod config;
pub mod hot;
pub mod operator;
pub mod server;
pub mod show;

pub use arbiter::Arbiter;
pub use config::{Config, PRESETS};
pub use operator::Operator;
pub use server::{Env, SERVICE, Server, StartError, start};
