//! The mailbox itself. What it is made of comes from `parts`, so that `tests/loom` can try every order of its threads
//! with the same code.

use super::parts::{Arc, AtomicBool, Bell, Ordering, Queue, fence};

/// The sending end and the receiving end in one; clones are the same mailbox.
#[derive(Debug)]
pub struct Mailbox<T>(Arc<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    queue: Queue<T>,
    bell: Bell,
    /// The worker has ended: nobody opens letters any more.
    closed: AtomicBool,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Mailbox<T> {
    /// At most `letters_max` wait.
    pub fn new(letters_max: usize) -> Self {
        Self(Arc::new(Inner {
            queue: Queue::new(letters_max),
            bell: Bell::new(),
            closed: AtomicBool::new(false),
        }))
    }

    /// Full or closed: the letter comes back, and the sender says so to whoever asked.
    pub fn post(&self, letter: T) -> Result<(), T> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(letter);
        }
        self.0.queue.push(letter)?;
        self.0.bell.notify_one();
        // It may have been closed between the two.
        self.discard_if_closed();
        Ok(())
    }

    /// The receiver ends. What nobody has opened is dropped, and with it whatever its sender waits on.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.discard_if_closed();
    }

    /// Of a poster and the one who closes, at least one sees what the other has written before this.
    fn discard_if_closed(&self) {
        if !base::planted::is("mailbox_keeps_late_letters") {
            fence(Ordering::SeqCst);
        }
        if self.0.closed.load(Ordering::Acquire) {
            // Nobody else takes letters out, and few come in: whoever sees the box closed puts none in.
            std::iter::from_fn(|| self.0.queue.pop()).for_each(drop);
        }
    }

    /// The next letter. One receiver only. Cancel-safe.
    pub async fn next(&self) -> T {
        loop {
            if let Some(letter) = self.0.queue.pop() {
                return letter;
            }
            self.0.bell.notified().await;
        }
    }
}
