//! With a store: what is said was saved before, and a restart forgets none of it.

use super::*;

/// What the disk holds after `saves`, as a store would keep it: the last word on each fact.
#[derive(Debug, Default)]
struct Disk(BTreeMap<String, Save>);

impl Disk {
    fn save(&mut self, save: &Save) {
        let key = match save {
            Save::Epoch { node, .. } | Save::ForgetEpoch { node } => format!("e{node}"),
            Save::EpochMax { .. } => "m".to_owned(),
            Save::Claim { key, .. } | Save::Unclaim { key } => format!("c{key}"),
            Save::Ids { name, .. } => format!("i{name}"),
            Save::Offline { node, .. } => format!("o{node}"),
        };
        match save {
            Save::ForgetEpoch { .. } | Save::Unclaim { .. } => drop(self.0.remove(&key)),
            save => drop(self.0.insert(key, save.clone())),
        }
    }
}

fn remembering(warming: Span) -> Settings {
    Settings { remembers: true, epoch_start: 0, ..settings(warming) }
}

/// Runs scripts with a restart between two of them.
fn lives(scripts: &[&str]) -> String {
    let (mut disk, mut out, mut now) = (Disk::default(), String::new(), Mono::ZERO);
    for (life, script) in scripts.iter().enumerate() {
        let mut core = Directory::new(remembering(Span::secs(if life == 0 { 0 } else { 15 })), now);
        core.restore(now, disk.0.values().cloned());
        core.check();
        let _ = writeln!(out, "# life {}", life + 1);
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut actions = Vec::new();
            let _ = writeln!(out, "{line}");
            match line.strip_prefix('+') {
                Some(span) => pass(
                    &mut core,
                    &mut now,
                    span.parse::<node::config::Time>().unwrap().span(),
                    &mut actions,
                ),
                None => core.step(now, event(&line.split_whitespace().collect::<Vec<_>>()), &mut actions),
            }
            core.check();
            for action in &actions {
                if let Action::Save(save) = action {
                    disk.save(save);
                }
                print(action, &mut out);
            }
        }
    }
    out
}

