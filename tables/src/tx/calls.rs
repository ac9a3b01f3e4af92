//! What is to happen after a transaction: once, in the order of the commits, and outside of all locks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use base::fault::panic_text;
use parking_lot::Mutex;

/// Something that is to happen once.
pub type Call = Box<dyn FnOnce() + Send>;

/// What one run has registered.
#[derive(Default)]
pub(super) struct Registered {
    commit: Vec<Call>,
    abort: Vec<Call>,
    /// Of parts that were undone: they happen whatever becomes of the whole.
    always: Vec<Call>,
}

impl Registered {
    pub fn on_commit(&mut self, call: Call) {
        self.commit.push(call);
    }

    pub fn on_abort(&mut self, call: Call) {
        self.abort.push(call);
    }

    pub fn mark(&self) -> (usize, usize) {
        (self.commit.len(), self.abort.len())
    }

    pub fn back(&mut self, (commit, abort): (usize, usize)) {
        self.commit.truncate(commit);
        self.always.extend(self.abort.drain(abort.min(self.abort.len())..));
    }

    /// Nothing happens after a commit.
    pub fn is_quiet(&self) -> bool {
        self.commit.is_empty() && self.always.is_empty()
    }

    /// What happens now that it is committed.
    pub fn committed(&mut self) -> impl Iterator<Item = Call> + '_ {
        self.abort.clear();
        self.always.drain(..).chain(self.commit.drain(..))
    }

    /// What happens if nothing comes of it.
    pub fn aborted(&mut self) -> Vec<Call> {
        self.commit.clear();
        self.always.drain(..).chain(self.abort.drain(..)).collect()
    }
}

/// The calls of all transactions, one after another.
#[derive(Default)]
pub struct Calls {
    queue: Mutex<VecDeque<Call>>,
    /// How many wait: what everybody looks at.
    waiting: AtomicUsize,
    running: AtomicBool,
    panics: AtomicU64,
}

impl Calls {
    /// Behind those of earlier commits. The caller has locked what it has committed.
    pub(super) fn push(&self, calls: impl IntoIterator<Item = Call>) {
        let mut queue = self.queue.lock();
        queue.extend(calls);
        self.waiting.store(queue.len(), Ordering::Release);
    }

    /// Runs what there is, unless somebody does already: that one runs these too. Without locks.
    pub(crate) fn run(&self) {
        while self.waiting.load(Ordering::Acquire) > 0 {
            if self.running.swap(true, Ordering::Acquire) {
                return;
            }
            loop {
                let Some(call) = self.next() else { break };
                self.call(call);
            }
            self.running.store(false, Ordering::Release);
        }
    }

    fn next(&self) -> Option<Call> {
        let mut queue = self.queue.lock();
        let call = queue.pop_front();
        self.waiting.store(queue.len(), Ordering::Release);
        call
    }

    fn call(&self, call: Call) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
            self.panics.fetch_add(1, Ordering::Relaxed);
            let text = panic_text(&*panic).unwrap_or("no message");
            tracing::error!(text, "what was to happen after a transaction panicked; the transaction stands");
        }
    }

    /// Calls that panicked.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }
}
