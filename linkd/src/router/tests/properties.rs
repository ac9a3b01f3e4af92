//! Core: whatever happens, every frame ends somewhere and every session has one home.

use proptest::prelude::*;

use super::World;
use crate::router::Action;

const LINES: &[&str] = &[
    "login {c}",
    "close {c}",
    "req {c} 7:1",
    "req {c} 8:1",
    "say {c} 7:2",
    "done {c}",
    "req {c} 9:1 attic",
    "up game-{p} 7 8 9/keyed/dynamic",
    "gone game-{p}",
    "load game-{p} overload 2",
    "load game-{p} online 5",
    "disable game-{p}",
    "bindto game-{p} 9 {c}",
    "unbind game-{p} 9 {c}",
    "kickby game-{p} {c}",
    "wait 300",
    "role game-{p} {c} 4",
    "send game-{p} {c}",
    "provider game-{p} epoch 1",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A frame of a client gives exactly one of: a Dispatch, a refusal or report, a close, a counted drop. A dispatch
    /// follows the session's introduction to that provider, and `check` holds that nobody has two homes.
    ///
    /// Holds: Q5, Z-07, G-13.
    #[test]
    fn every_frame_ends_exactly_once(steps in prop::collection::vec((0..LINES.len(), 0..4u8, 1..4u8), 1..120)) {
        let mut world = World::default();
        let mut introduced = std::collections::BTreeSet::new();
        for (line, client, provider) in steps {
            let line = LINES[line].replace("{c}", &format!("c{client}")).replace("{p}", &provider.to_string());
            let needs_conn = ["gone", "load", "disable", "bindto", "unbind", "kickby", "role", "send"];
            let first = line.split(' ').next().unwrap_or_default();
            if needs_conn.contains(&first) && !world.conns.contains_key(&format!("game-{provider}")) {
                continue;
            }
            if ["close", "req", "say", "done"].contains(&first) && !world.clients.contains_key(&format!("c{client}")) {
                continue;
            }
            let actions = world.run(&line);
            for action in &actions {
                match action {
                    Action::Opened { to, opened } => {
                        prop_assert!(introduced.insert((*to, opened.link_sid)), "introduced twice");
                    }
                    Action::Dispatch { to, sid, .. } => prop_assert!(introduced.contains(&(*to, sid.0)), "{line}"),
                    Action::LinkBroken { to, sid, .. } => prop_assert!(introduced.contains(&(*to, sid.0))),
                    _ => {}
                }
            }
            if first == "req" || first == "say" {
                let ends = |a: &&Action| matches!(a, Action::Dispatch { .. } | Action::Refuse { .. } | Action::CloseClient { .. } | Action::Dropped(_));
                prop_assert_eq!(actions.iter().filter(ends).count(), 1, "{} gave {:?}", line, actions);
            }
        }
    }
}
