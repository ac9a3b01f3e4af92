//! Each way in which a ticket is wrong, and the one in which it is right.

use base::{Account, AppVersion};
use proptest::prelude::*;

use super::layout::{bytes_of, text_of};
use super::*;

const NOW: u64 = 1_800_000_000;

fn signer(kid: u16) -> Signer {
    Signer::new(kid, &[9; 32])
}

fn keys() -> Keys {
    Keys::new([signer(1).public()]).unwrap()
}

fn ticket() -> Ticket {
    Ticket {
        kid: 1,
        issued: NOW,
        not_before: NOW,
        expires: NOW + 300,
        id: [3; 16],
        app_main: 0,
        audience: "linkstead".into(),
        account: Account::new("ann").unwrap(),
    }
}

fn expect(now_unix: u64) -> Expect<'static> {
    Expect { now_unix, audience: "linkstead", app: AppVersion(0), account: None }
}

fn verify(text: &str, now: u64) -> Result<Ticket, TicketError> {
    Ticket::verify(text.as_bytes(), &keys(), expect(now))
}

#[test]
fn a_good_ticket_says_what_was_signed() {
    let text = ticket().sign(&signer(1)).unwrap();
    assert_eq!(verify(&text, NOW), Ok(ticket()));
    assert_eq!(Ticket::read_unverified(&text), Some(ticket()));
    let longest = Ticket {
        audience: "c".repeat(AUDIENCE_BYTES_MAX),
        account: Account::new(&"a".repeat(128)).unwrap(),
        ..ticket()
    };
    let text = longest.sign(&signer(1)).unwrap();
    let expect = Expect { audience: &longest.audience, ..expect(NOW) };
    assert!(bytes_of(text.as_bytes()).unwrap().len() <= TICKET_BYTES_MAX);
    assert_eq!(Ticket::verify(text.as_bytes(), &keys(), expect), Ok(longest));
}

/// Every bit counts, those of the signature too.
///
/// Holds: BI-023, Q37.
#[test]
fn a_ticket_with_any_bit_flipped_is_refused() {
    let bytes = bytes_of(ticket().sign(&signer(1)).unwrap().as_bytes()).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(verify(&text_of(&wrong), NOW), Err(TicketError::Invalid), "bit {bit}");
    }
}

/// Holds: BI-023.
#[test]
fn a_ticket_cut_anywhere_or_prolonged_is_refused() {
    let text = ticket().sign(&signer(1)).unwrap();
    let bytes = bytes_of(text.as_bytes()).unwrap();
    for len in 0..bytes.len() {
        assert_eq!(verify(&text_of(&bytes[..len]), NOW), Err(TicketError::Invalid), "{len} bytes");
    }
    for len in 0..text.len() {
        assert_eq!(verify(&text[..len], NOW), Err(TicketError::Invalid), "{len} letters");
    }
    let longer = [&bytes[..], &[0]].concat();
    for wrong in [text_of(&longer), format!("{text}="), format!("{text} "), "A".repeat(1_000_000)] {
        assert_eq!(verify(&wrong, NOW), Err(TicketError::Invalid));
    }
}

/// The same bytes have one text only: the bits beyond the last byte are zero.
#[test]
fn base64_that_is_not_canonical_is_refused() {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let text = ticket().sign(&signer(1)).unwrap();
    assert_ne!(text.len() % 4, 0, "this ticket has spare bits");
    let (rest, last) = text.split_at(text.len() - 1);
    let mut accepted = 0;
    for letter in alphabet {
        accepted += usize::from(verify(&format!("{rest}{}", *letter as char), NOW).is_ok());
    }
    assert_eq!(accepted, 1, "only {last}");
    assert!(verify(&text.replace(['-', '_'], "+"), NOW).is_err() || !text.contains(['-', '_']));
}

/// Holds: BI-019, BI-020.
#[test]
fn clocks_may_differ_by_thirty_seconds_and_no_more() {
    let text = ticket().sign(&signer(1)).unwrap();
    for (now, expected) in [
        (NOW - 31, Err(TicketError::NotYetValid)),
        (NOW - 29, Ok(())),
        (NOW + 300 + 29, Ok(())),
        (NOW + 300 + 30, Ok(())),
        (NOW + 300 + 31, Err(TicketError::Expired)),
        (NOW + 31_536_000, Err(TicketError::Expired)),
        (0, Err(TicketError::NotYetValid)),
        (u64::MAX, Err(TicketError::Expired)),
    ] {
        assert_eq!(verify(&text, now).map(drop), expected, "{now}");
    }
    // Remembered for exactly as long as it would be accepted again.
    let last = NOW + 330;
    assert!(verify(&text, last).is_ok() && ticket().remembered_seconds(NOW) > last - NOW);
}

