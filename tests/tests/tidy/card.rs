//! The frame the project was asked to stand on, in earnest: every package of it
//! is used by production code once the step that needs it has landed.

use crate::complaint::{Complaint, demand_none};
use crate::rust::Rust;
use crate::tree::{parsed, planted};

/// The last step that has landed; whoever lands one raises it.
const LANDED: u32 = 3;

/// Package and the step that brings it.
const CARD: &[(&str, u32)] = &[
    ("tokio", 1),
    ("prost", 1),
    ("tonic", 1),
    ("serde", 1),
    ("tracing", 1),
    ("crossbeam", 1),
    ("sled", 3),
    ("openraft", 7),
];

/// Not production: these only test or show.
const ASIDE: &[&str] = &["tests/", "examples/", "cli/src/bench"];

fn rule(landed: u32, files: &[Rust]) -> Vec<Complaint> {
    let production = |file: &&Rust| !file.is_test && !ASIDE.iter().any(|path| file.path.starts_with(path));
    let files: Vec<&Rust> = files.iter().filter(production).collect();
    let used = |package: &str| {
        let pattern = format!("{package} ::");
        files.iter().any(|file| !file.find_in_production(&pattern).is_empty())
    };
    let due = CARD.iter().filter(|(package, step)| *step <= landed && !used(package));
    let complain = |(package, step): &(&str, u32)| {
        let wrong = format!("no production code uses `{package}`, due since step {step}");
        Complaint::new("Cargo.toml", 1, wrong, "use it where the design says")
    };
    due.map(complain).collect()
}

#[test]
fn the_tree_uses_the_card() {
    demand_none(rule(LANDED, &parsed()));
}

#[test]
fn fires_on_a_package_that_only_tests_use() {
    let used = "//! x\nuse prost::Message; use tonic::Status; use serde::Serialize;\n#[tokio::main]\n\
                async fn a() { tracing::info!(); }\n#[cfg(test)]\nmod tests { use crossbeam::queue::ArrayQueue; }\n";
    let files = [planted("linkd/src/a.rs", used), planted("tests/src/a.rs", "//! x\nuse crossbeam::x;\n")];
    let complaints = rule(1, &files);
    assert_eq!(complaints.len(), 1);
    assert!(complaints[0].wrong.contains("`crossbeam`"));
    assert_eq!(rule(7, &files).len(), 3);
    assert!(rule(0, &files).is_empty());
}
