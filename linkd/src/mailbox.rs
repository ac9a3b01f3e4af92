//! What crosses between threads: a bounded queue into one worker, and a bell.

mod letters;
mod parts;

pub use letters::Mailbox;

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
