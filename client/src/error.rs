//! What went wrong, whose fault it is, and whether trying again helps.

use std::time::Duration;

use base::{Blame, ModuleId, Retry, Span};
use wire::code::Code;

use crate::Report;

/// Why a request has no answer, or why there is no connection.
///
/// ```
/// # use client::Error;
/// fn react(error: &Error) -> &'static str {
///     match error.retry() {
///         base::Retry::Now | base::Retry::After(_) => "nothing was executed: ask again",
///         base::Retry::Unknown => "look at the state first, or repeat with the same request id",
///         base::Retry::Never => "tell the player",
///     }
/// }
/// # assert_eq!(react(&Error::Busy { waiting: 64 }), "nothing was executed: ask again");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the options are wrong: {0}")]
    BadOptions(String),
    #[error("no linkd can be reached at {addr}: {reason}; check the address and that it runs")]
    Unreachable { addr: String, reason: String },
    #[error("{addr} did not let us in within {within:?}; try again or another address")]
    ConnectTimeout { addr: String, within: Duration },
    /// Nothing was sent. Somebody else may be listening there, or its certificate must be renewed.
    #[error("{addr} can't prove that it is the server: {reason}")]
    Unproven { addr: String, reason: String },
    #[error("{addr} does not speak this client's wire: {reason}")]
    NotLinkd { addr: String, reason: String },
    /// [`Token::fresh`](crate::Token::fresh) gave none. Nothing was sent.
    #[error("there is no token for the login: {0}")]
    NoToken(String),
    /// The cluster or the game answered no. [`Error::game_code`] tells a game's own codes.
    #[error("refused: {name} ({code})")]
    Refused { code: i64, name: &'static str },
    /// Nothing was sent.
    #[error("the connection is closed: {0}")]
    Closed(Cause),
    /// Nothing was sent.
    #[error("the connection was lost and is being dialled again; nothing was sent")]
    Reconnecting,
    /// The request was sent, and its connection ended before the answer.
    #[error("the connection ended before the answer ({0}); the outcome is unknown")]
    Lost(Cause),
    #[error("no answer within {0:?}; the outcome is unknown")]
    Timeout(Duration),
    /// Nothing was sent.
    #[error("{waiting} requests or bytes wait already; nothing was sent")]
    Busy { waiting: usize },
    #[error("the message has {bytes} bytes, at most {bytes_max} may be sent; send less")]
    TooLarge { bytes: usize, bytes_max: u32 },
    #[error("the answer of {name} can't be read: {reason}; client and provider disagree about the message")]
    BadReply { name: &'static str, reason: String },
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    #[error("closed by us")]
    ByUs,
    #[error("closed by the server without a word")]
    ByServer,
    /// The report that came right before the end.
    #[error("ended by the server: {0}")]
    Reported(Report),
    #[error("nothing was heard for {0:?}")]
    Silent(Duration),
    #[error("broken: {0}")]
    Broken(String),
    /// A bug of the server, or something else listens there.
    #[error("the server sent what this wire doesn't know: {0}")]
    BadFrame(String),
}

const SOON: Retry = Retry::After(Span::millis(200));

impl Error {
    pub(crate) fn refused(code: i64) -> Self {
        let name = match Code::of_result(code) {
            Some(entry) => entry.name,
            None if game_code(code).is_some() => "a code of the game",
            None => "unknown code",
        };
        Self::Refused { code, name }
    }

    /// Whose fault it is, seen from the cluster: `Client` is this side, `Peer` another node or the network between,
    /// `Us` the cluster.
    pub fn blame(&self) -> Blame {
        match self {
            Error::BadOptions(_) | Error::TooLarge { .. } | Error::Busy { .. } | Error::NoToken(_) => {
                Blame::Client
            }
            Error::Refused { code, .. } => Code::of_result(*code).map_or(Blame::Client, |entry| entry.blame),
            Error::Closed(cause) | Error::Lost(cause) => cause.blame(),
            Error::BadReply { .. } | Error::NotLinkd { .. } | Error::Unproven { .. } => Blame::Us,
            Error::Unreachable { .. }
            | Error::ConnectTimeout { .. }
            | Error::Reconnecting
            | Error::Timeout(_) => Blame::Peer,
        }
    }

    /// Whether asking again can help. `Unknown` means that it may have been executed.
    pub fn retry(&self) -> Retry {
        match self {
            Error::BadOptions(_)
            | Error::NotLinkd { .. }
            | Error::Unproven { .. }
            | Error::TooLarge { .. }
            | Error::Closed(_) => Retry::Never,
            Error::Refused { code, .. } => Code::of_result(*code).map_or(Retry::Never, |entry| entry.retry),
            Error::Unreachable { .. } | Error::ConnectTimeout { .. } | Error::NoToken(_) => {
                Retry::After(Span::secs(1))
            }
            Error::Reconnecting | Error::Busy { .. } => SOON,
            Error::Lost(_) | Error::Timeout(_) | Error::BadReply { .. } => Retry::Unknown,
        }
    }

    /// The registry's entry, when the cluster refused: compare with `wire::code::NO_PROVIDER` and its like.
    pub fn code(&self) -> Option<&'static Code> {
        match self {
            Error::Refused { code, .. } => Code::of_result(*code),
            Error::Closed(cause) | Error::Lost(cause) => cause.code(),
            _ => None,
        }
    }

    /// The module and its own number, when the game refused.
    ///
    /// ```
    /// # use client::Error;
    /// let error = Error::Refused { code: 2 << 32 | 7, name: "a code of the game" };
    /// assert_eq!(error.game_code(), Some((base::ModuleId(2), 7)));
    /// ```
    pub fn game_code(&self) -> Option<(ModuleId, i32)> {
        match self {
            Error::Refused { code, .. } => game_code(*code),
            _ => None,
        }
    }
}

