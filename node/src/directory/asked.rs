//! Questions of this node to the directory that wait for their answers.

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::oneshot;

/// Questions that wait at once; the directory's queue to one session holds more answers than that.
pub const WAITING_MAX: usize = 1_024;

/// Why a question was not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotAsked {
    /// No session with a directory.
    Closed,
    /// As many wait as may.
    Full,
}

#[derive(Debug)]
pub(super) struct Asked<Q, A> {
    /// A session is admitted and will send.
    open: bool,
    seq: u64,
    /// Not sent yet.
    queue: VecDeque<u64>,
    waiting: BTreeMap<u64, (Q, oneshot::Sender<A>)>,
}

impl<Q, A> Default for Asked<Q, A> {
    fn default() -> Self {
        Self { open: false, seq: 0, queue: VecDeque::new(), waiting: BTreeMap::new() }
    }
}

impl<Q, A> Asked<Q, A> {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn ask(&mut self, question: Q) -> Result<oneshot::Receiver<A>, NotAsked> {
        if !self.open {
            return Err(NotAsked::Closed);
        }
        if self.waiting.len() >= WAITING_MAX {
            return Err(NotAsked::Full);
        }
        self.seq += 1;
        let (sender, receiver) = oneshot::channel();
        self.queue.push_back(self.seq);
        self.waiting.insert(self.seq, (question, sender));
        Ok(receiver)
    }

    /// A session begins.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// The session is over: nobody will answer what waits.
    pub fn close(&mut self, unanswered: impl Fn() -> A) {
        self.open = false;
        self.queue.clear();
        for (_, (_, answer)) in std::mem::take(&mut self.waiting) {
            // Who asked may have given up.
            let _ = answer.send(unanswered());
        }
    }

    /// The next question to send, with its number.
    pub fn next(&mut self) -> Option<(u64, &Q)> {
        let seq = loop {
            let seq = self.queue.pop_front()?;
            if self.waiting.contains_key(&seq) {
                break seq;
            }
        };
        self.waiting.get(&seq).map(|(question, _)| (seq, question))
    }

    /// An answer came, also for whoever waits no more.
    pub fn answered(&mut self, seq: u64) -> Option<(Q, oneshot::Sender<A>)> {
        self.waiting.remove(&seq)
    }
}
