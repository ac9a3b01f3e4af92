//! Just enough Markdown: headings with their anchors, code blocks, links and
//! code spans, each with its line. Inside a code block nothing else is seen.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct Page {
    pub headings: Vec<Heading>,
    pub blocks: Vec<Block>,
    /// Targets of `[text](target)`, `src="…"` and `href="…"`.
    pub links: Vec<(String, usize)>,
    /// Contents of `` `…` ``.
    pub spans: Vec<(String, usize)>,
    pub anchors: BTreeSet<String>,
}

#[derive(Debug)]
pub struct Heading {
    pub level: usize,
    pub text: String,
    pub line: usize,
}

#[derive(Debug)]
pub struct Block {
    pub info: String,
    pub text: String,
    pub line: usize,
}

pub fn parse(text: &str) -> Page {
    let mut page = Page::default();
    let mut seen = BTreeMap::new();
    // The fence that is open, and the block it gathers.
    let mut open: Option<(String, Block)> = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let bare = line.trim_start();
        if let Some((fence, block)) = &mut open {
            if bare.starts_with(fence.as_str()) && bare.trim_end().chars().all(|c| fence.starts_with(c)) {
                page.blocks.extend(open.take().map(|(_, block)| block));
            } else {
                block.text.push_str(line);
                block.text.push('\n');
            }
            continue;
        }
        if bare.starts_with("```") || bare.starts_with("~~~") {
            let mark = bare.chars().next().unwrap_or('`');
            let fence: String = bare.chars().take_while(|&c| c == mark).collect();
            let info = bare[fence.len()..].trim().to_owned();
            open = Some((fence, Block { info, text: String::new(), line: number }));
            continue;
        }
        page.line(line, number, &mut seen);
    }
    page.blocks.extend(open.map(|(_, block)| block));
    page
}

impl Page {
    fn line(&mut self, line: &str, number: usize, seen: &mut BTreeMap<String, usize>) {
        let level = line.chars().take_while(|&c| c == '#').count();
        if (1..=6).contains(&level) && line[level..].starts_with(' ') {
            let text = line[level..].trim().to_owned();
            let base = slug(&text);
            let again = seen.entry(base.clone()).or_insert(0);
            let anchor = if *again == 0 { base } else { format!("{base}-{again}") };
            *again += 1;
            self.anchors.insert(anchor);
            self.headings.push(Heading { level, text, line: number });
        }
        let prose = self.take_spans(line, number);
        for start in [" id=\"", " name=\""] {
            self.anchors.extend(between(&prose, start, "\""));
        }
        let targets = [("](", ")"), (" src=\"", "\""), (" href=\"", "\"")];
        for (start, end) in targets {
            // `[text](target "title")`: only the first word is the target.
            let words = between(&prose, start, end).into_iter();
            let first = words.filter_map(|all| all.split_whitespace().next().map(str::to_owned));
            self.links.extend(first.map(|target| (target, number)));
        }
        let definition = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        let target = definition.and_then(|(_, target)| target.split_whitespace().next());
        self.links.extend(target.map(|target| (target.to_owned(), number)));
    }

    /// Collects the code spans of a line and returns it without them.
    fn take_spans(&mut self, line: &str, number: usize) -> String {
        let mut prose = String::new();
        let mut rest = line;
        while let Some(start) = rest.find('`') {
            let ticks: String = rest[start..].chars().take_while(|&c| c == '`').collect();
            let after = &rest[start + ticks.len()..];
            let Some(end) = after.find(&ticks) else { break };
            prose.push_str(&rest[..start]);
            self.spans.push((after[..end].trim().to_owned(), number));
            // Something must stand there, or a link around the span would vanish.
            prose.push('_');
            rest = &after[end + ticks.len()..];
        }
        prose.push_str(rest);
        prose
    }
}

/// The anchor that GitHub gives a heading.
pub fn slug(heading: &str) -> String {
    // A link in a heading counts with its text only.
    let mut plain = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        rest = after.split_once(')').map_or("", |(_, tail)| tail);
    }
    plain.push_str(rest);
    let kept = plain.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Every text that stands between `start` and the next `end`.
fn between(text: &str, start: &str, end: &str) -> Vec<String> {
    let pieces = text.split(start).skip(1);
    pieces.filter_map(|piece| piece.split_once(end)).map(|(inside, _)| inside.to_owned()).collect()
}

#[test]
fn sees_headings_links_and_blocks() {
    let page = parse(
        "# The `up` command!\n[a](b.md#c) and [`d`](e.rs \"title\") and `f/g.rs`\n## Same\n## Same\n\
         ```sh ci\n# no heading [x](y)\n```\n<a id=\"here\"></a>\n![p](q.svg)\n[r]: s.md\n### 名词表 (glossary)\n",
    );
    let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
    assert_eq!(anchors, ["here", "same", "same-1", "the-up-command", "名词表-glossary"]);
    let links: Vec<_> = page.links.iter().map(|(target, line)| (target.as_str(), *line)).collect();
    assert_eq!(links, [("b.md#c", 2), ("e.rs", 2), ("q.svg", 9), ("s.md", 10)]);
    assert_eq!(page.spans.last().map(|(span, line)| (span.as_str(), *line)), Some(("f/g.rs", 2)));
    assert_eq!(page.blocks.len(), 1);
    assert_eq!((page.blocks[0].info.as_str(), page.blocks[0].line), ("sh ci", 5));
    assert_eq!(page.headings.iter().map(|h| h.level).collect::<Vec<_>>(), [1, 2, 2, 3]);
}
