//! The table by itself: bounds, answers and replay.

use super::*;

fn claim(key: &str) -> Claim {
    Claim { key: key.to_owned(), value: vec![1], ttl: Duration::from_secs(10), outlives_node: true }
}

fn held(claims: &mut Claims, now: Mono, key: &str) {
    let mut answer = claims.ask(now, claim(key)).unwrap();
    let sent = claims.next().unwrap();
    claims.answered(now, msg::Claimed { seq: sent.seq, ..Default::default() });
    assert_eq!(answer.try_recv(), Ok(Ok(())));
}

#[test]
fn without_a_session_nothing_is_claimed_and_its_end_leaves_no_doubt() {
    let mut claims = Claims::default();
    assert_eq!(claims.ask(Mono::ZERO, claim("a")).unwrap_err(), ClaimError::NotNow);
    claims.open();
    let mut answer = claims.ask(Mono::ZERO, claim("a")).unwrap();
    claims.close();
    assert_eq!(answer.try_recv(), Ok(Err(ClaimError::Unknown)));
    assert_eq!((claims.next(), claims.asked.len()), (None, 0));
}

#[test]
fn waiting_claims_are_bounded_and_a_late_answer_still_counts() {
    let mut claims = Claims::default();
    claims.open();
    for at in 0..CLAIMS_WAITING_MAX {
        drop(claims.ask(Mono::ZERO, claim(&at.to_string())).unwrap());
    }
    assert_eq!(claims.ask(Mono::ZERO, claim("more")).unwrap_err(), ClaimError::Full);
    let sent = claims.next().unwrap();
    claims.answered(Mono::ZERO, msg::Claimed { seq: sent.seq, ..Default::default() });
    assert_eq!(claims.kept.len(), 1);
    assert!(claims.ask(Mono::ZERO, claim("more")).is_ok());
}

#[test]
fn what_is_held_is_replayed_with_the_time_it_has_left() {
    let mut claims = Claims::default();
    claims.open();
    for at in 0..=REPLAYED_PER_TURN {
        held(&mut claims, Mono::ZERO, &format!("{at:04}"));
    }
    let later = Mono::ZERO + Span::secs(4);
    let (first, next) = claims.replay(later, None);
    assert_eq!((first.len(), first[0].ttl_ms, first[0].replay), (REPLAYED_PER_TURN, 6_000, true));
    let (rest, end) = claims.replay(later, next.as_ref());
    assert_eq!((rest.len(), end), (1, None));
    assert_eq!(claims.replay(Mono::ZERO + Span::secs(10), None), (Vec::new(), None));
}

#[test]
fn each_refusal_says_whether_to_try_again() {
    let mut claims = Claims::default();
    claims.open();
    for (code, expected) in
        [(code::TAKEN, Retry::Never), (code::BUSY, code::BUSY.retry), (code::LIMIT, Retry::Never)]
    {
        let mut answer = claims.ask(Mono::ZERO, claim("a")).unwrap();
        let seq = claims.next().unwrap().seq;
        claims.answered(Mono::ZERO, msg::Claimed { seq, code: code.number, ..Default::default() });
        assert_eq!(answer.try_recv().unwrap().unwrap_err().retry(), expected);
    }
}

/// What somebody else has now is not said again: the directory would take it as held all along once it is free.
#[test]
fn what_was_lost_is_not_replayed() {
    let mut claims = Claims::default();
    claims.open();
    held(&mut claims, Mono::ZERO, "a");
    held(&mut claims, Mono::ZERO, "b");
    for value in [2, 1] {
        let _answer = claims.ask(Mono::ZERO, Claim { value: vec![value], ..claim("a") }).unwrap();
        let seq = claims.next().unwrap().seq;
        claims.answered(Mono::ZERO, msg::Claimed { seq, code: code::TAKEN.number, ..Default::default() });
        // Another value than the one that is held says nothing about that one.
        assert_eq!(claims.replay(Mono::ZERO, None).0.len(), usize::from(value));
    }
    assert_eq!((claims.kept.len(), claims.due.len()), (1, 1));
}

/// Under another epoch this node holds no more what ended with the start before.
#[test]
fn what_ends_with_a_start_is_not_the_next_ones() {
    let mut claims = Claims::default();
    claims.open();
    held(&mut claims, Mono::ZERO, "ticket");
    let mut answer = claims.ask(Mono::ZERO, Claim { outlives_node: false, ..claim("owner") }).unwrap();
    let seq = claims.next().unwrap().seq;
    claims.answered(Mono::ZERO, msg::Claimed { seq, ..Default::default() });
    assert_eq!(answer.try_recv(), Ok(Ok(())));
    claims.start_over();
    let again: Vec<_> = claims.replay(Mono::ZERO, None).0.into_iter().map(|claim| claim.key).collect();
    assert_eq!((again, claims.due.len()), (vec!["ticket".to_owned()], 1));
}
