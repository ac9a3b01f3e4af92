//! Who may import whom: the table of the house, held over `cargo metadata`,
//! dev- and build-dependencies included. Also which crates stand behind a door
//! that only one of ours opens.

use std::collections::BTreeMap;

use cargo_metadata::MetadataCommand;
use tests::repo;

use crate::complaint::{Complaint, demand_none};

/// `None`: may import anything of ours.
const TABLE: &[(&str, Option<&[&str]>)] = &[
    ("base", Some(&[])),
    ("redirect-macros", Some(&[])),
    ("wire", Some(&["base"])),
    ("net", Some(&["base", "wire"])),
    ("store", Some(&["base"])),
    ("node", Some(&["base", "wire", "net"])),
    ("consensus", Some(&["base", "wire", "net", "node", "store"])),
    ("mesh", Some(&["base", "wire", "net", "node"])),
    ("service-manager", Some(SERVICE)),
    ("global-cache", Some(SERVICE)),
    ("linkd", Some(SERVICE)),
    ("control", Some(SERVICE)),
    // It has the arbiter's core for providers that need no other process.
    ("tables", Some(&["base", "wire", "net", "node", "store", "global-cache", "redirect-macros"])),
    ("linkstead", Some(&["base", "wire", "net", "node", "mesh", "tables", "redirect-macros"])),
    (
        "arena",
        Some(&["base", "wire", "net", "node", "store", "mesh", "tables", "linkstead", "redirect-macros"]),
    ),
    ("client", Some(&["base", "wire", "net"])),
    ("cli", None),
    ("hello", None),
    ("bazaar", None),
    ("tavern", None),
    ("fuzz", None),
    ("tests", None),
];

const SERVICE: &[&str] = &["base", "wire", "net", "node", "store", "consensus", "mesh"];

/// Packages from outside that may stand in few manifests only. `cli` has the
/// benches' baselines, `linkd` plays a browser in its tests.
const DOORS: &[(&str, &[&str])] = &[
    ("openraft", &["consensus", "tests", "cli"]),
    ("sled", &["store", "tests", "cli"]),
    ("redb", &["store", "tests", "cli"]),
    ("socket2", &["net", "tests", "cli"]),
    ("tokio-tungstenite", &["net", "linkd", "client", "tests", "cli"]),
];

/// One member of the workspace, as far as this rule cares.
struct Member {
    name: String,
    manifest: String,
    text: String,
    dependencies: Vec<String>,
}

impl Member {
    fn complain(&self, about: &str, wrong: String, todo: &str) -> Complaint {
        let at = |line: &str| line.trim_start().starts_with(about);
        let line = self.text.lines().position(at).map_or(1, |index| index + 1);
        Complaint::new(&self.manifest, line, wrong, todo)
    }
}

fn rule(members: &[Member]) -> Vec<Complaint> {
    let table: BTreeMap<_, _> = TABLE.iter().copied().collect();
    let ours = |name: &str| table.contains_key(name) || members.iter().any(|member| member.name == name);
    let mut out = Vec::new();
    for member in members {
        let name = &member.name;
        let Some(allowed) = table.get(name.as_str()) else {
            let wrong = format!("the table of imports does not know `{name}`");
            out.push(member.complain("name", wrong, "add its row to tests/tests/tidy/imports.rs"));
            continue;
        };
        for dependency in &member.dependencies {
            let dependency = dependency.as_str();
            let door = DOORS.iter().find(|(outside, _)| *outside == dependency);
            if door.is_some_and(|(_, open)| !open.contains(&name.as_str())) {
                let wrong = format!("`{name}` depends on `{dependency}`, which stands behind a door");
                out.push(member.complain(dependency, wrong, "use the crate of ours that wraps it"));
            }
            let forbidden = allowed.is_some_and(|list| !list.contains(&dependency));
            if forbidden && ours(dependency) {
                let wrong = format!("`{name}` may not import `{dependency}`");
                out.push(member.complain(dependency, wrong, "move what is shared down, or the caller up"));
            }
        }
    }
    out
}

fn members() -> Vec<Member> {
    let root = repo::root();
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap_or_else(|error| panic!("cargo metadata fails: {error}"));
    let member = |package: cargo_metadata::Package| {
        let manifest = package.manifest_path.into_std_path_buf();
        Member {
            name: package.name.to_string(),
            text: std::fs::read_to_string(&manifest).unwrap_or_default(),
            manifest: manifest.strip_prefix(&root).unwrap_or(&manifest).display().to_string(),
            dependencies: package.dependencies.into_iter().map(|dependency| dependency.name).collect(),
        }
    };
    metadata.packages.into_iter().map(member).collect()
}

#[test]
fn the_tree_keeps_the_imports() {
    demand_none(rule(&members()));
}

#[test]
fn fires_on_a_wrong_arrow_an_unknown_member_and_a_closed_door() {
    let member = |name: &str, dependencies: &[&str]| Member {
        name: name.to_owned(),
        manifest: format!("{name}/Cargo.toml"),
        text: "[package]\n[dependencies]\nbase = 1\nlinkd = 1\nsled = 1\n".to_owned(),
        dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
    };
    let complaints = rule(&[
        member("net", &["base", "linkd", "sled"]),
        member("attic", &[]),
        member("linkd", &["node", "tokio"]),
        member("cli", &["linkd", "sled"]),
    ]);
    let shown: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 3, "{shown:#?}");
    assert!(shown[0].starts_with("net/Cargo.toml:4: `net` may not import `linkd`"));
    assert!(shown[1].starts_with("net/Cargo.toml:5: `net` depends on `sled`"));
    assert!(shown[2].starts_with("attic/Cargo.toml:1: the table of imports does not know"));
}

#[test]
fn the_table_has_no_circle() {
    // Every row may name only rows that can be built before it.
    let mut built: Vec<&str> = Vec::new();
    while built.len() < TABLE.len() {
        let ready = |row: &&(&'static str, Option<&[&str]>)| {
            !built.contains(&row.0) && row.1.is_none_or(|list| list.iter().all(|name| built.contains(name)))
        };
        let next = TABLE.iter().find(ready).expect("some row depends on nothing unbuilt");
        built.push(next.0);
    }
}
