//! The catalogue of promises (`tests/promises.txt`) and the tests that name them.
//!
//! A test names what it holds in a comment above it or in its body:
//! `/// Holds: Z-05, BI-003, Q13.` Dashed IDs count anywhere in such comments;
//! the short ones (`Q13`, `D59`) only after `Holds:`. A file that is one
//! invariant as a whole says so at its door: `//! Holds: Z-05.`

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::repo;

/// One line of the catalogue.
#[derive(Debug)]
pub struct Promise {
    pub id: String,
    /// `S` safety, `L` liveness, `B` an answer to bad input.
    pub class: String,
    /// The kinds of test asked for: Unit, Property, Deterministic simulation,
    /// Fault injection into processes, Bench.
    pub kinds: String,
    /// The step of the project that owes it; `None` while no step does.
    pub step: Option<u32>,
    pub text: String,
}

#[derive(Debug, Default)]
pub struct Book {
    /// In the order of the file.
    pub promises: Vec<Promise>,
    /// Numbered lists kept elsewhere: letter, how many there are, what they are.
    pub ranges: Vec<(String, u32, String)>,
}

/// A test that names a promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub id: String,
    pub path: String,
    pub line: usize,
    pub test: String,
}

/// Something shaped like an ID that no list knows.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown {
    pub path: String,
    pub line: usize,
    pub word: String,
}

#[derive(Debug, Default)]
pub struct Found {
    pub named: Vec<Named>,
    pub unknown: Vec<Unknown>,
}

impl Book {
    pub fn load() -> Result<Self> {
        let path = repo::root().join("tests/promises.txt");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text)
    }

    /// Lines are `ID class kinds step — text`, `range LETTER COUNT — text`, empty,
    /// or `#` comments.
    pub fn parse(text: &str) -> Result<Self> {
        let mut book = Self::default();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let place = || format!("promises.txt:{}", index + 1);
            let (head, text) = line.split_once(" — ").with_context(|| format!("{}: no ` — `", place()))?;
            let words: Vec<&str> = head.split_whitespace().collect();
            match words[..] {
                ["range", letter, count] => {
                    let count = count.parse().with_context(place)?;
                    book.ranges.push((letter.to_owned(), count, text.to_owned()));
                }
                [id, class, kinds, step] => {
                    if book.knows(id) {
                        bail!("{}: `{id}` is listed twice", place());
                    }
                    let step = if step == "-" { None } else { Some(step.parse().with_context(place)?) };
                    let (class, kinds) = (class.to_owned(), kinds.to_owned());
                    book.promises.push(Promise {
                        id: id.to_owned(),
                        class,
                        kinds,
                        step,
                        text: text.to_owned(),
                    });
                }
                _ => bail!("{}: expected `ID class kinds step — text`", place()),
            }
        }
        Ok(book)
    }

    pub fn knows(&self, id: &str) -> bool {
        let in_range = |(letter, count, _): &(String, u32, String)| {
            let number = id.strip_prefix(letter.as_str()).and_then(|rest| rest.parse::<u32>().ok());
            // `Q07` would be a second spelling of `Q7`.
            number.is_some_and(|n| (1..=*count).contains(&n) && id == format!("{letter}{n}"))
        };
        self.promises.iter().any(|promise| promise.id == id) || self.ranges.iter().any(in_range)
    }
}

/// Looks through every Rust and JavaScript file below `root`.
pub fn scan(root: &Path, book: &Book) -> Result<Found> {
    let mut found = Found::default();
    for path in repo::files(root)?.iter().filter(|path| path.ends_with(".rs") || path.ends_with(".js")) {
        // A file may vanish while somebody works on the tree.
        if let Ok(Some(text)) = repo::text(root, path) {
            scan_text(path, &text, book, &mut found);
        }
    }
    Ok(found)
}

/// The comments around one test, while they are gathered.
#[derive(Default)]
struct Gathered<'a> {
    comments: Vec<(usize, &'a str)>,
    is_test: bool,
}

