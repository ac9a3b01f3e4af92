//! What every error of ours says beside what happened: whose fault it is and whether to try again.

use std::any::Any;

use crate::Span;

/// Whose fault an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blame {
    /// The player's side sent something it must not.
    Client,
    /// Another node of the cluster, or the network to it.
    Peer,
    /// This process.
    Us,
}

/// Whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retry {
    /// The same request fails the same way.
    Never,
    /// Nothing was executed; try again at once.
    Now,
    /// Nothing was executed; try again after this long.
    After(Span),
    /// It may have been executed: only a request that carries a request id may be repeated.
    Unknown,
}

impl std::fmt::Display for Blame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Blame::Client => "client",
            Blame::Peer => "peer",
            Blame::Us => "us",
        })
    }
}

impl std::fmt::Display for Retry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Retry::Never => f.write_str("no"),
            Retry::Now => f.write_str("at once"),
            Retry::After(span) => write!(f, "after {span}"),
            Retry::Unknown => f.write_str("only with a request id"),
        }
    }
}

/// What a panic says, if it says something.
pub fn panic_text(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}
