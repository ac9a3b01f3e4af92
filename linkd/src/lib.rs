//! The gateway: holds the players' connections and routes each protocol by its module. It has no game state and no
//! database.
//!
//! | module | is |
//! |---|---|
//! | [`config`] | the `[linkd]` section |
//! | [`gateway`] | one linkd in a process: start, status, kick, stop |
//! | [`crew`] | its workers |
//! | [`acceptor`] | the listeners |
//! | [`auth`] | who players are: tickets, tokens, the game's own judgement |
//! | [`admission`] | the door: how many may be inside |
//! | [`worker`] | one thread: connections in, bytes out |
//! | [`router`] | the core: where each frame goes |
//! | [`operator`], `status` | what an operator may ask and see |
//! | `groups` | which modules there are at all |
//! | [`counters`], `meters`, [`mailbox`] | what workers count and monitoring sees, and how threads reach them |

pub mod acceptor;
pub mod admission;
pub mod auth;
pub mod config;
pub mod counters;
pub mod crew;
pub mod gateway;
mod groups;
pub mod mailbox;
mod meters;
pub mod operator;
pub mod router;
mod status;
pub mod worker;

pub use config::Config;
pub use gateway::{Env, Linkd, StartError, start, start_over};
pub use operator::Operator;