fn game_code(code: i64) -> Option<(ModuleId, i32)> {
    let module = ModuleId(i32::try_from(code >> 32).ok()?);
    (module.0 > 0).then_some((module, code as i32))
}

impl Cause {
    pub fn blame(&self) -> Blame {
        match self {
            Cause::ByUs => Blame::Client,
            Cause::ByServer | Cause::Silent(_) | Cause::Broken(_) => Blame::Peer,
            Cause::Reported(report) => report.code().map_or(Blame::Us, |entry| entry.blame),
            Cause::BadFrame(_) => Blame::Us,
        }
    }

    /// Whether connecting again can help.
    pub fn retry(&self) -> Retry {
        match self {
            Cause::ByUs | Cause::BadFrame(_) => Retry::Never,
            Cause::Reported(report) => report.code().map_or(Retry::Never, |entry| entry.retry),
            Cause::ByServer | Cause::Silent(_) | Cause::Broken(_) => Retry::Now,
        }
    }

    /// The registry's entry that the server gave as its reason.
    pub fn code(&self) -> Option<&'static Code> {
        match self {
            Cause::Reported(report) => report.code(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::code;

    #[test]
    fn a_refusal_says_what_the_registry_says() {
        let error = Error::refused(code::NO_PROVIDER.result());
        assert_eq!(error, Error::Refused { code: -102, name: "NO_PROVIDER" });
        assert_eq!((error.code(), error.game_code()), (Some(&code::NO_PROVIDER), None));
        assert_eq!((error.blame(), error.retry()), (Blame::Us, Retry::After(Span::secs(1))));
    }

    #[test]
    fn a_games_code_is_split_and_never_taken_for_ours() {
        let error = Error::refused((7 << 32) | 0xffff_ffff);
        assert_eq!(error.game_code(), Some((ModuleId(7), -1)));
        assert_eq!((error.code(), error.retry()), (None, Retry::Never));
        for ours in [-19, 1, 3, -230, i64::MIN, i64::from(u32::MAX)] {
            assert_eq!(Error::refused(ours).game_code(), None, "{ours}");
        }
    }

    #[test]
    fn a_kicked_client_stays_away_and_a_drained_one_comes_back() {
        let reported = |code: &Code| {
            Cause::Reported(Report { from: 0, number: code.number.into(), text: String::new() })
        };
        assert_eq!(reported(&code::KICKED).retry(), Retry::Never);
        assert_eq!(reported(&code::SHUTTING_DOWN).retry(), Retry::Now);
        assert_eq!(Error::Lost(reported(&code::KICKED)).retry(), Retry::Unknown);
    }
}
