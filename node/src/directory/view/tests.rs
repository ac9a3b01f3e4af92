//! Scripts in, text out; then any interleaving of losses against what the directory really lists.

use std::fmt::Write;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::directory::Service;

/// `game-1:m/7/101` is node, service and epoch.
fn instance(text: &str) -> Instance {
    let (node, rest) = text.split_once(':').unwrap();
    let (name, epoch) = rest.rsplit_once('/').unwrap();
    let service = Service { name: name.to_owned(), ..Service::default() };
    Instance {
        node: NodeId::new(node).unwrap(),
        epoch: Epoch(epoch.parse().unwrap()),
        service,
        unreachable: false,
    }
}

/// `follow m/`, `connected`, `list m/ 3 [warming] [more] game-1:m/7/1`, `delta m/ 3->4 +game-1:m/7/1 -game-1:m/8`,
/// `warm`.
fn event(line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = || words[1].to_owned();
    match words[0] {
        "follow" => Event::Follow { name: name() },
        "connected" => Event::Connected,
        "warm" => Event::Warm,
        "list" => Event::Snapshot {
            name: name(),
            revision: words[2].parse().unwrap(),
            warming: words.contains(&"warming"),
            more: words.contains(&"more"),
            instances: words[3..]
                .iter()
                .filter(|word| word.contains(':'))
                .map(|word| instance(word))
                .collect(),
        },
        "delta" => {
            let (previous, revision) = words[2].split_once("->").unwrap();
            let key = |text: &str| {
                let (node, name) = text.split_once(':').unwrap();
                (name.to_owned(), NodeId::new(node).unwrap())
            };
            Event::Delta {
                name: name(),
                previous: previous.parse().unwrap(),
                revision: revision.parse().unwrap(),
                added: words[3..].iter().filter_map(|word| word.strip_prefix('+')).map(instance).collect(),
                removed: words[3..].iter().filter_map(|word| word.strip_prefix('-')).map(key).collect(),
            }
        }
        other => panic!("no such word: {other}"),
    }
}

fn run(view: &mut View, script: &str) -> String {
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let _ = writeln!(out, "{line}");
        let mut actions = Vec::new();
        view.step(Mono::ZERO, event(line), &mut actions);
        view.check();
        for action in actions {
            let keys = |sign: char, keys: &[Key]| -> String {
                keys.iter().map(|(name, node)| format!(" {sign}{node}:{name}")).collect()
            };
            let _ = match action {
                Action::Subscribe { name } => writeln!(out, "  ask for {name}"),
                Action::Changed { name, added, removed } => {
                    writeln!(out, "  {name}{}{}", keys('+', &added), keys('-', &removed))
                }
                Action::Gap { name, expected, previous } => {
                    writeln!(out, "  gap in {name}: expected {expected}, got {previous}")
                }
            };
        }
    }
    out
}

fn check(script: &str, expected: Expect) {
    expected.assert_eq(&run(&mut View::default(), script));
}