pub fn scan_text(path: &str, text: &str, book: &Book, found: &mut Found) {
    let lines: Vec<&str> = text.lines().collect();
    let door: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .take_while(|(_, line)| line.starts_with("//!"))
        .map(|(index, line)| (index + 1, line.trim_start_matches("//!")))
        .collect();
    // Only test files are an invariant as a whole; elsewhere a door may explain the words.
    if path.starts_with("tests/") && !path.ends_with("src/promises.rs") {
        judge(path, "(the whole file)", &door, book, found);
    }
    let mut above = Gathered::default();
    for (index, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        if let Some(comment) = bare.strip_prefix("//") {
            above.comments.push((index + 1, comment.trim_start_matches('/')));
        } else if bare.starts_with("#[") {
            above.is_test |= is_test_attribute(bare);
        } else {
            let mut gathered = std::mem::take(&mut above);
            if let Some(name) = javascript_test(bare).filter(|_| path.ends_with(".js")) {
                judge(path, name, &gathered.comments, book, found);
            }
            if let (true, Some(name)) = (gathered.is_test, function_name(bare)) {
                gathered.comments.extend(body_comments(&lines, index));
                judge(path, name, &gathered.comments, book, found);
            }
        }
    }
}

fn is_test_attribute(bare: &str) -> bool {
    let name: String =
        bare[2..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, ':' | '_')).collect();
    name.rsplit("::").next() == Some("test")
}

/// The sentence of `it("…", …)` or of a group of them, `describe("…", …)`.
fn javascript_test(bare: &str) -> Option<&str> {
    let rest = bare.strip_prefix("it(\"").or_else(|| bare.strip_prefix("describe(\""))?;
    rest.split('"').next()
}

fn function_name(bare: &str) -> Option<&str> {
    let (before, rest) = bare.split_once("fn ")?;
    let plain = before.split_whitespace().all(|word| word.starts_with("pub") || word == "async");
    plain.then(|| rest.split(['(', '<', ' ']).next()).flatten()
}

/// Comments between `fn` and the brace that closes it; rustfmt puts that one
/// below the `f` of the first line.
fn body_comments<'a>(lines: &[&'a str], start: usize) -> Vec<(usize, &'a str)> {
    let indent = lines[start].len() - lines[start].trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let body = lines.iter().enumerate().skip(start + 1).take_while(|(_, line)| **line != end);
    let comment = |(index, line): (usize, &&'a str)| {
        Some((index + 1, line.trim_start().strip_prefix("//")?.trim_start_matches('/')))
    };
    // A one-line body closes on its own line.
    if lines[start].trim_end().ends_with('}') { Vec::new() } else { body.filter_map(comment).collect() }
}

/// Files every ID of the comments under `named` or `unknown`.
fn judge(path: &str, test: &str, comments: &[(usize, &str)], book: &Book, found: &mut Found) {
    let mut holding = false;
    for (line, comment) in comments {
        for word in comment.split_whitespace() {
            if word == "Holds:" {
                holding = true;
                continue;
            }
            let id = word.trim_matches(|c: char| !c.is_alphanumeric());
            let shaped = shape(id);
            if shaped == Shape::Dashed || (holding && shaped == Shape::Short) {
                file(path, test, *line, id, book, found);
            } else if id != "and" && !id.is_empty() {
                holding = false;
            }
            holding &= !word.ends_with('.');
        }
    }
}

fn file(path: &str, test: &str, line: usize, id: &str, book: &Book, found: &mut Found) {
    let (path, id) = (path.to_owned(), id.to_owned());
    if !book.knows(&id) {
        found.unknown.push(Unknown { path, line, word: id });
        return;
    }
    let named = Named { id, path, line, test: test.to_owned() };
    let same = |other: &Named| other.id == named.id && other.path == named.path && other.test == named.test;
    if !found.named.iter().any(same) {
        found.named.push(named);
    }
}

#[derive(PartialEq)]
enum Shape {
    Dashed,
    Short,
    Word,
}

