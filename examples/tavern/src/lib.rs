//! Chat rooms as a game team would write them: a module that guests log in to, rooms that live on the provider their
//! name hashes to, and what one guest does to another wherever that one sits.
//!
//! | file | is |
//! |---|---|
//! | [`messages`] | what clients and modules say to each other |
//! | [`codes`] | the tavern's own refusals |
//! | [`hall`] | the rooms of one provider: pure, tested without a network |
//! | [`door`] | module `Tavern`: login, announcements |
//! | [`rooms`] | module `Rooms`: enter, leave, say, who |
//! | [`guests`] | module `Guests`: whisper, kick |
//! | [`regular`] | the bots that load it |
//! | [`chat`] | the terminal |
//! | [`web`] | the page for browsers |

pub mod chat;
pub mod codes;
pub mod door;
pub mod guests;
pub mod hall;
pub mod messages;
pub mod regular;
pub mod rooms;
pub mod web;

pub use door::Tavern;
pub use guests::Guests;
pub use regular::bots;
pub use rooms::Rooms;

/// The account that may announce and kick.
pub const KEEPER: &str = "keeper";

/// The provider that serves the tavern, ready to run.
pub fn provider() -> linkstead::Builder {
    linkstead::provider("tavern")
        .descriptors(messages::DESCRIPTORS)
        .module(|_| Ok(Tavern::default()))
        .module(|_| Ok(Rooms::default()))
        .module(|_| Ok(Guests))
}
