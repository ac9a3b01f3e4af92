//! What every process of the cluster shares, so that each service is only its core and one loop.
//!
//! | module | is |
//! |---|---|
//! | [`lifecycle`], [`shutdown`] | Running, Draining, Closed: the order of a stop and its budgets |
//! | [`config`] | files, includes, profiles, environment and flags in one typed value |
//! | [`telemetry`] | logs and metrics |
//! | [`ops`] | the HTTP port for probes and operators |
//! | [`listen`] | bounded listeners for axum and tonic |
//! | [`home`] | on which threads the parts of a service run |
//! | [`clock`] | the process's monotonic clock, and the one reader of the wall clock |
//! | [`tls`] | certificates in files: judged at the start, read again when they change |
//! | [`files`] | settings, certificates and keys, read bounded; secrets only from their owner |
//! | [`descriptors`] | how many files, and so connections, the process may have |
//! | [`signal`] | SIGTERM, SIGINT and SIGHUP |
//! | [`directory`] | the client of the directory |
//! | [`admin`] | what an operator asks of a node over tonic |
//! | [`stub`] | generated tonic code |

pub mod admin;
pub mod clock;
pub mod config;
pub mod descriptors;
pub mod directory;
pub mod files;
pub mod home;
pub mod lifecycle;
pub mod listen;
pub mod ops;
pub mod shutdown;
pub mod signal;
pub mod stub;
pub mod telemetry;
pub mod tls;

pub use clock::Clock;
pub use directory::{Directory, Instance, Join, Service, Services};
pub use home::Home;
pub use shutdown::{Pass, Shutdown};
