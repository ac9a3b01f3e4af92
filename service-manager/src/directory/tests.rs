//! Scripts in, text out.
//!
//! One line is one event at the time it stands at. `+500ms` moves the clock in steps of at most 1 s with a tick after
//! each, `pause 20s` in one. Sessions are `s1`, `s2`, …

mod bounds;
mod claims;
mod flapping;
mod histories;
mod observers;
mod offline;
mod reach;
mod restarts;
mod starts;

use std::fmt::Write;

use base::Span;
use expect_test::{Expect, expect};

use super::*;

fn settings(warming: Span) -> Settings {
    let terms = Terms {
        heartbeat: Span::secs(5),
        ttl: Span::secs(15),
        warming,
        probe: Span::secs(1),
        hello: Span::secs(10),
        offline_linger: Span::secs(30),
    };
    let limits = Limits {
        sessions: 8,
        subscriptions: 3,
        services: 3,
        name_bytes: 32,
        extra_bytes: 16,
        set_bytes: 1_000,
        page_bytes: 200,
        claims: 4,
        claim_ttl: Span::secs(600),
        id_names: 2,
        offline_ids: 2,
    };
    Settings { cluster: "test".to_owned(), terms, limits, epoch_start: 100, remembers: false }
}

fn service(name: &str) -> msg::Service {
    let (name, address) = name.split_once('@').unwrap_or((name, ""));
    msg::Service { name: name.to_owned(), address: address.to_owned(), ..Default::default() }
}

fn hello(node: &str, host: &str, epoch: u64, epoch_seen_max: u64) -> To {
    let (cluster, proto) = ("test".to_owned(), PROTO);
    let (node, host, role) = (node.to_owned(), host.to_owned(), "linkd".to_owned());
    let ops_address = format!("{host}:7700");
    To::Hello(msg::Hello { cluster, node, role, host, ops_address, epoch, epoch_seen_max, proto })
}

/// `s1 hello linkd-1 hostA EPOCH SEEN`, `s1 register a b@1.2.3.4:5`, `s1 follow a/`, `s1 pong 1`, `s1 close`, …
fn event(words: &[&str]) -> Event {
    let session = Generation(words[0][1..].parse().unwrap());
    let rest = &words[2..];
    let number = |at: usize| rest.get(at).map_or(0, |word| word.parse().unwrap());
    let message = match words[1] {
        // `s1 open away`: from another machine.
        "open" => return Event::Opened { session, loopback: !rest.contains(&"away") },
        // `s0 dialled game-1 m/7 10.0.0.1:1 refused`: the address could not be dialled, and why.
        "dialled" => {
            let failed = (rest.len() > 3).then(|| rest[3..].join(" "));
            let (node, name) = (NodeId::new(rest[0]).unwrap(), rest[1].to_owned());
            return Event::Dialled { node, name, address: rest[2].to_owned(), failed };
        }
        "close" => return Event::Closed { session },
        "hello" => hello(rest[0], rest[1], number(2), number(3)),
        "register" => {
            To::Register(msg::Register { seq: 1, services: rest.iter().map(|name| service(name)).collect() })
        }
        // `s1 follow m/ loads`.
        "follow" => {
            To::Subscribe(msg::Subscribe { name: rest[0].to_owned(), loads: rest.contains(&"loads") })
        }
        "load" => To::Load(msg::Load { online: u32::try_from(number(0)).unwrap(), ..Default::default() }),
        "names" => To::OfflineIds(msg::OfflineIds { ids: rest.iter().map(|id| (*id).to_owned()).collect() }),
        // `s1 takes 1`, `s1 leaves 1`: the answer to an Offline.
        "takes" | "leaves" => {
            To::OfflineTaken(msg::OfflineTaken { seq: number(0), taken: words[1] == "takes" })
        }
        "unfollow" => To::Unsubscribe(msg::Unsubscribe { name: rest[0].to_owned() }),
        "beat" => To::Heartbeat(msg::Heartbeat { seq: number(0) }),
        "pong" => To::Pong(msg::Pong { nonce: number(0) }),
        // `s1 claim key value 500` for 500 ms; `own` ends with the node, `again` is a replay.
        "claim" => To::Claim(msg::Claim {
            seq: 1,
            key: rest[0].to_owned(),
            value: rest[1].as_bytes().to_vec().into(),
            ttl_ms: u32::try_from(number(2)).unwrap(),
            outlives_node: !rest.contains(&"own"),
            replay: rest.contains(&"again"),
        }),
        "ids" => {
            let count = u32::try_from(number(1)).unwrap();
            To::AllocateIds(msg::AllocateIds { seq: 1, name: rest[0].to_owned(), count })
        }
        "bye" => To::Bye(msg::Bye {}),
        other => panic!("no such word: {other}"),
    };
    Event::Said { session, message }
}

