//! Every metric of the code stands on the page of metrics, with its kind and its labels, and nothing else does. Pages
//! speak of no other metric either.

use std::collections::{BTreeMap, BTreeSet};

use crate::complaint::{Complaint, demand_none};
use crate::markdown;
use crate::rust::{Rust, Token};
use crate::tree::{Text, parsed, planted, texts};

const PAGE: &str = "docs/reference/metrics.md";
const PREFIX: &str = "linkstead_";
/// Columns of a row: name, kind, labels, unit, meaning.
const COLUMNS: usize = 5;

/// A metric as the code registers it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Metric {
    /// `None` where no macro stands around the name.
    kind: Option<String>,
    labels: BTreeSet<String>,
}

fn is_name(text: &str) -> bool {
    let rest = text.strip_prefix(PREFIX).unwrap_or_default();
    !rest.is_empty() && rest.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// The text of a string literal.
fn literal(token: &Token) -> Option<&str> {
    token.text.strip_prefix('"')?.strip_suffix('"')
}

/// The keys of `"key" => value` up to the end of the macro that the name stands in.
fn labels(after: &[Token]) -> BTreeSet<String> {
    let mut depth = 0;
    let inside = after.iter().take_while(|token| {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        depth >= 0
    });
    let inside: Vec<&Token> = inside.collect();
    let label = |window: &[&Token]| {
        let arrow = window[1].text == "=" && window[2].text == ">";
        literal(window[0]).filter(|_| arrow).map(str::to_owned)
    };
    inside.windows(3).filter_map(label).collect()
}

/// Every metric that production code names, with where it does first.
fn registered(files: &[Rust]) -> BTreeMap<String, (Metric, String, usize)> {
    let mut out = BTreeMap::new();
    for file in files {
        for (at, token) in file.tokens.iter().enumerate() {
            let Some(name) = literal(token).filter(|name| is_name(name) && !file.in_test(token.line)) else {
                continue;
            };
            let before: Vec<&str> = file.tokens[..at].iter().rev().take(3).map(|t| t.text.as_str()).collect();
            let metric = match before[..] {
                ["(", "!", kind] => {
                    Metric { kind: Some(kind.to_owned()), labels: labels(&file.tokens[at + 1..]) }
                }
                _ => Metric::default(),
            };
            out.entry(name.to_owned()).or_insert((metric, file.path.clone(), token.line));
        }
    }
    out
}

/// The rows of the page: name, line, kind, labels, and whether unit and meaning are there.
fn rows(page: &str) -> Vec<(String, usize, Metric, bool)> {
    let row = |(index, line): (usize, &str)| {
        let cells: Vec<&str> =
            line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        let name = cells.first()?.trim_matches('`');
        if !is_name(name) || cells.len() != COLUMNS {
            return None;
        }
        let labels = cells[2].split(',').map(|label| label.trim().trim_matches('`').to_owned());
        let labels = labels.filter(|label| !label.is_empty()).collect();
        let metric = Metric { kind: Some(cells[1].to_owned()), labels };
        Some((name.to_owned(), index + 1, metric, !cells[3].is_empty() && !cells[4].is_empty()))
    };
    page.lines().enumerate().filter_map(row).collect()
}

fn rule(files: &[Rust], pages: &[Text]) -> Vec<Complaint> {
    let code = registered(files);
    let page = pages.iter().find(|text| text.path == PAGE).map_or("", |text| text.text.as_str());
    let mut out = Vec::new();
    let mut listed = BTreeSet::new();
    for (name, line, metric, whole) in rows(page) {
        let mut complain = |wrong: String, todo: &str| out.push(Complaint::new(PAGE, line, wrong, todo));
        match code.get(&name) {
            None => complain(format!("no code registers `{name}`"), "delete the row"),
            Some((known, path, _)) if known.kind.is_some() && *known != metric => {
                complain(
                    format!("`{name}` is {known:?} in {path}, not {metric:?}"),
                    "write what the code does",
                );
            }
            Some(_) if !whole => complain(format!("`{name}` without unit or meaning"), "say what it counts"),
            Some(_) => {}
        }
        if !listed.insert(name.clone()) {
            out.push(Complaint::new(PAGE, line, format!("`{name}` twice"), "delete one row"));
        }
    }
    for (name, (_, path, line)) in code.iter().filter(|(name, _)| !listed.contains(*name)) {
        out.push(Complaint::new(
            path,
            *line,
            format!("`{name}` is not explained"),
            format!("add its row to {PAGE}"),
        ));
    }
    for text in pages.iter().filter(|text| text.path.ends_with(".md")) {
        for (span, line) in markdown::parse(&text.text).spans {
            let name = span.split('{').next().unwrap_or_default();
            if is_name(name) && !code.contains_key(name) {
                let wrong = format!("there is no metric `{name}`");
                out.push(Complaint::new(&text.path, line, wrong, format!("take one of {PAGE}")));
            }
        }
    }
    out
}

#[test]
fn the_page_and_the_code_know_the_same_metrics() {
    let files = parsed();
    assert!(registered(&files).len() > 30, "the code can't be read any more");
    demand_none(rule(&files, &texts()));
}

#[test]
fn fires_on_what_is_missing_and_on_what_is_not_there() {
    let text = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
    let code = "//! x\nfn a() {\n    counter!(\"linkstead_a_total\", \"cause\" => f(b), \"port\" => c).increment(1);\n    \
                gauge!(\"linkstead_b\").set(1.0);\n    gauge!(\"linkstead_e\").set(1.0);\n}\n";
    let page = "| `linkstead_a_total` | counter | `cause` | calls | text |\n\
                | `linkstead_c` | gauge | | calls | text |\n\
                | `linkstead_e` | gauge | | | text |\n";
    let pages = [text(PAGE, page), text("docs/b.md", "See `linkstead_d_total{cause=\"x\"}`.\n")];
    let shown: Vec<String> =
        rule(&[planted("linkd/src/a.rs", code)], &pages).iter().map(ToString::to_string).collect();
    assert!(shown[0].contains("metrics.md:1") && shown[0].contains("\"port\""), "{shown:?}");
    assert!(shown[1].contains("no code registers `linkstead_c`"), "{shown:?}");
    assert!(shown[2].contains("`linkstead_e` without unit"), "{shown:?}");
    assert!(shown[3].starts_with("linkd/src/a.rs:4: `linkstead_b` is not explained"), "{shown:?}");
    // The span in the page of metrics itself, and the one elsewhere.
    assert!(shown[4].contains("`linkstead_c`") && shown[5].contains("docs/b.md:1"), "{shown:?}");
    assert_eq!(shown.len(), 6, "{shown:?}");
}
