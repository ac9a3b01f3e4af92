//! The mailbox between threads under loom, which tries every order in which they may see each other's writes.

#[path = "../../src/mailbox/letters.rs"]
mod letters;
mod parts;

use loom::future::block_on;
use loom::thread;

use letters::Mailbox;

/// How often a thread that could go on is held up, in a model of three: all orders of those would take hours.
const HELD_UP_MAX: usize = 2;

fn of_three(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(HELD_UP_MAX);
    builder.check(model);
}

/// A letter that was posted while its receiver ended is dropped by one of the two, and with it what its sender waits on.
#[test]
fn a_letter_to_a_box_that_closes_meanwhile_is_never_kept() {
    loom::model(|| {
        let (mailbox, letter) = (Mailbox::new(1), std::sync::Arc::new(()));
        let (posts, sent) = (mailbox.clone(), letter.clone());
        let poster = thread::spawn(move || drop(posts.post(sent)));
        mailbox.close();
        poster.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&letter), 1, "the box keeps a letter that nobody opens");
    });
}

#[test]
fn no_letter_of_several_senders_is_kept_either() {
    of_three(|| {
        let (mailbox, letter) = (Mailbox::new(2), std::sync::Arc::new(()));
        let posters: Vec<_> = (0..2)
            .map(|_| {
                let (posts, sent) = (mailbox.clone(), letter.clone());
                thread::spawn(move || drop(posts.post(sent)))
            })
            .collect();
        mailbox.close();
        posters.into_iter().for_each(|poster| poster.join().unwrap());
        assert_eq!(std::sync::Arc::strong_count(&letter), 1, "the box keeps a letter that nobody opens");
    });
}

/// A receiver that waits hears of every letter: loom fails when it would wait for ever.
#[test]
fn the_receiver_is_woken_for_every_letter() {
    of_three(|| {
        let mailbox = Mailbox::new(2);
        let posters: Vec<_> = (1..3)
            .map(|letter| {
                let posts = mailbox.clone();
                thread::spawn(move || posts.post(letter).unwrap())
            })
            .collect();
        let sum = block_on(async { mailbox.next().await + mailbox.next().await });
        assert_eq!(sum, 3);
        posters.into_iter().for_each(|poster| poster.join().unwrap());
    });
}

#[test]
fn letters_of_one_sender_arrive_in_order() {
    loom::model(|| {
        let mailbox = Mailbox::new(2);
        let posts = mailbox.clone();
        let poster = thread::spawn(move || (1..3).for_each(|letter| posts.post(letter).unwrap()));
        let both = block_on(async { (mailbox.next().await, mailbox.next().await) });
        assert_eq!(both, (1, 2));
        poster.join().unwrap();
    });
}
