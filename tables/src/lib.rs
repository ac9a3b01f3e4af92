//! Records: what a game keeps, and where it is kept.

pub mod arbiter;
pub mod backend;
mod key;
mod record;

pub use arbiter::{Arbiter, Hear, Heard, Mode, Word};
pub use backend::{Backend, BackendError, Local, TableId};
pub use key::Key;
pub use record::{Durability, Record};
pub use redirect_macros::Record;

/// What generated code refers to. Not for games.
#[doc(hidden)]
pub mod private {
    pub use crate::record::kept;
}
