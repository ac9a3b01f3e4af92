//! Pure code decides and touches nothing: `base`, `wire` and every core do no
//! I/O, read no clock, draw no random number and iterate no hash map, so that
//! the same events always give the same actions.

use crate::complaint::{Complaint, demand_none, lines};
use crate::rust::Rust;
use crate::tree::{judge, parsed, planted};

/// Crates that are pure as a whole (their `build.rs` is not).
const PURE: &[&str] = &["base/src/", "wire/src/"];

/// Files and folders that are cores; whoever writes them puts the mark on.
const CORES: &[&str] = &["linkd/src/router", "service-manager/src/directory", "node/src/lifecycle.rs"];

/// What a pure file may not say, and what to do instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("tokio", "move it into the shell and hand the core an event"),
    ("Instant :: now", "take `now: Mono` as an argument"),
    ("SystemTime", "take the time as an argument; wall clocks decide nothing"),
    ("HashMap", "use BTreeMap: iteration order must not reach an action"),
    ("HashSet", "use BTreeSet: iteration order must not reach an action"),
    ("papaya", "use BTreeMap: a core has one owner"),
    ("rand", "take the number, or a seed, as part of an event"),
    ("fastrand", "take the number, or a seed, as part of an event"),
    ("thread ::", "move the thread into the shell"),
    ("std :: fs", "move files into the shell or a store"),
];

/// Plain values of std::net that a pure file may carry.
const ADDRESSES: &[&str] = &[
    "SocketAddr",
    "SocketAddrV4",
    "SocketAddrV6",
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "AddrParseError",
    "self",
];

fn is_pure(file: &Rust) -> bool {
    !file.is_test && (PURE.iter().any(|crate_| file.path.starts_with(crate_)) || file.is_core())
}

fn rule(file: &Rust) -> Vec<Complaint> {
    if !is_pure(file) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for (pattern, todo) in FORBIDDEN {
        for line in file.find_in_production(pattern) {
            let said = pattern.replace(' ', "");
            out.push(Complaint::new(&file.path, line, format!("pure code says `{said}`"), *todo));
        }
    }
    for (name, line) in net_names(file) {
        if !ADDRESSES.contains(&name.as_str()) && !file.in_test(line) {
            let wrong = format!("pure code says `std::net::{name}`");
            out.push(Complaint::new(
                &file.path,
                line,
                wrong,
                "only addresses as values; sockets live in net",
            ));
        }
    }
    out
}

/// The names taken from `std::net`, by path or out of a braced group.
fn net_names(file: &Rust) -> Vec<(String, usize)> {
    let text = |index: usize| file.tokens.get(index).map_or("", |token| token.text.as_str());
    let mut out = Vec::new();
    for start in 0..file.tokens.len() {
        let head = ["std", ":", ":", "net", ":", ":"];
        if !head.iter().enumerate().all(|(offset, word)| text(start + offset) == *word) {
            continue;
        }
        let first = start + head.len();
        let many = text(first) == "{";
        for token in file.tokens.iter().skip(first).take_while(|token| token.text != "}") {
            if token.text.chars().next().is_some_and(char::is_alphabetic) {
                out.push((token.text.clone(), token.line));
            }
            if !many {
                break;
            }
        }
    }
    out
}

fn marks(file: &Rust) -> Vec<Complaint> {
    let required = CORES.iter().any(|core| file.path.starts_with(core));
    if !required || file.is_test || file.is_core() {
        return Vec::new();
    }
    let todo = "write `//! Core: what it decides.` among its first doc lines";
    vec![Complaint::new(&file.path, 1, "a core without its mark", todo)]
}

#[test]
fn the_tree_keeps_cores_pure() {
    judge(rule);
}

#[test]
fn the_tree_marks_its_cores() {
    demand_none(parsed().iter().flat_map(marks).collect());
}

#[test]
fn fires_on_a_clock_a_map_and_a_socket() {
    let text = "//! Core: decides.\nuse std::net::{SocketAddr, TcpStream};\nuse std::collections::HashMap;\n\
                fn a() { std::time::Instant::now(); }\nfn b(x: std::net::IpAddr) {}\n\
                // tokio is only a word here\nfn c() { std::thread::spawn(d); }\n\
                #[cfg(test)]\nmod tests { use std::collections::HashSet; }\n";
    let mut fired = lines(&rule(&planted("mesh/src/peers.rs", text)));
    fired.sort_unstable();
    assert_eq!(fired, [2, 3, 4, 7]);
    let shell = text.replace("Core: decides", "A shell");
    assert!(rule(&planted("mesh/src/server.rs", &shell)).is_empty());
    assert_eq!(rule(&planted("base/src/lib.rs", &shell)).len(), 4);
}

#[test]
fn fires_on_a_core_without_its_mark() {
    assert_eq!(marks(&planted("linkd/src/router/bind.rs", "//! Binds.\n")).len(), 1);
    assert!(marks(&planted("linkd/src/router/bind.rs", "//! Binds.\n//! Core: binds.\n")).is_empty());
    assert!(marks(&planted("linkd/src/router/tests.rs", "//! Scripts.\n")).is_empty());
}
