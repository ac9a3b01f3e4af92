//! Pages that point somewhere point at something: relative links, their anchors
//! and paths in backticks exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::complaint::{Complaint, demand_none, lines};
use crate::markdown::{self, Page};
use crate::tree::{Text, texts, top_folders};

/// What a page may point at.
struct Site {
    /// All files and all their folders.
    paths: BTreeSet<String>,
    top: BTreeSet<String>,
    pages: BTreeMap<String, Page>,
}

impl Site {
    fn new(texts: &[Text], top: BTreeSet<String>, more: Vec<String>) -> Self {
        let mut paths = BTreeSet::new();
        for path in texts.iter().map(|text| text.path.clone()).chain(more) {
            let folders = path.match_indices('/').map(|(index, _)| path[..index].to_owned());
            paths.extend(folders.collect::<Vec<_>>());
            paths.insert(path);
        }
        let is_page = |text: &&Text| text.path.ends_with(".md");
        let pages =
            texts.iter().filter(is_page).map(|t| (t.path.clone(), markdown::parse(&t.text))).collect();
        Self { paths, top, pages }
    }

    fn complaints(&self) -> Vec<Complaint> {
        let check = |(path, page): (&String, &Page)| {
            let mut out = self.links(path, page);
            out.extend(self.spans(path, page));
            out
        };
        self.pages.iter().flat_map(check).collect()
    }

    fn links(&self, path: &str, page: &Page) -> Vec<Complaint> {
        let mut out = Vec::new();
        for (target, line) in &page.links {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let goal = if file.is_empty() { path.to_owned() } else { resolve(path, file) };
            if !goal.is_empty() && !self.paths.contains(&goal) {
                let wrong = format!("the link `{target}` leads nowhere");
                out.push(Complaint::new(path, *line, wrong, "correct it or write that page"));
                continue;
            }
            let known = self.pages.get(&goal).is_none_or(|page| page.anchors.contains(anchor));
            if !anchor.is_empty() && !known {
                let wrong = format!("`{goal}` has no heading `#{anchor}`");
                out.push(Complaint::new(path, *line, wrong, "use the heading's own anchor"));
            }
        }
        out
    }

    fn spans(&self, path: &str, page: &Page) -> Vec<Complaint> {
        let mut out = Vec::new();
        for (span, line) in &page.spans {
            let Some(named) = self.as_path(span) else { continue };
            let beside = resolve(path, named);
            if !self.paths.contains(named) && !self.paths.contains(&beside) {
                let wrong = format!("`{span}` does not exist");
                out.push(Complaint::new(path, *line, wrong, "name a file or folder that does"));
            }
        }
        out
    }

    /// The span as a path of this repository, if it looks like one: it begins with
    /// a folder of the root and ends like a file or a folder. `a/b` alone may be
    /// anything, `*`, `<name>` and `…` stand for many.
    fn as_path<'a>(&self, span: &'a str) -> Option<&'a str> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ':');
        if !span.chars().all(plain) {
            return None;
        }
        // `linkd/src/router.rs:12` and `linkd/src/router.rs::step` point into a file.
        let span = span.split(':').next()?;
        let (first, rest) = span.split_once('/')?;
        let (folder, name) = (span.ends_with('/'), rest.rsplit('/').next().unwrap_or(rest));
        let file = name.rsplit_once('.').is_some_and(|(_, end)| ENDS.contains(&end));
        let looks = self.top.contains(first) && (folder || file || rest.starts_with("src/"));
        looks.then(|| span.trim_end_matches('/'))
    }
}

const ENDS: &[&str] =
    &["rs", "md", "toml", "proto", "txt", "sh", "json", "lock", "svg", "html", "yml", "bin"];

/// `target` as seen from the page at `path`, without `.` and `..`.
fn resolve(path: &str, target: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let start = if target.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.is_empty() => parts.push(".."),
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn the_pages_lead_somewhere() {
    // Pictures are no texts, yet a page may show them.
    let all = tests::repo::files(&tests::repo::root()).expect("the list of files can be read");
    demand_none(Site::new(&texts(), top_folders().clone(), all).complaints());
}

#[test]
fn fires_on_dead_links_anchors_and_paths() {
    let text = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
    let page = "# Start\n[good](../README.md#what-it-is) [self](#start) [web](https://example.org/x)\n\
                [dead](gone.md)\n[no heading](../README.md#gone)\n`linkd/src/router.rs` `linkd/src/` `a/b` `linkd/x`\n\
                `linkd/src/gone.rs`\n`linkd/src/router.rs:12` `linkd/src/*.rs` `other/src/a.rs`\n\
                ```\n`linkd/src/gone.rs` [dead](gone.md)\n```\n[out](../../x.md)\n![pic](a.svg)\n";
    let texts =
        [text("README.md", "# What it is\n"), text("docs/start.md", page), text("linkd/src/router.rs", "")];
    let top = ["docs", "linkd"].map(str::to_owned).into();
    let site = Site::new(&texts, top, vec!["docs/a.svg".to_owned()]);
    let mut fired = lines(&site.complaints());
    fired.sort_unstable();
    assert_eq!(fired, [3, 4, 6, 11]);
}