/// Holds: H-09.
#[test]
fn epochs_go_on_where_they_were() {
    expect![[r#"
        # life 1
        s1 open
        s1 hello game-1 hostA
          saves game-1 has epoch 1
          s1 welcome epoch 1
        s2 open
        s2 hello game-2 hostB
          saves game-2 has epoch 2
          s2 welcome epoch 2
        s2 bye
          s2 closed
        # life 2
        s1 open
        s1 hello game-1 hostA 1
          s1 welcome epoch 1 warming
        s2 open
        s2 hello game-2 hostB
          saves game-2 has epoch 3
          s2 welcome epoch 3 warming
        s3 open
        s3 hello game-3 hostC
          saves game-3 has epoch 4
          s3 welcome epoch 4 warming
    "#]]
    .assert_eq(&lives(&[
        "s1 open
         s1 hello game-1 hostA
         s2 open
         s2 hello game-2 hostB
         s2 bye",
        "s1 open
         s1 hello game-1 hostA 1
         s2 open
         s2 hello game-2 hostB
         s3 open
         s3 hello game-3 hostC",
    ]));
}

/// A ticket and the homes of two keys; then a life in which only the second node comes back.
const CLAIMS: [&str; 2] = [
    "s1 open
         s1 hello linkd-1 hostA
         s1 claim ticket/1 linkd-1 20000
         s1 claim ticket/1 linkd-1 10000
         s1 claim ticket/1 linkd-1 30000
         s1 claim owner/7 linkd-1 60000 own
         s2 open
         s2 hello linkd-2 hostB
         s2 claim owner/8 linkd-2 60000 own
         s2 claim ticket/1 linkd-2 1000",
    "s2 open
         s2 hello linkd-2 hostB 2
         s2 claim ticket/1 linkd-2 1000
         s2 claim ticket/2 linkd-2 1000
         s2 claim owner/7 linkd-2 1000
         +14s
         s2 beat 1
         s2 claim owner/8 linkd-2 60000 own
         +1s
         s2 beat 2
         s2 claim owner/7 linkd-2 1000 own
         +15s",
];

#[test]
fn claims_stay_held_and_end_with_their_nodes() {
    expect![[r#"
        # life 1
        s1 open
        s1 hello linkd-1 hostA
          saves linkd-1 has epoch 1
          s1 welcome epoch 1
        s1 claim ticket/1 linkd-1 20000
          saves ticket/1 = linkd-1 for 20s
          s1 holds it
        s1 claim ticket/1 linkd-1 10000
          s1 holds it
        s1 claim ticket/1 linkd-1 30000
          saves ticket/1 = linkd-1 for 30s
          s1 holds it
        s1 claim owner/7 linkd-1 60000 own
          saves owner/7 = linkd-1 for 60s, ends with linkd-1
          s1 holds it
        s2 open
        s2 hello linkd-2 hostB
          saves linkd-2 has epoch 2
          s2 welcome epoch 2
        s2 claim owner/8 linkd-2 60000 own
          saves owner/8 = linkd-2 for 60s, ends with linkd-2
          s2 holds it
        s2 claim ticket/1 linkd-2 1000
          s2 holds it not: TAKEN: the key is held for another value
        # life 2
        s2 open
        s2 hello linkd-2 hostB 2
          s2 welcome epoch 2 warming
        s2 claim ticket/1 linkd-2 1000
          s2 holds it not: TAKEN: the key is held for another value
        s2 claim ticket/2 linkd-2 1000
          saves ticket/2 = linkd-2 for 1s
          s2 holds it
        s2 claim owner/7 linkd-2 1000
          s2 holds it not: TAKEN: the key is held for another value
        +14s
          saves ticket/2 is free
        s2 beat 1
          s2 beat 1
        s2 claim owner/8 linkd-2 60000 own
          s2 holds it
        +1s
          saves owner/7 is free
          s2 warm at 1
        s2 beat 2
          s2 beat 2
        s2 claim owner/7 linkd-2 1000 own
          saves owner/7 = linkd-2 for 1s, ends with linkd-2
          s2 holds it
        +15s
          saves owner/7 is free
          saves ticket/1 is free
          s2 TIMEOUT: nothing was heard from node linkd-2 for 15s
          s2 closed
          saves owner/8 is free
    "#]]
    .assert_eq(&lives(&CLAIMS));
}

/// Holds: Q51.
#[test]
fn ids_are_given_once_whatever_happens_between() {
    expect![[r#"
        # life 1
        s1 open
        s1 hello game-1 hostA
          saves game-1 has epoch 1
          s1 welcome epoch 1
        s1 ids guild 10
          saves the next id of guild is 11
          s1 ids from 1
        s1 ids guild 1
          saves the next id of guild is 12
          s1 ids from 11
        s1 ids mail 1000000
          saves the next id of mail is 1000001
          s1 ids from 1
        s1 ids other 1
          s1 no ids: LIMIT: this directory counts ids under 2 names
        s1 ids guild 0
          s1 no ids: BAD_MESSAGE: 0 ids at once; 1 to 1000000 are given
        s1 ids guild 1000001
          s1 no ids: BAD_MESSAGE: 1000001 ids at once; 1 to 1000000 are given
        # life 2
        s1 open
        s1 hello game-1 hostA 1
          s1 welcome epoch 1 warming
        s1 ids guild 10
          saves the next id of guild is 22
          s1 ids from 12
    "#]]
    .assert_eq(&lives(&[
        "s1 open
         s1 hello game-1 hostA
         s1 ids guild 10
         s1 ids guild 1
         s1 ids mail 1000000
         s1 ids other 1
         s1 ids guild 0
         s1 ids guild 1000001",
        "s1 open
         s1 hello game-1 hostA 1
         s1 ids guild 10",
    ]));
}

/// Holds: Q26.
#[test]
fn what_was_left_behind_while_the_directory_was_away_is_handed_over() {
    expect![[r#"
        # life 1
        s1 open
        s1 hello game-1 hostA
          saves game-1 has epoch 1
          s1 welcome epoch 1
        s1 names timers
          saves game-1 leaves [timers]
        s2 open
        s2 hello game-2 hostB
          saves game-2 has epoch 2
          s2 welcome epoch 2
        s2 names timers
          saves game-2 leaves [timers]
        # life 2
        s2 open
        s2 hello game-2 hostB 2
          s2 welcome epoch 2 warming
        s2 names timers
          saves game-2 leaves [timers]
        +10s
        s2 beat 1
          s2 beat 1
        +10s
          s2 warm at 1
        s2 beat 2
          s2 beat 2
        +10s
          s2 asked 1: timers of game-1/1
        s2 takes 1
          saves game-1 leaves []
        # life 3
        s2 open
        s2 hello game-2 hostB 2
          s2 welcome epoch 2 warming
        s2 names
          saves game-2 leaves []
        +10s
        s2 beat 1
          s2 beat 1
    "#]]
    .assert_eq(&lives(&[
        "s1 open
         s1 hello game-1 hostA
         s1 names timers
         s2 open
         s2 hello game-2 hostB
         s2 names timers",
        "s2 open
         s2 hello game-2 hostB 2
         s2 names timers
         +10s
         s2 beat 1
         +10s
         s2 beat 2
         +10s
         s2 takes 1",
        "s2 open
         s2 hello game-2 hostB 2
         s2 names
         +10s
         s2 beat 1",
    ]));
}

#[test]
fn without_a_store_nobody_gets_ids() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s1 ids guild 10",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 ids guild 10
              s1 no ids: NO_STORE: this directory keeps nothing on a disk, so it could give ids twice; set service_manager.store
        "#]],
    );
}
