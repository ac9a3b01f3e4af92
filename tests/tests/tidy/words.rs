//! What no committed file may name: hosts of package registries (the lock file
//! has its own way) and places of one machine.

use crate::complaint::{Complaint, demand_none, lines};
use crate::tree::{Text, texts};

/// Spelled in two halves, so that this file does not name them.
const HOSTS: &[(&str, &str)] = &[
    ("crates", ".io"),
    ("npmjs", ".org"),
    ("npmjs", ".com"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("rubygems", ".org"),
    ("rsproxy", ".cn"),
    ("proxy.golang", ".org"),
    ("registry-1.docker", ".io"),
    ("mirrors.aliyun", ".com"),
];

fn rule(text: &Text) -> Vec<Complaint> {
    let mut out = Vec::new();
    for (index, line) in text.text.lines().enumerate() {
        // cargo writes the origin of each package into its lock file.
        let origin = text.path.ends_with("Cargo.lock") && line.starts_with("source = \"registry+");
        for (first, second) in HOSTS {
            if !origin && line.contains(&format!("{first}{second}")) {
                let wrong = "names a host of a package registry";
                out.push(Complaint::new(&text.path, index + 1, wrong, "say the package's name only"));
            }
        }
        if names_a_machine(line) {
            let wrong = "names a folder outside the repository";
            out.push(Complaint::new(&text.path, index + 1, wrong, "say it without that path"));
        }
    }
    out
}

fn names_a_machine(line: &str) -> bool {
    let workshop = concat!("/wo", "rk/");
    let shared = concat!("../sha", "red");
    // `https://host/…` and `guides/…` are no absolute paths.
    let absolute =
        |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'));
    line.match_indices(workshop).any(|(at, _)| absolute(at)) || line.contains(shared)
}

#[test]
fn the_tree_names_no_foreign_place() {
    demand_none(texts().iter().flat_map(rule).collect());
}

#[test]
fn fires_on_hosts_and_machines() {
    let registry = concat!("crates", ".io");
    let planted = format!(
        "fine\nsee {registry}\nin {}x\nin ({}y)\nhttps://a.b{}\n",
        concat!("/wo", "rk/"),
        concat!("../sha", "red/"),
        concat!("/wo", "rk/"),
    );
    let text = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
    assert_eq!(lines(&rule(&text("docs/a.md", &planted))), [2, 3, 4]);
    let origin = format!("source = \"registry+https://github.com/rust-lang/{registry}-index\"\n");
    assert!(rule(&text("Cargo.lock", &origin)).is_empty());
    assert_eq!(rule(&text("a.toml", &origin)).len(), 1);
}
