//! The arbiter as a provider sees it: words to it, words from it, and a session with a lease in between.

pub mod client;
pub mod embedded;
pub mod said;
pub mod session;

use base::{Epoch, Fence, Mono, Span};
use bytes::Bytes;
pub use global_cache::arbiter::{Evicted, Mode};

/// What a provider's cache tells its arbiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It wants a record. `have`: the number of the grant under which it has the record in memory; 0: it has not.
    Ask { request: u64, want: Mode, have: u64, key: Bytes },
    /// It uses the record of this grant only like this now, and `flushed` is the version in the storage. To
    /// [`Mode::Invalid`] also by itself.
    Reduced { record: u128, seq: u64, to: Mode, flushed: u64 },
    /// It can't reduce yet, and is asked again after this time.
    Refused { record: u128, seq: u64, until: Span },
    /// It holds this from an earlier life of the arbiter.
    Reassert { record: u128, mode: Mode },
}

/// What the arbiter tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    Granted {
        request: u64,
        mode: Mode,
        seq: u64,
        must_reload: bool,
        version_min: u64,
        evicted: Vec<Evicted>,
    },
    /// A number of the code registry, and when to ask again.
    Denied {
        request: u64,
        code: i32,
        retry_after: Span,
    },
    Reduce {
        record: u128,
        seq: u64,
        to: Mode,
        within: Span,
    },
    /// The new number under which the record is held; `None`: it is not.
    Reasserted {
        record: u128,
        seq: Option<u64>,
    },
}

/// A way to the arbiter. Words travel in the order in which they were said. What is said while there is no session is
/// forgotten: see [`Hear::resumed`].
pub trait Arbiter: Send + Sync + std::fmt::Debug {
    /// Takes the words out. The caller has locked what they are about, so nothing is heard before this returns.
    fn say(&self, words: &mut Vec<Word>);

    /// What was said leaves. Without the caller's locks.
    fn send(&self) {}

    /// The storage has refused this session: it is over, whatever the arbiter thinks, and another one is begun.
    fn abandon(&self) {}
}

/// The provider's side of a session with the arbiter: called by the one task or thread that keeps the session, one call
/// after another.
pub trait Hear: Send + Sync {
    /// What came together; the answers leave together.
    fn heard(&self, words: &mut Vec<Heard>);

    /// A session has begun in which nothing is held, and commits may be made until `until`. What was held before is
    /// dropped. `epoch`: of the arbiter.
    fn opened(&self, epoch: Epoch, fence: Fence, until: Mono);

    /// A later life of the arbiter has let us in while our lease had not ended: what is held may be reasserted under the new
    /// fence. Commits rest from now on until [`extended`](Self::extended), which comes when each reassertion is answered.
    /// Called again when the connection was lost before.
    fn reopened(&self, epoch: Epoch, fence: Fence) -> Vec<Word>;

    /// The same session goes on over another connection: whatever was asked and not answered is asked again.
    fn resumed(&self);

    /// Commits may be made until `until`.
    fn extended(&self, until: Mono);

    /// The time until which commits may be made is over without an answer: what is committed and not durable is written now.
    fn released(&self);

    /// The session is over: everything is dropped.
    fn lost(&self);
}
