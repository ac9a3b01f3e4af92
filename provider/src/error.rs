//! What a handler or a call failed with: a game's own code, or one of the framework's.

use std::fmt;

use base::{Blame, ModuleId, Retry};
use net::calls::CallError;
use net::outbox::NotQueued;
use wire::code::{self, Code};

use crate::start::StartError;

/// `std::result::Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something failed. A handler's error becomes the result code of its reply; the text stays in the log.
///
/// ```
/// use linkstead::{Error, code};
///
/// let broke = Error::code(3, "not enough gold");
/// assert_eq!(broke.result(7), (7 << 32) | 3);
/// let busy = Error::framework(&code::BUSY, "the room is full of requests");
/// assert_eq!(busy.result(7), -19);
/// ```
#[derive(Clone, thiserror::Error)]
pub enum Error {
    /// The game refuses, with a number of its own. What it means and whether to retry is the game's to say.
    #[error("code {code}: {text}")]
    Game { code: i32, text: String },
    /// The framework refuses; the code says whose fault it is, whether to retry and what to do.
    #[error("{}: {text}; {}", code.name, code.remedy)]
    Framework { code: &'static Code, text: String },
    /// The provider could not start. The operator's to mend.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// As the text for people: `main` prints an error this way.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// A game's own code, any number but 0. The client receives `(module << 32) | code` as the result of its request
    /// and never the text, which is for the log.
    pub fn code(code: i32, text: impl Into<String>) -> Self {
        Self::Game { code, text: text.into() }
    }

    /// One of the framework's codes, with what happened in this case.
    pub fn framework(code: &'static Code, text: impl Into<String>) -> Self {
        Self::Framework { code, text: text.into() }
    }

    /// The RPC result that tells a client of `module` about it.
    pub fn result(&self, module: i32) -> i64 {
        match self {
            Self::Game { code, .. } => ((module as i64) << 32) | (*code as u32 as i64),
            Self::Framework { code, .. } => code.result(),
            Self::Start(_) => code::EXCEPTION.result(),
        }
    }

    /// Whose fault it is. A game's own code blames the client: the request was understood and refused.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Game { .. } => Blame::Client,
            Self::Framework { code, .. } => code.blame,
            Self::Start(_) => Blame::Us,
        }
    }

    /// Whether the same request may be sent again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Framework { code, .. } => code.retry,
            Self::Game { .. } | Self::Start(_) => Retry::Never,
        }
    }

    pub(crate) fn result_in(&self, module: ModuleId) -> i64 {
        self.result(module.0)
    }
}

impl From<tables::Error> for Error {
    fn from(error: tables::Error) -> Self {
        Self::framework(error.code(), error.to_string())
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::framework(error.code(), error.to_string())
    }
}

impl From<NotQueued> for Error {
    fn from(error: NotQueued) -> Self {
        let code = match error {
            NotQueued::Full { .. } => &code::BUSY,
            NotQueued::Closed => &code::UNAVAILABLE,
        };
        Self::framework(code, error.to_string())
    }
}