/// `H-09` and `BI-003` are dashed, `Q13` is short; anything else is prose.
fn shape(word: &str) -> Shape {
    let letters = word.chars().take_while(char::is_ascii_uppercase).count();
    let rest = &word[letters..];
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let family = matches!(&word[..letters], "H" | "M" | "C" | "G" | "Z" | "X" | "BI");
    match rest.strip_prefix('-') {
        Some(number) if family && digits(number) => Shape::Dashed,
        None if letters == 1 && digits(rest) => Shape::Short,
        _ => Shape::Word,
    }
}

/// Everything about every promise, for other programs.
pub fn as_json(book: &Book, found: &Found) -> Value {
    let tests = by_id(found);
    let of = |id: &str| -> Vec<Value> {
        let tests = tests.get(id).into_iter().flatten();
        tests.map(|n| json!({ "path": n.path, "line": n.line, "test": n.test })).collect()
    };
    let promise = |p: &Promise| {
        json!({
            "id": p.id, "class": p.class, "kinds": p.kinds, "step": p.step, "text": p.text, "tests": of(&p.id),
        })
    };
    let listed = |id: &str| book.promises.iter().any(|promise| promise.id == id);
    let others: Vec<Value> =
        tests.keys().filter(|id| !listed(id)).map(|id| json!({ "id": id, "tests": of(id) })).collect();
    json!({ "promises": book.promises.iter().map(promise).collect::<Vec<_>>(), "others": others })
}

/// Every named promise with its tests, then how far each step is.
pub fn as_table(book: &Book, found: &Found) -> String {
    let tests = by_id(found);
    let mut out = String::new();
    for (id, named) in &tests {
        let promise = book.promises.iter().find(|promise| promise.id == *id);
        let range = || book.ranges.iter().find(|(letter, ..)| id.starts_with(letter.as_str()));
        let text = promise.map(|p| p.text.as_str()).or_else(|| range().map(|(_, _, text)| text.as_str()));
        out.push_str(&format!("{id:<7} {}\n", text.unwrap_or_default()));
        for test in named {
            out.push_str(&format!("        {}:{} {}\n", test.path, test.line, test.test));
        }
    }
    let mut steps: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for promise in &book.promises {
        let (named, all) = steps.entry(promise.step.unwrap_or(u32::MAX)).or_default();
        *all += 1;
        *named += usize::from(tests.contains_key(promise.id.as_str()));
    }
    for (step, (named, all)) in &steps {
        let step = if *step == u32::MAX { "later".to_owned() } else { format!("step {step}") };
        out.push_str(&format!("{step}: {named} of {all} promises named\n"));
    }
    out
}

/// The promises of `step` and of the steps before it that no test names.
pub fn missing<'a>(book: &'a Book, found: &Found, step: u32) -> Vec<&'a Promise> {
    let tests = by_id(found);
    let due = |promise: &&Promise| promise.step.is_some_and(|owed| owed <= step);
    book.promises.iter().filter(due).filter(|promise| !tests.contains_key(promise.id.as_str())).collect()
}

