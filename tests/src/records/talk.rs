//! What providers and the arbiter say to each other over a connection, as it is after decoding.

use base::{Fence, Mono};
use tables::{Heard, Word};

/// A process in one of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub who: usize,
    /// The epoch of its node.
    pub life: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p{}.{}", self.who, self.life)
    }
}

/// A connection; a later one has a larger number.
pub type ConnId = u64;

/// To the arbiter.
#[derive(Debug, Clone)]
pub enum Up {
    /// `sent`: by the provider's clock, which comes back with the answer.
    Login {
        place: Place,
        sent: Mono,
    },
    Renew {
        sent: Mono,
    },
    Word(Word),
    Bye,
}

/// From the arbiter.
#[derive(Debug, Clone)]
pub enum Down {
    Welcome {
        sent: Mono,
        fence: Fence,
    },
    Renewed {
        sent: Mono,
    },
    Heard(Heard),
    /// The connection ends, with a number of the code registry.
    Goodbye(i32),
    /// The answer to [`Up::Bye`].
    Done,
}
