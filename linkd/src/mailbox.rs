//! What crosses between threads: a bounded queue into one worker, and a bell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam::queue::ArrayQueue;
use tokio::sync::Notify;

/// The sending end and the receiving end in one; clones are the same mailbox.
#[derive(Debug)]
pub struct Mailbox<T>(Arc<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    queue: ArrayQueue<T>,
    bell: Notify,
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
            queue: ArrayQueue::new(letters_max),
            bell: Notify::new(),
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
        self.0.closed.store(true, Ordering::SeqCst);
        self.discard_if_closed();
    }

    fn discard_if_closed(&self) {
        if self.0.closed.load(Ordering::SeqCst) {
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

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn who_waits_on_a_letter_to_a_closed_box_waits_no_more() {
        let mailbox = Mailbox::new(2);
        let (opened, waits) = oneshot::channel::<()>();
        assert!(mailbox.post(opened).is_ok());
        mailbox.close();
        assert!(waits.await.is_err());
        assert!(mailbox.post(oneshot::channel().0).is_err());
    }

    #[tokio::test]
    async fn letters_arrive_in_order_and_the_box_is_bounded() {
        let mailbox = Mailbox::new(2);
        mailbox.post(1).unwrap();
        mailbox.post(2).unwrap();
        assert_eq!(mailbox.post(3), Err(3));
        assert_eq!((mailbox.next().await, mailbox.next().await), (1, 2));
        let receiver = mailbox.clone();
        let waiting = tokio::spawn(async move { receiver.next().await });
        tokio::task::yield_now().await;
        mailbox.post(4).unwrap();
        assert_eq!(waiting.await.unwrap(), 4);
    }
}