fn print(action: &Action, out: &mut String) {
    if let Action::SendAll { sessions, message } = action {
        let each = sessions.iter().map(|&session| Action::Send { session, message: message.clone() });
        return each.for_each(|action| print(&action, out));
    }
    let instances = |list: &[msg::Instance]| {
        let one = |i: &msg::Instance| {
            let service = i.service.as_ref().unwrap();
            let at = if service.address.is_empty() { String::new() } else { format!("@{}", service.address) };
            let lost = if i.unreachable { " unreachable" } else { "" };
            format!(" {}:{}{at}/{}{lost}", i.node, service.name, i.epoch)
        };
        list.iter().map(one).collect::<String>()
    };
    let name = |number: i32| Code::find(number).map_or("ok", |code| code.name);
    let _ = match action {
        Action::Count(_) | Action::SendAll { .. } => Ok(()),
        Action::Dial { node, name, address } => writeln!(out, "  dials {address} of {node} for {name}"),
        Action::Save(save) => writeln!(out, "  saves {}", fact(save)),
        Action::Close { session } => writeln!(out, "  s{} closed", session.0),
        Action::Send { session, message } => {
            let _ = write!(out, "  s{} ", session.0);
            match message {
                From::Welcome(w) => {
                    writeln!(out, "welcome epoch {}{}", w.epoch, if w.warming { " warming" } else { "" })
                }
                From::Refused(r) => writeln!(out, "{}: {}", name(r.code), r.text),
                From::Registered(r) if r.code == 0 => writeln!(out, "registered at {}", r.revision),
                From::Registered(r) => writeln!(out, "not registered: {}: {}", name(r.code), r.text),
                From::Snapshot(s) if s.code != 0 => writeln!(out, "{}: {}: {}", s.name, name(s.code), s.text),
                From::Snapshot(s) => {
                    let marks = format!(
                        "{}{}",
                        if s.warming { " warming" } else { "" },
                        if s.more { " more" } else { "" }
                    );
                    writeln!(out, "{} at {}{marks}:{}", s.name, s.revision, instances(&s.instances))
                }
                From::Delta(d) => {
                    let gone: String =
                        d.removed.iter().map(|key| format!(" -{}:{}", key.node, key.name)).collect();
                    writeln!(out, "{} {}->{}:{}{gone}", d.name, d.previous, d.revision, instances(&d.added))
                }
                From::Warm(w) => writeln!(out, "warm at {}", w.revision),
                From::Heartbeat(b) => writeln!(out, "beat {}", b.seq),
                From::Claimed(c) if c.code == 0 => writeln!(out, "holds it"),
                From::Claimed(c) => writeln!(out, "holds it not: {}: {}", name(c.code), c.text),
                From::Loads(l) => {
                    let load =
                        |n: &msg::NodeLoad| format!(" {}/{} {}", n.node, n.epoch, n.load.unwrap().online);
                    writeln!(out, "loads:{}", l.loads.iter().map(load).collect::<String>())
                }
                From::Offline(o) => writeln!(out, "asked {}: {} of {}/{}", o.seq, o.id, o.node, o.epoch),
                From::Unreachable(u) if u.text.is_empty() => writeln!(out, "{} is reached", u.address),
                From::Unreachable(u) => writeln!(out, "{} is not reached: {}", u.address, u.text),
                From::AllocatedIds(a) if a.code == 0 => writeln!(out, "ids from {}", a.first),
                From::AllocatedIds(a) => writeln!(out, "no ids: {}: {}", name(a.code), a.text),
                From::Ping(p) => writeln!(out, "ping {}", p.nonce),
            }
        }
    };
}

fn fact(save: &Save) -> String {
    match save {
        Save::Epoch { node, epoch } => format!("{node} has epoch {epoch}"),
        Save::ForgetEpoch { node } => format!("no epoch of {node}"),
        Save::EpochMax { epoch } => format!("no epoch above {epoch}"),
        Save::Claim { key, value, ttl, node } => {
            let node = node.as_ref().map_or_else(String::new, |node| format!(", ends with {node}"));
            format!("{key} = {} for {ttl}{node}", String::from_utf8_lossy(value))
        }
        Save::Unclaim { key } => format!("{key} is free"),
        Save::Offline { node, ids } => format!("{node} leaves [{}]", ids.join(" ")),
        Save::Ids { name, next } => format!("the next id of {name} is {next}"),
    }
}

