//! Only `net` opens sockets. Whoever else needs one gets it from there, so that
//! limits, TLS and the simulated network have one place to stand.

use crate::complaint::{Complaint, lines};
use crate::rust::Rust;
use crate::tree::{judge, planted};

/// `tests/` plays hostile clients; the benches dial baselines.
const EXEMPT: &[&str] = &["net/", "tests/", "cli/src/bench"];

const SOCKETS: &[&str] =
    &["TcpListener", "TcpStream", "UdpSocket", "TcpSocket", "UnixListener", "UnixStream"];
const OPENERS: &[&str] = &["bind", "connect", "connect_timeout", "from_std", "new_v4", "new_v6", "pair"];

/// Shortcuts of tonic that bind or dial by themselves.
const SHORTCUTS: &[&str] = &[". connect ( )", ". connect_lazy ( )", ". serve (", ". serve_with_shutdown ("];

fn rule(file: &Rust) -> Vec<Complaint> {
    if EXEMPT.iter().any(|path| file.path.starts_with(path)) {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut complain = |line: usize, said: String| {
        let todo = "take the stream or listener from `net`";
        out.push(Complaint::new(&file.path, line, format!("{said} opens a socket outside `net`"), todo));
    };
    for socket in SOCKETS {
        for opener in OPENERS {
            for line in file.find_in_production(&format!("{socket} :: {opener}")) {
                complain(line, format!("`{socket}::{opener}`"));
            }
        }
    }
    for line in file.find_in_production("socket2") {
        complain(line, "`socket2`".to_owned());
    }
    if !file.find("tonic").is_empty() {
        for shortcut in SHORTCUTS {
            for line in file.find_in_production(shortcut) {
                complain(line, format!("tonic's `{}`", shortcut.replace(' ', "")));
            }
        }
    }
    out
}

#[test]
fn the_tree_opens_sockets_only_in_net() {
    judge(rule);
}

#[test]
fn fires_on_bind_connect_and_tonics_shortcuts() {
    let text = "//! x\nuse tokio::net::TcpListener;\nfn a() { TcpListener::bind(x); }\n\
                fn b() { std::net::TcpStream::connect(x); }\nfn c(stream: tokio::net::TcpStream) {}\n\
                fn d() { tonic::Endpoint::new(x).connect(); }\n\
                #[cfg(test)]\nmod tests { fn e() { TcpStream::connect(x); } }\n";
    let mut fired = lines(&rule(&planted("linkd/src/server.rs", text)));
    fired.sort_unstable();
    assert_eq!(fired, [3, 4, 6]);
    assert!(rule(&planted("net/src/tcp.rs", text)).is_empty());
    assert!(rule(&planted("cli/src/bench/echo.rs", text)).is_empty());
}
