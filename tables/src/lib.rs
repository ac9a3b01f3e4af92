//! Records: what a game keeps, typed and in memory, with transactions over them, and where it is kept.
//!
//! | module | is |
//! |---|---|
//! | [`Db`] | a provider's database: [`Table`]s, and transactions by [`Db::run`] |
//! | [`tx`] | transactions |
//! | [`cache`] | the records in memory, and what may be done with each |
//! | [`flush`] | from commit to storage |
//! | [`arbiter`] | who may hold what, as a provider sees it |
//! | [`backend`] | storages |

pub mod arbiter;
mod auto_key;
pub mod backend;
pub mod cache;
mod db;
mod error;
pub mod flush;
mod key;
mod record;
mod shell;
#[doc(hidden)]
pub mod sim;
mod table;
pub mod tx;

pub use arbiter::{Arbiter, Hear, Heard, Mode, Word};
pub use auto_key::AutoKey;
pub use backend::{Backend, BackendError, Local, TableId};
pub use db::{Db, OpenError, Opening, Settings, Status};
pub use error::Error;
pub use key::Key;
pub use record::{Durability, Record};
pub use redirect_macros::Record;
pub use table::{Changed, Table};
pub use tx::{Level, Options, Tx};

/// What generated code refers to. Not for games.
#[doc(hidden)]
pub mod private {
    pub use crate::record::kept;
}
