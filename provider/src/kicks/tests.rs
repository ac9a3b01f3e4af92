//! Core: scripts in, text out.

use base::LinkSid;
use expect_test::{Expect, expect};

use super::*;

fn link(epoch: u64, sid: u64) -> LinkRef {
    LinkRef { linkd: NodeId::new("linkd-1").unwrap(), epoch: Epoch(epoch), sid: LinkSid(sid) }
}

/// Sessions are of start 5 of `linkd-1`; `wait` lets a tick of 50 ms come as often as fits.
fn check(script: &str, expect: Expect) {
    let (mut kicks, mut now, mut out) = (Kicks::default(), Mono(1_000_000), String::new());
    for line in script.lines().map(str::trim) {
        out += &format!("> {line}\n");
        let words: Vec<_> = line.split(' ').collect();
        let number = || words[1].parse().unwrap();
        let listed = |epoch| Linkd { epoch: Epoch(epoch), ..linkd() };
        let mut actions = Vec::new();
        let mut step = |now, event: Event<'_>| kicks.step(now, event, &mut actions);
        match words[0] {
            "kick" => step(now, Event::Begin(link(5, number()))),
            "confirmed" => step(now, Event::Confirmed(link(5, number()))),
            "failed" => step(now, Event::Failed(link(5, number()))),
            "unreachable" => step(now, Event::Unreachable(link(5, number()))),
            "listed" => step(now, Event::Listed(&[listed(number())])),
            "unlisted" => step(now, Event::Listed(&[])),
            "connected" => step(now, Event::Connected { linkd: &linkd().node, epoch: Epoch(number()) }),
            "wait" => {
                for _ in 0..number() / 50 {
                    now += Span::millis(50);
                    step(now, Event::Tick);
                }
            }
            other => panic!("no such line: {other}"),
        }
        kicks.check();
        for action in actions {
            out += &match action {
                Action::Ask(link) => format!("ask {}\n", link.sid.0),
                Action::Done(link) => format!("done {}\n", link.sid.0),
                Action::Refused(link) => format!("refused {}\n", link.sid.0),
            };
        }
    }
    let kicked: Vec<_> = (1..9).filter(|&sid| kicks.contains(&link(5, sid))).collect();
    out += &format!("kicked: {kicked:?}\n");
    expect.assert_eq(&out);
}

fn linkd() -> Linkd {
    let node = NodeId::new("linkd-1").unwrap();
    Linkd { node, epoch: Epoch(5), address: String::new(), workers: 1 }
}

/// Holds: Q63.
#[test]
fn a_kick_is_repeated_until_its_linkd_confirms_it() {
    check(
        "listed 5
         kick 1
         failed 1
         wait 50
         unreachable 1
         wait 50
         connected 5
         wait 5000
         confirmed 1
         wait 5000",
        expect![[r#"
            > listed 5
            > kick 1
            ask 1
            > failed 1
            > wait 50
            ask 1
            > unreachable 1
            > wait 50
            > connected 5
            ask 1
            > wait 5000
            > confirmed 1
            done 1
            > wait 5000
            kicked: []
        "#]],
    );
}

/// Holds: Q63, Z-08.
#[test]
fn a_linkd_that_started_anew_holds_no_session_of_before() {
    check(
        "listed 5
         kick 1
         unreachable 1
         kick 2
         listed 6
         failed 2
         connected 6
         kick 3
         wait 1000",
        expect![[r#"
            > listed 5
            > kick 1
            ask 1
            > unreachable 1
            > kick 2
            ask 2
            > listed 6
            done 1
            done 2
            > failed 2
            > connected 6
            > kick 3
            done 3
            ask 3
            > wait 1000
            ask 1
            ask 2
            kicked: [1, 2, 3]
        "#]],
    );
}

/// The start before may live on and not have heard of it: what was kicked there is remembered until it was out of reach
/// for its lease.
///
/// Holds: Q63.
#[test]
fn a_session_of_a_start_that_was_outlived_is_kicked_as_long_as_that_is_reached() {
    check(
        "listed 5
         listed 6
         kick 1
         confirmed 1
         kick 2
         failed 2
         wait 50
         unreachable 2
         wait 15000
         kick 3",
        expect![[r#"
            > listed 5
            > listed 6
            > kick 1
            done 1
            ask 1
            > confirmed 1
            > kick 2
            done 2
            ask 2
            > failed 2
            > wait 50
            ask 2
            > unreachable 2
            > wait 15000
            ask 2
            > kick 3
            done 3
            ask 3
            kicked: [3]
        "#]],
    );
}

/// It is waited for as long as it is listed; then for its lease. If it was only cut off it hears of the kick as soon as it
/// is back.
///
/// Holds: Q63.
#[test]
fn a_linkd_that_is_gone_for_its_lease_is_taken_for_dead_and_not_forgotten() {
    check(
        "listed 5
         kick 1
         unreachable 1
         connected 5
         unreachable 1
         unlisted
         wait 50
         wait 100
         unreachable 1
         wait 14900
         unreachable 1
         wait 400
         unreachable 1
         connected 5
         confirmed 1",
        expect![[r#"
            > listed 5
            > kick 1
            ask 1
            > unreachable 1
            > connected 5
            ask 1
            > unreachable 1
            > unlisted
            > wait 50
            > wait 100
            ask 1
            > unreachable 1
            > wait 14900
            ask 1
            > unreachable 1
            > wait 400
            done 1
            ask 1
            > unreachable 1
            > connected 5
            ask 1
            > confirmed 1
            kicked: []
        "#]],
    );
}

#[test]
fn too_many_kicks_are_refused_and_those_that_are_over_make_room() {
    let (mut kicks, mut actions) = (Kicks::default(), Vec::new());
    for sid in 0..KICKS_MAX as u64 {
        kicks.step(Mono(1), Event::Begin(link(5, sid)), &mut actions);
    }
    actions.clear();
    let one_more = || link(5, KICKS_MAX as u64);
    kicks.step(Mono(1), Event::Begin(one_more()), &mut actions);
    kicks.step(Mono(1), Event::Begin(link(5, 3)), &mut actions);
    assert_eq!(actions, [Action::Refused(one_more()), Action::Ask(link(5, 3))]);
    kicks.step(Mono(1), Event::Unreachable(link(5, 3)), &mut actions);
    kicks.step(Mono(1) + LEASE, Event::Tick, &mut actions);
    actions.clear();
    kicks.step(Mono(1), Event::Begin(one_more()), &mut actions);
    assert_eq!(actions, [Action::Ask(one_more())]);
    kicks.check();
}
