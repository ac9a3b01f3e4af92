//! Planted faults and their table agree: a fault that the runner does not know
//! proves nothing, and a row whose fault is gone would never be missed.

use tests::planted::FAULTS;

use crate::complaint::{Complaint, demand_none};
use crate::rust::Rust;
use crate::tree::{parsed, planted};

const TABLE: &str = "tests/src/planted/table.rs";

/// The names that a file asks for, with their lines.
fn asked(file: &Rust) -> Vec<(String, usize)> {
    let is_ask = |texts: &[&str]| texts[..5] == ["planted", ":", ":", "is", "("];
    let windows = file.tokens.windows(6);
    let name = |window: &[crate::rust::Token]| {
        let texts: Vec<&str> = window.iter().map(|token| token.text.as_str()).collect();
        is_ask(&texts).then(|| (texts[5].trim_matches('"').to_owned(), window[5].line))
    };
    windows.filter_map(name).collect()
}

fn rule(names: &[&str], files: &[Rust]) -> Vec<Complaint> {
    let mut out = Vec::new();
    let mut seen = Vec::new();
    for file in files {
        for (name, line) in asked(file) {
            if !names.contains(&name.as_str()) {
                let wrong = format!("no row for the planted fault `{name}`");
                out.push(Complaint::new(&file.path, line, wrong, format!("add it to {TABLE}")));
            }
            seen.push(name);
        }
    }
    for name in names.iter().filter(|name| !seen.iter().any(|seen| seen == *name)) {
        let wrong = format!("no code plants the fault `{name}`");
        out.push(Complaint::new(TABLE, 1, wrong, "delete the row or plant the fault again"));
    }
    out
}

#[test]
fn the_tree_and_the_table_know_the_same_faults() {
    let names: Vec<&str> = FAULTS.iter().map(|fault| fault.name).collect();
    demand_none(rule(&names, &parsed()));
}

#[test]
fn fires_on_a_fault_without_a_row_and_a_row_without_a_fault() {
    let text =
        "//! x\nfn a() { if base::planted::is(\"one\") { b() } }\nfn c() { crate::planted::is(\"two\"); }\n";
    let complaints = rule(&["one", "three"], &[planted("linkd/src/a.rs", text)]);
    let shown: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[0].starts_with("linkd/src/a.rs:3: no row for the planted fault `two`"));
    assert!(shown[1].contains("no code plants the fault `three`"));
}
