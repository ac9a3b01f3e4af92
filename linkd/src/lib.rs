//! The gateway: holds the players' connections and routes each protocol by its module.

pub mod admission;
pub mod counters;
pub mod mailbox;
pub mod router;
pub mod worker;
