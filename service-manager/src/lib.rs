//! The directory service: who is alive, what they offer, under which epoch.
//!
//! [`Directory`] decides everything; [`server`] carries its messages over tonic. It keeps its state in memory for now,
//! so a restart begins empty and *warming*, and whoever was here comes back by itself.

pub mod config;
pub mod directory;
pub mod server;

pub use config::{PRESETS, ServiceManagerConfig};
pub use directory::Directory;
pub use server::{ServeError, run};