fn by_id(found: &Found) -> BTreeMap<&str, Vec<&Named>> {
    let mut out: BTreeMap<&str, Vec<&Named>> = BTreeMap::new();
    for named in &found.named {
        out.entry(&named.id).or_default().push(named);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOK: &str =
        "# list\nZ-05 S UP 1 — one\nZ-06 S P 2 — two\nBI-003 B F - — three\nrange Q 77 — faults\n";

    fn named(text: &str) -> (Vec<(String, String)>, Vec<String>) {
        let mut found = Found::default();
        scan_text("linkd/src/a.rs", text, &Book::parse(BOOK).unwrap(), &mut found);
        let named = found.named.into_iter().map(|n| (n.id, n.test)).collect();
        (named, found.unknown.into_iter().map(|u| u.word).collect())
    }

    fn pair(id: &str, test: &str) -> (String, String) {
        (id.to_owned(), test.to_owned())
    }

    #[test]
    fn reads_the_comment_above_and_the_body() {
        let text = "/// Binds once.\n/// Holds: Z-05, Z-06 and Q13.\n#[test]\nfn a() {\n    // BI-003 too\n    b();\n}\n\
                    // Z-05\nfn helper() {}\n";
        let (named, unknown) = named(text);
        assert_eq!(named, [pair("Z-05", "a"), pair("Z-06", "a"), pair("Q13", "a"), pair("BI-003", "a")]);
        assert!(unknown.is_empty());
    }

    #[test]
    fn reads_tokio_and_proptest_functions() {
        let text = "    /// Holds: Z-05.\n    #[tokio::test(start_paused = true)]\n    async fn a() {}\n\
                    proptest! {\n    /// Holds: Z-06.\n    #[test]\n    fn b(x in 0..9u8) {\n    }\n}\n";
        assert_eq!(named(text).0, [pair("Z-05", "a"), pair("Z-06", "b")]);
    }

    #[test]
    fn reads_javascript_tests() {
        let text = "// Holds: Z-05.\ndescribe(\"bytes\", () => {\n  // Holds: Q7.\n  it(\"are read\", () => {});\n\
                    // Z-06\n  const it = 5;\n";
        let mut found = Found::default();
        scan_text("clients/js/test/a.test.js", text, &Book::parse(BOOK).unwrap(), &mut found);
        let named: Vec<_> = found.named.into_iter().map(|n| (n.id, n.test)).collect();
        assert_eq!(named, [pair("Z-05", "bytes"), pair("Q7", "are read")]);
    }

    #[test]
    fn complains_about_ids_that_do_not_exist() {
        let text =
            "/// Holds: Z-99, Q78, Q7, Q07, BI-3. Also D4 and P2P in prose, Z-05\n#[test]\nfn a() {}\n";
        let (named, unknown) = named(text);
        assert_eq!(unknown, ["Z-99", "Q78", "Q07", "BI-3"]);
        assert_eq!(named, [pair("Q7", "a"), pair("Z-05", "a")]);
    }

    #[test]
    fn reads_the_door_of_an_invariant() {
        let mut found = Found::default();
        let text = "//! One home per session.\n//! Holds: Z-05.\n\npub fn check() {}\n";
        scan_text("tests/src/sim/one_home.rs", text, &Book::parse(BOOK).unwrap(), &mut found);
        assert_eq!(found.named.len(), 1);
    }

    #[test]
    fn knows_what_is_missing() {
        let book = Book::parse(BOOK).unwrap();
        let mut found = Found::default();
        scan_text("a.rs", "/// Holds: Z-05.\n#[test]\nfn a() {}\n", &book, &mut found);
        assert!(missing(&book, &found, 1).is_empty());
        assert_eq!(missing(&book, &found, 2)[0].id, "Z-06");
        let table = as_table(&book, &found);
        assert!(table.contains("step 1: 1 of 1 promises named\nstep 2: 0 of 1"), "{table}");
        assert_eq!(as_json(&book, &found)["promises"][0]["tests"][0]["test"], "a");
    }

    #[test]
    fn refuses_a_catalogue_with_a_broken_line() {
        assert!(Book::parse("Z-05 S 1 — short").is_err());
        assert!(Book::parse("Z-05 S U 1 - wrong dash").is_err());
        assert!(Book::parse("Z-05 S U 1 — a\nZ-05 S U 1 — b").is_err());
    }

    #[test]
    fn the_catalogue_is_whole() {
        let book = Book::load().unwrap();
        let count = |family: &str| book.promises.iter().filter(|p| p.id.starts_with(family)).count();
        let counts = ["H-", "M-", "C-", "G-", "Z-", "X-", "BI-"].map(count);
        assert_eq!(counts, [58, 60, 43, 37, 68, 15, 119]);
        for promise in &book.promises {
            assert!(promise.text.chars().count() <= 90, "{} is longer than 90 characters", promise.id);
        }
    }
}
