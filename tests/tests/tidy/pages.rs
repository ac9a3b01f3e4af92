//! A page in two languages is one page: the same headings in the same order and
//! the same code, so that neither falls behind unseen.

use tests::repo;

use crate::complaint::{Complaint, demand_none};
use crate::markdown;

/// The English page first.
const PAIRS: &[(&str, &str)] = &[
    ("README.md", "README.zh-CN.md"),
    ("docs/start.md", "docs/start.zh-CN.md"),
    ("docs/concepts.md", "docs/concepts.zh-CN.md"),
];

/// Above this line a page says where it stands in the other language.
const TOP_LINES: usize = 5;

fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Whoever opens the wrong one finds the other at its top.
fn crossing(path: &str, text: &str, other: &str) -> Option<Complaint> {
    let links = markdown::parse(text).links;
    let there = links.iter().any(|(target, line)| target == name(other) && *line <= TOP_LINES);
    let wrong = format!("no link to `{}` at its top", name(other));
    (!there).then(|| Complaint::new(path, 1, wrong, "link the other language below the title"))
}

fn rule(second_path: &str, first: &str, second: &str) -> Vec<Complaint> {
    let (first, second) = (markdown::parse(first), markdown::parse(second));
    let mut out = Vec::new();
    let mut complain = |line: usize, wrong: String| {
        out.push(Complaint::new(second_path, line, wrong, "bring both languages together again"));
    };
    if first.headings.len() != second.headings.len() {
        let (here, there) = (second.headings.len(), first.headings.len());
        complain(1, format!("{here} headings here, {there} in the English page"));
    }
    for (english, other) in first.headings.iter().zip(&second.headings) {
        if english.level != other.level {
            let wrong =
                format!("`{}` stands where English has `{}`, another level", other.text, english.text);
            complain(other.line, wrong);
            break;
        }
    }
    if first.blocks.len() != second.blocks.len() {
        let (here, there) = (second.blocks.len(), first.blocks.len());
        complain(1, format!("{here} code blocks here, {there} in the English page"));
    }
    for (english, other) in first.blocks.iter().zip(&second.blocks) {
        if (&english.info, &english.text) != (&other.info, &other.text) {
            complain(
                other.line,
                format!("another code block than line {} of the English page", english.line),
            );
        }
    }
    out
}

#[test]
fn the_pages_agree_across_languages() {
    let root = repo::root();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let mut out = Vec::new();
    for (english, other) in PAIRS {
        match (read(english), read(other)) {
            (Some(first), Some(second)) => {
                out.extend(rule(other, &first, &second));
                out.extend(crossing(english, &first, other));
                out.extend(crossing(other, &second, english));
            }
            (None, _) => out.push(Complaint::new(english, 1, "is missing", "write it")),
            (_, None) => out.push(Complaint::new(other, 1, "is missing", "write it")),
        }
    }
    demand_none(out);
}

#[test]
fn fires_on_headings_and_code_that_differ() {
    let english = "# A\n```sh\nx\n```\n## B\n```sh\ny\n```\n";
    assert!(rule("b.md", english, "# 甲\n```sh\nx\n```\n## 乙\n```sh\ny\n```\n").is_empty());
    assert_eq!(rule("b.md", english, "# 甲\n```sh\nx\n```\n# 乙\n```sh\nz\n```\n").len(), 2);
    assert_eq!(rule("b.md", english, "# 甲\n```sh\nx\n```\n").len(), 2);
}

#[test]
fn fires_on_a_page_that_does_not_name_the_other() {
    let crossed = |text: &str| crossing("docs/a.md", text, "docs/a.zh-CN.md").is_none();
    assert!(crossed("# A\n\n[中文](a.zh-CN.md)\n"));
    assert!(!crossed("# A\n\n[中文](b.zh-CN.md)\n"));
    assert!(!crossed("# A\n\n1\n2\n3\n[中文](a.zh-CN.md)\n"));
}