/// Holds: BI-024.
#[test]
fn a_ticket_for_something_else_is_a_mismatch() {
    let text = Ticket { app_main: 3, ..ticket() }.sign(&signer(1)).unwrap();
    let (ann, bob) = (Account::new("ann").unwrap(), Account::new("bob").unwrap());
    let check = |expect| Ticket::verify(text.as_bytes(), &keys(), expect).map(drop);
    assert_eq!(check(Expect { audience: "other", ..expect(NOW) }), Err(TicketError::Mismatch));
    assert_eq!(check(Expect { app: AppVersion::new(4, 0, 0, 0), ..expect(NOW) }), Err(TicketError::Mismatch));
    assert_eq!(check(Expect { account: Some(&bob), ..expect(NOW) }), Err(TicketError::Mismatch));
    let fits = Expect { app: AppVersion::new(3, 9, 0, 0), account: Some(&ann), ..expect(NOW) };
    assert_eq!((check(fits), check(expect(NOW))), (Ok(()), Ok(())));
}

/// Holds: BI-025, X-15.
#[test]
fn keys_overlap_and_a_retired_one_counts_no_more() {
    let (old, new) = (Signer::new(1, &[1; 32]), Signer::new(2, &[2; 32]));
    let retiring = Key { retire_at: Some(NOW + 60), ..old.public() };
    let keys = Keys::new([retiring, new.public()]).unwrap();
    let check = |signer: &Signer, now| {
        let text = ticket().sign(signer).unwrap();
        Ticket::verify(text.as_bytes(), &keys, expect(now)).map(|ticket| ticket.kid)
    };
    assert_eq!((check(&old, NOW + 59), check(&new, NOW + 59)), (Ok(1), Ok(2)));
    assert_eq!((check(&old, NOW + 60), check(&new, NOW + 60)), (Err(TicketError::Invalid), Ok(2)));
    // A key of the right number with another secret, and a number that nobody has.
    assert_eq!(check(&Signer::new(2, &[3; 32]), NOW), Err(TicketError::Invalid));
    assert_eq!(check(&Signer::new(9, &[2; 32]), NOW), Err(TicketError::Invalid));
}

#[test]
fn key_files_are_read_back_and_never_shown() {
    let signer = signer(7);
    let key = Key { retire_at: Some(12), ..signer.public() };
    assert_eq!(Key::parse(&key.to_string()), Ok(key.clone()));
    let read = Signer::parse(&signer.secret_file()).unwrap();
    assert_eq!(read.public(), signer.public());
    let secret = signer.secret_file().split_whitespace().last().unwrap().to_owned();
    assert!(!format!("{signer:?}").contains(&secret) && format!("{signer:?}").contains("***"));
    let text = key.to_string();
    for wrong in [
        "",
        "something else",
        &text.replace("kid 7", "kid 65536"),
        &text.replace("kid 7", "kid 7\nkid 7"),
        &text.replace("public ", "public x"),
        &text.replace("retire_at 12", "retire_at soon"),
        &text.replace("retire_at 12", "retired 12"),
        &signer.secret_file(),
        &"\n".repeat(5_000),
    ] {
        let error = Key::parse(wrong).unwrap_err().to_string();
        assert!(!error.contains(&secret), "{error}");
    }
    // The neutral element: everything is signed by it.
    let weak = Key::parse(&format!("linkstead ticket public key v1\nkid 1\npublic AQ{}", "A".repeat(41)));
    assert_eq!(weak, Err(BadKey::Weak));
    assert_eq!(Keys::new([key.clone(), key]), Err(BadKey::Twice(7)));
}

#[test]
fn what_cannot_be_a_ticket_is_not_signed() {
    let sign = |ticket: Ticket| ticket.sign(&signer(1)).map(drop);
    assert_eq!(sign(Ticket { audience: String::new(), ..ticket() }), Err(BadTicket::Audience(0)));
    assert_eq!(sign(Ticket { audience: "x".repeat(65), ..ticket() }), Err(BadTicket::Audience(65)));
    assert_eq!(sign(Ticket { expires: NOW, ..ticket() }), Err(BadTicket::Life { seconds: 0 }));
    let long = LIFE_SECONDS_MAX + 1;
    assert_eq!(sign(Ticket { expires: NOW + long, ..ticket() }), Err(BadTicket::Life { seconds: long }));
}

proptest! {
    #[test]
    fn any_text_is_answered(text: Vec<u8>) {
        prop_assert_eq!(Ticket::verify(&text, &keys(), expect(NOW)), Err(TicketError::Invalid));
    }

    /// Shapes that are right with contents that are not.
    #[test]
    fn any_bytes_are_answered(mut bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if bytes.len() > 46 {
            bytes[..4].copy_from_slice(&[1, 1, 1, 0]);
        }
        prop_assert_eq!(verify(&text_of(&bytes), NOW), Err(TicketError::Invalid));
    }
}