fn run(core: &mut Directory, now: &mut Mono, script: &str) -> String {
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let _ = writeln!(out, "{line}");
        let time = |text: &str| text.parse::<node::config::Time>().unwrap().span();
        let mut actions = Vec::new();
        if let Some(text) = line.strip_prefix('+') {
            pass(core, now, time(text), &mut actions);
        } else if words[0] == "pause" {
            *now += time(words[1]);
            core.step(*now, Event::Tick, &mut actions);
        } else {
            core.step(*now, event(&words), &mut actions);
        }
        core.check();
        actions.iter().for_each(|action| print(action, &mut out));
    }
    out
}

/// Time passes with ticks, as it does for a directory that is not paused.
fn pass(core: &mut Directory, now: &mut Mono, span: Span, actions: &mut Vec<Action>) {
    let end = *now + span;
    while *now < end {
        *now = end.min(*now + Span::secs(1));
        core.step(*now, Event::Tick, actions);
    }
}

fn check(script: &str, expected: Expect) {
    let mut core = Directory::new(settings(Span::ZERO), Mono::ZERO);
    expected.assert_eq(&run(&mut core, &mut Mono::ZERO.clone(), script));
}

/// Holds: H-13, Z-22.
#[test]
fn a_follower_gets_the_list_and_then_each_change_once() {
    check(
        "s1 open
         s1 hello game-1 hostA
         s1 register m/7@hostA:1
         s2 open
         s2 hello linkd-1 hostB
         s2 follow m/
         s2 follow linkd
         s1 register m/7@hostA:1 m/8@hostA:1
         s1 register m/7@hostA:1 m/8@hostA:1
         s1 register m/8@hostA:2
         s2 follow m/
         s1 bye",
        expect![[r#"
            s1 open
            s1 hello game-1 hostA
              s1 welcome epoch 101
            s1 register m/7@hostA:1
              dials hostA:1 of game-1 for m/7
              s1 registered at 2
            s2 open
            s2 hello linkd-1 hostB
              s2 welcome epoch 102
            s2 follow m/
              s2 m/ at 3: game-1:m/7@hostA:1/101
            s2 follow linkd
              s2 linkd at 3:
            s1 register m/7@hostA:1 m/8@hostA:1
              s2 m/ 3->4: game-1:m/8@hostA:1/101
              dials hostA:1 of game-1 for m/8
              s1 registered at 4
            s1 register m/7@hostA:1 m/8@hostA:1
              s1 registered at 4
            s1 register m/8@hostA:2
              s2 m/ 4->5: game-1:m/8@hostA:2/101 -game-1:m/7
              dials hostA:2 of game-1 for m/8
              s1 registered at 5
            s2 follow m/
              s2 m/ at 5: game-1:m/8@hostA:2/101
            s1 bye
              s1 closed
              s2 m/ 5->6: -game-1:m/8
        "#]],
    );
}

/// Holds: Z-23.
#[test]
fn a_directory_that_has_just_started_says_so_for_one_lease() {
    let mut core = Directory::new(settings(Span::secs(15)), Mono::ZERO);
    let script = "s1 open
         s1 hello linkd-1 hostA 50
         s1 follow m/7
         +10s
         s1 beat 1
         s2 open
         s2 hello game-1 hostB 60
         s2 register m/7
         +5s
         s1 follow m/7";
    expect![[r#"
        s1 open
        s1 hello linkd-1 hostA 50
          s1 welcome epoch 50 warming
        s1 follow m/7
          s1 m/7 at 1 warming:
        +10s
        s1 beat 1
          s1 beat 1
        s2 open
        s2 hello game-1 hostB 60
          s2 welcome epoch 60 warming
        s2 register m/7
          s1 m/7 1->3: game-1:m/7/60
          s2 registered at 3
        +5s
          s1 warm at 3
          s2 warm at 3
        s1 follow m/7
          s1 m/7 at 3: game-1:m/7/60
    "#]]
    .assert_eq(&run(&mut core, &mut Mono::ZERO.clone(), script));
}

#[test]
fn a_long_list_comes_in_pages() {
    let mut core = Directory::new(settings(Span::ZERO), Mono::ZERO);
    let mut now = Mono::ZERO;
    run(
        &mut core,
        &mut now,
        "s1 open\ns1 hello game-1 hostA\ns1 register a b c\ns2 open\ns2 hello watcher hostW",
    );
    expect![[r#"
        s2 follow /
          s2 / at 3 more: game-1:_node@hostA:7700/101
          s2 / at 3 more: watcher:_node@hostW:7700/102 game-1:a/101
          s2 / at 3: game-1:b/101 game-1:c/101
    "#]]
    .assert_eq(&run(&mut core, &mut now, "s2 follow /"));
}
