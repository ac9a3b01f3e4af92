//! Every published code can be met: its name occurs in a test. One that nothing provokes is either missing its test or
//! promises what no code does.
//! Holds: Q52.

use std::collections::BTreeSet;

use crate::complaint::{Complaint, demand_none};
use crate::rust::Rust;
use crate::tree::{parsed, planted};

/// Where codes are published.
const REGISTRY: &str = "wire/src/code.rs";
/// Codes that no test can provoke, and why. Empty is best.
const UNPROVOKED: &[(&str, &str)] = &[];

/// The names in the registry's table, with their lines: `NAME = number,`.
fn published(registry: &Rust) -> Vec<(String, usize)> {
    let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_name = |text: &str| {
        text.len() > 1 && text.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '0'..='9'))
    };
    let windows = registry.tokens.windows(4);
    let entry = |window: &[crate::rust::Token]| {
        let texts: Vec<&str> = window.iter().map(|token| token.text.as_str()).collect();
        let value = number(texts[2]) || texts[2] == "-" && number(texts[3]);
        (is_name(texts[0]) && texts[1] == "=" && value).then(|| (texts[0].to_owned(), window[0].line))
    };
    windows.filter_map(entry).collect()
}

/// Words of capitals in tests, in names and in texts.
fn met(file: &Rust, words: &mut BTreeSet<String>) {
    if file.path == REGISTRY {
        return;
    }
    for token in file.tokens.iter().filter(|token| file.in_test(token.line)) {
        let parts = token.text.split(|c: char| !(c.is_ascii_uppercase() || matches!(c, '_' | '0'..='9')));
        words.extend(parts.filter(|word| word.len() > 1).map(str::to_owned));
    }
}

fn rule(files: &[Rust], unprovoked: &[(&str, &str)]) -> Vec<Complaint> {
    let mut words = BTreeSet::new();
    files.iter().for_each(|file| met(file, &mut words));
    let registry = files.iter().find(|file| file.path == REGISTRY);
    let published = registry.map(published).unwrap_or_default();
    let excused = |name: &str| unprovoked.iter().any(|(excused, _)| *excused == name);
    let mut out = Vec::new();
    for (name, line) in &published {
        if !words.contains(name) && !excused(name) {
            let wrong = format!("no test names the code `{name}`");
            out.push(Complaint::new(REGISTRY, *line, wrong, "write a test that provokes it, or take it out"));
        }
    }
    for (name, _) in unprovoked {
        if words.contains(*name) || !published.iter().any(|(known, _)| known == name) {
            let wrong = format!("`{name}` needs no excuse");
            out.push(Complaint::new("tests/tests/tidy/codes.rs", 1, wrong, "take it out of UNPROVOKED"));
        }
    }
    out
}

#[test]
fn every_code_is_met_in_a_test() {
    let files = parsed();
    let registry = files.iter().find(|file| file.path == REGISTRY).expect("the registry is there");
    assert!(published(registry).len() > 50, "the table can't be read any more");
    demand_none(rule(&files, UNPROVOKED));
}

#[test]
fn fires_on_a_code_that_no_test_names_and_on_a_stale_excuse() {
    let registry = "//! x\ncodes! {\n    BUSY = -19, Us, SOON, \"a\", \"b\";\n    LOST = 7, Us, SOON, \"a\", \"b\";\n    \
                    SPARE = 8, Us, SOON, \"a\", \"b\";\n}\n";
    let used = "//! x\nfn a() { b(LOST); }\n#[cfg(test)]\nmod tests { fn c() { d(\"says BUSY\"); } }\n";
    let files = [planted(REGISTRY, registry), planted("linkd/src/a.rs", used)];
    let shown: Vec<String> = rule(&files, &[("SPARE", "why"), ("BUSY", "why"), ("GONE", "why")])
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].starts_with("wire/src/code.rs:4: no test names the code `LOST`"));
    assert!(shown[1].contains("`BUSY` needs no excuse") && shown[2].contains("`GONE` needs no excuse"));
}
