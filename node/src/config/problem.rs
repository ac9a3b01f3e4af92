//! What can be wrong with a configuration, said so that it can be found and mended.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Line 0 is the file as a whole.
    File { path: Arc<Path>, line: usize },
    /// An environment variable, by name.
    Env(String),
    /// A `--set` flag as it was written.
    Flag(String),
    /// The values that come with a built-in profile.
    Profile(String),
    /// Nobody wrote it: the default.
    Default,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: 0 } => write!(f, "{}", path.display()),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Env(name) => write!(f, "environment {name}"),
            Self::Flag(text) => write!(f, "--set {text}"),
            Self::Profile(name) => write!(f, "built-in profile {name}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One mistake in a configuration. It is always the operator's to mend; starting again without a change never helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("{}: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("{place}: {why}")]
    Syntax { place: Place, why: String },
    #[error("{place}: {key}: unknown key{}", nearest.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    UnknownKey { place: Place, key: String, nearest: Option<String> },
    #[error("{place}: {key}: {why}")]
    BadValue { place: Place, key: String, why: String },
    #[error("{place}: node.profile: no profile is called {name:?}; known are {known}")]
    UnknownProfile { place: Place, name: String, known: String },
}

/// A setting that can't work, as a section judges itself. Whoever wrote it must change it; starting again does not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {why}")]
pub struct BadSetting {
    /// With its section: `linkd.frame_max`.
    pub key: String,
    pub why: String,
}

impl BadSetting {
    pub fn new(section: &str, key: &str, why: impl Into<String>) -> Self {
        Self { key: format!("{section}.{key}"), why: why.into() }
    }
}
