//! What a mailbox is made of, as loom knows it: each part promises no more than the real one does.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use loom::sync::Mutex;
use loom::sync::atomic::AtomicUsize;

pub use loom::sync::Arc;
pub use loom::sync::atomic::{AtomicBool, Ordering, fence};

/// A queue whose slots are used once. Who takes out sees a letter once it is whole, and otherwise nothing: also when a
/// later one is whole already.
#[derive(Debug)]
pub struct Queue<T> {
    slots: Vec<Slot<T>>,
    head: AtomicUsize,
    tail: AtomicUsize,
}

#[derive(Debug)]
struct Slot<T> {
    whole: AtomicBool,
    letter: Mutex<Option<T>>,
}

impl<T> Queue<T> {
    pub fn new(letters_max: usize) -> Self {
        let slot = |_| Slot { whole: AtomicBool::new(false), letter: Mutex::new(None) };
        let (head, tail) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { slots: (0..letters_max).map(slot).collect(), head, tail }
    }

    pub fn push(&self, letter: T) -> Result<(), T> {
        let at = self.tail.fetch_add(1, Ordering::Relaxed);
        let Some(slot) = self.slots.get(at) else { return Err(letter) };
        *slot.letter.lock().expect("no thread has panicked") = Some(letter);
        slot.whole.store(true, Ordering::Release);
        Ok(())
    }

    pub fn pop(&self) -> Option<T> {
        loop {
            let at = self.head.load(Ordering::Relaxed);
            let slot = self.slots.get(at)?;
            if !slot.whole.load(Ordering::Acquire) {
                return None;
            }
            let taken = self.head.compare_exchange(at, at + 1, Ordering::Relaxed, Ordering::Relaxed);
            if taken.is_ok() {
                return slot.letter.lock().expect("no thread has panicked").take();
            }
        }
    }
}

/// Rung before anybody listens, it is heard by the next who does. One listener.
#[derive(Debug)]
pub struct Bell(Mutex<(bool, Option<Waker>)>);

impl Bell {
    pub fn new() -> Self {
        Self(Mutex::new((false, None)))
    }

    pub fn notify_one(&self) {
        let mut bell = self.0.lock().expect("no thread has panicked");
        bell.0 = true;
        if let Some(waker) = bell.1.take() {
            waker.wake();
        }
    }

    pub async fn notified(&self) {
        poll_fn(|context| {
            let mut bell = self.0.lock().expect("no thread has panicked");
            if std::mem::take(&mut bell.0) {
                return Poll::Ready(());
            }
            bell.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