/// Services that vanished while the directory was away are seen to vanish; what stayed is not announced again.
///
/// Holds: Q21, Z-22.
#[test]
fn a_reconnect_compares_old_and_new() {
    check(
        "follow m/
         list m/ 3 game-1:m/7/1 game-2:m/7/2
         connected
         list m/ 1 game-2:m/7/2 game-3:m/7/9",
        expect![[r#"
            follow m/
              ask for m/
            list m/ 3 game-1:m/7/1 game-2:m/7/2
              m/ +game-1:m/7 +game-2:m/7
            connected
              ask for m/
            list m/ 1 game-2:m/7/2 game-3:m/7/9
              m/ +game-3:m/7 -game-1:m/7
        "#]],
    );
}

/// A directory that has lost everything is not "all gone": what it does not list yet is kept until it says that it has
/// waited long enough.
///
/// Holds: Q30, H-15, Z-23.
#[test]
fn a_warming_directory_removes_nothing_until_it_is_warm() {
    check(
        "follow m/
         list m/ 3 game-1:m/7/1 game-2:m/7/2 game-3:m/7/3
         connected
         list m/ 0 warming
         delta m/ 0->1 +game-1:m/7/1
         delta m/ 1->2 +game-2:m/7/2
         delta m/ 2->3 -game-2:m/7
         warm
         warm",
        expect![[r#"
            follow m/
              ask for m/
            list m/ 3 game-1:m/7/1 game-2:m/7/2 game-3:m/7/3
              m/ +game-1:m/7 +game-2:m/7 +game-3:m/7
            connected
              ask for m/
            list m/ 0 warming
            delta m/ 0->1 +game-1:m/7/1
            delta m/ 1->2 +game-2:m/7/2
            delta m/ 2->3 -game-2:m/7
              m/ -game-2:m/7
            warm
              m/ -game-3:m/7
            warm
        "#]],
    );
}

/// Holds: Z-23.
#[test]
fn a_session_that_missed_the_warm_notice_learns_it_from_the_next_list() {
    check(
        "follow m/
         list m/ 3 game-1:m/7/1
         connected
         list m/ 0 warming
         connected
         list m/ 0 warming
         connected
         list m/ 4",
        expect![[r#"
            follow m/
              ask for m/
            list m/ 3 game-1:m/7/1
              m/ +game-1:m/7
            connected
              ask for m/
            list m/ 0 warming
            connected
              ask for m/
            list m/ 0 warming
            connected
              ask for m/
            list m/ 4
              m/ -game-1:m/7
        "#]],
    );
}

/// Holds: Z-22, Q69.
#[test]
fn a_gap_is_noticed_and_the_list_asked_for_once() {
    check(
        "follow m/
         list m/ 3 game-1:m/7/1
         delta m/ 5->6 +game-2:m/7/2
         delta m/ 6->7 -game-1:m/7
         list m/ 7 game-2:m/7/2
         delta m/ 5->6 -game-2:m/7
         delta m/ 7->8 +game-2:m/7/5",
        expect![[r#"
            follow m/
              ask for m/
            list m/ 3 game-1:m/7/1
              m/ +game-1:m/7
            delta m/ 5->6 +game-2:m/7/2
              gap in m/: expected 3, got 5
              ask for m/
            delta m/ 6->7 -game-1:m/7
            list m/ 7 game-2:m/7/2
              m/ +game-2:m/7 -game-1:m/7
            delta m/ 5->6 -game-2:m/7
            delta m/ 7->8 +game-2:m/7/5
              m/ +game-2:m/7
        "#]],
    );
}

#[test]
fn pages_count_when_the_last_has_come() {
    check(
        "follow m/
         list m/ 3 more game-1:m/7/1
         connected
         list m/ 4 more game-2:m/7/2
         list m/ 4 game-3:m/7/3
         delta other 1->2 +x:other/1
         follow m/",
        expect![[r#"
            follow m/
              ask for m/
            list m/ 3 more game-1:m/7/1
            connected
              ask for m/
            list m/ 4 more game-2:m/7/2
            list m/ 4 game-3:m/7/3
              m/ +game-2:m/7 +game-3:m/7
            delta other 1->2 +x:other/1
            follow m/
        "#]],
    );
}

#[test]
fn the_highest_epoch_of_anyone_is_remembered() {
    let mut view = View::default();
    run(&mut view, "follow m/\nlist m/ 1 a:m/1/70\ndelta m/ 1->2 +b:m/1/90\ndelta m/ 2->3 -b:m/1");
    assert_eq!(view.epoch_seen_max(), Epoch(90));
}

/// Whom this node has met and no list has shown counts as well, unless no directory could ever have given that.
#[test]
fn the_epoch_of_whoever_is_met_is_remembered() {
    let mut view = View::default();
    run(&mut view, "follow m/\nlist m/ 1 a:m/1/70");
    let mut actions = Vec::new();
    for epoch in [Epoch(80), Epoch(75), Epoch(EPOCH_MAX.0 + 1)] {
        view.step(Mono::ZERO, Event::Met { epoch }, &mut actions);
    }
    assert_eq!((view.epoch_seen_max(), actions), (Epoch(80), Vec::new()));
}

/// What happens to one subscription between directory and node.
#[derive(Debug, Clone)]
enum Happening {
    Set(u8, u64),
    Remove(u8),
    /// A delta is lost on the way.
    Lose,
    Reconnect,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let happening = prop_oneof![
        4 => (0..6u8, 1..9u64).prop_map(|(node, epoch)| Happening::Set(node, epoch)),
        3 => (0..6u8).prop_map(Happening::Remove),
        1 => Just(Happening::Lose),
        1 => Just(Happening::Reconnect),
    ];
    prop::collection::vec(happening, 0..60)
}

proptest! {
    /// Whatever is lost, the view is the directory's list again as soon as the asked-for list has come, and what it
    /// reports as added and removed adds up to it.
    ///
    /// Holds: Z-22, Q21.
    #[test]
    fn the_view_ends_where_the_directory_is(happenings in happenings()) {
        let mut view = View::default();
        let mut actions = Vec::new();
        view.step(Mono::ZERO, Event::Follow { name: "m".to_owned() }, &mut actions);
        let mut listed: BTreeMap<u8, u64> = BTreeMap::new();
        let (mut revision, mut told, mut lose) = (0u64, 0u64, false);
        let mut believed: BTreeSet<Key> = BTreeSet::new();
        let make = |node: u8, epoch: u64| instance(&format!("n{node}:m/{epoch}"));
        for happening in happenings.into_iter().chain([Happening::Lose, Happening::Set(0, 99), Happening::Set(1, 99)]) {
            let (mut added, mut removed) = (Vec::new(), Vec::new());
            match happening {
                Happening::Set(node, epoch) if listed.insert(node, epoch) != Some(epoch) => added.push(make(node, epoch)),
                Happening::Remove(node) if listed.remove(&node).is_some() => removed.push(make(node, 1).key()),
                Happening::Lose => lose = true,
                Happening::Reconnect => view.step(Mono::ZERO, Event::Connected, &mut actions),
                Happening::Set(..) | Happening::Remove(_) => {}
            }
            if !added.is_empty() || !removed.is_empty() {
                revision += 1;
                let delta = Event::Delta { name: "m".to_owned(), previous: told, revision, added, removed };
                told = revision;
                if !std::mem::take(&mut lose) {
                    view.step(Mono::ZERO, delta, &mut actions);
                }
            }
            let asked = actions.iter().any(|action| matches!(action, Action::Subscribe { .. }));
            if asked {
                let instances = listed.iter().map(|(node, epoch)| make(*node, *epoch)).collect();
                let list = Event::Snapshot { name: "m".to_owned(), revision, warming: false, instances, more: false };
                told = revision;
                view.step(Mono::ZERO, list, &mut actions);
            }
            view.check();
            for action in actions.drain(..) {
                if let Action::Changed { added, removed, .. } = action {
                    believed.retain(|key| !removed.contains(key));
                    believed.extend(added);
                }
            }
            prop_assert_eq!(&believed, &view.services("m").keys().cloned().collect::<BTreeSet<Key>>());
        }
        let ends: Vec<Instance> = listed.iter().map(|(node, epoch)| make(*node, *epoch)).collect();
        prop_assert_eq!(view.services("m").values().cloned().collect::<Vec<_>>(), ends);
    }
}
