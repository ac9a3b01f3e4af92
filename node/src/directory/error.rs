//! Why a node could not join.

use base::{Blame, NodeId, Retry};
use wire::Code;

/// Why a node could not join. Whoever starts the process reads it, so it says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// A node of this id is alive; a lease that runs out or a closed connection would have let this start in.
    #[error(
        "node {node} is already running on {theirs}, so its second start on {ours} is refused; give each node its own \
         node.id, or stop the other one"
    )]
    DuplicateNode { node: NodeId, ours: String, theirs: String },
    /// The directory does not take this node in.
    #[error("the directory refuses node {node} with {name} ({number}): {text}; {remedy}")]
    Refused { node: NodeId, number: i32, name: &'static str, text: String, remedy: &'static str },
    /// No directory is configured.
    #[error("node {node} has no directory to join; list its addresses in node.directory")]
    NoDirectory { node: NodeId },
    /// The session task was cancelled or left before it was ever admitted.
    #[error("the node stopped before a directory admitted it")]
    Ended,
}

impl JoinError {
    pub(super) fn refused(node: NodeId, number: i32, text: String) -> Self {
        let code = Code::find(number);
        let name = code.map_or("UNKNOWN", |code| code.name);
        let remedy = code.map_or("update this node: it does not know the code", |code| code.remedy);
        Self::Refused { node, number, name, text, remedy }
    }

    /// No waiting admits this start.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::DuplicateNode { .. }) || self.retry() == Retry::Never
    }

    pub fn blame(&self) -> Blame {
        match self {
            Self::Refused { number, .. } => Code::find(*number).map_or(Blame::Peer, |code| code.blame),
            Self::DuplicateNode { .. } | Self::NoDirectory { .. } | Self::Ended => Blame::Us,
        }
    }

    /// Whether starting the process again can help.
    pub fn retry(&self) -> Retry {
        match self {
            Self::DuplicateNode { .. } => wire::code::DUPLICATE_NODE.retry,
            Self::Refused { number, .. } => Code::find(*number).map_or(Retry::Never, |code| code.retry),
            Self::NoDirectory { .. } => Retry::Never,
            Self::Ended => Retry::Now,
        }
    }
}
