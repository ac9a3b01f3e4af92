//! One Rust file, parsed: its tokens without comments, and the lines
//! that only tests see. Rules search tokens, never raw text, so a word in a
//! comment or a string never breaks one.

use std::ops::RangeInclusive;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item};

use crate::complaint::Complaint;

pub type Lines = RangeInclusive<usize>;

pub struct Token {
    pub text: String,
    pub line: usize,
}

pub struct Rust {
    pub path: String,
    pub text: String,
    pub file: syn::File,
    pub tokens: Vec<Token>,
    /// Items under `#[cfg(test)]` and test functions.
    test_lines: Vec<Lines>,
    /// Inline `#[cfg(test)] mod … { … }` only: what the size rule leaves out.
    pub test_mods: Vec<Lines>,
    /// Names of `#[cfg(test)] mod name;`, whose text is in a file of its own.
    pub test_files: Vec<String>,
    /// Whole file is a test: by its folder, its name, or its parent's `mod`.
    pub is_test: bool,
}

impl Rust {
    pub fn parse(path: &str, text: &str) -> Result<Self, Complaint> {
        let fail = |line: usize, why: String| {
            Complaint::new(path, line, format!("does not parse: {why}"), "make it compile first")
        };
        let file = syn::parse_file(text).map_err(|e| fail(e.span().start().line, e.to_string()))?;
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let stream = TokenStream::from_str(body).map_err(|e| fail(1, e.to_string()))?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut finder = Finder::default();
        finder.visit_file(&file);
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            file,
            tokens,
            test_lines: finder.lines,
            test_mods: finder.mods,
            test_files: finder.files,
            is_test: is_test_path(path),
        })
    }

    pub fn in_test(&self, line: usize) -> bool {
        self.is_test || self.test_lines.iter().any(|range| range.contains(&line))
    }

    /// Lines where the tokens of `pattern` (separated by spaces, `::` allowed)
    /// stand in a row: `"tokio"`, `". unwrap ( )"`, `"Instant :: now"`.
    pub fn find(&self, pattern: &str) -> Vec<usize> {
        let want: Vec<&str> = pattern
            .split_whitespace()
            .flat_map(|word| if word == "::" { vec![":", ":"] } else { vec![word] })
            .collect();
        let hit = |window: &[Token]| window.iter().zip(&want).all(|(token, word)| token.text == *word);
        let windows = self.tokens.windows(want.len().max(1));
        windows.filter(|window| hit(window)).map(|window| window[0].line).collect()
    }

    /// As `find`, without what only tests see.
    pub fn find_in_production(&self, pattern: &str) -> Vec<usize> {
        self.find(pattern).into_iter().filter(|line| !self.in_test(*line)).collect()
    }

    /// Carries the mark of a pure core in its first doc lines.
    pub fn is_core(&self) -> bool {
        let mut head = self.text.lines().take_while(|line| line.starts_with("//!"));
        head.any(|line| line.starts_with("//! Core:"))
    }
}

/// Files of a `tests` or `benches` folder, and files that hold only tests. The
/// `tests` package's own `src` is a tool, judged like production.
pub fn is_test_path(path: &str) -> bool {
    let inner = path.strip_prefix("tests/").unwrap_or(path);
    let in_folder = inner.split('/').any(|part| part == "tests" || part == "benches");
    in_folder || path.ends_with("/tests.rs") || path.ends_with("_test.rs") || path.ends_with("_tests.rs")
}

fn flatten(stream: TokenStream, out: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                out.push(Token { text: open.to_owned(), line });
                flatten(group.stream(), out);
                out.push(Token { text: close.to_owned(), line: group.span_close().start().line });
            }
            TokenTree::Ident(ident) => out.push(Token { text: ident.to_string(), line }),
            TokenTree::Punct(punct) => out.push(Token { text: punct.as_char().to_string(), line }),
            // With its quotes, so that no pattern takes a string for a word.
            TokenTree::Literal(literal) => out.push(Token { text: literal.to_string(), line }),
        }
    }
}

#[derive(Default)]
struct Finder {
    lines: Vec<Lines>,
    mods: Vec<Lines>,
    files: Vec<String>,
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        if only_tests(attributes(item)) {
            let range = range(item);
            if let Item::Mod(module) = item {
                match module.content {
                    Some(_) => self.mods.push(range.clone()),
                    None => self.files.push(module.ident.to_string()),
                }
            }
            self.lines.push(range);
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        if only_tests(&method.attrs) {
            self.lines.push(range(method));
        } else {
            visit::visit_impl_item_fn(self, method);
        }
    }
}

pub fn range(node: &impl Spanned) -> Lines {
    let span = node.span();
    span.start().line..=span.end().line
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
fn only_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let last = attribute.path().segments.last();
        if last.is_some_and(|segment| segment.ident == "test") {
            return true;
        }
        let Ok(list) = attribute.meta.require_list() else { return false };
        if !attribute.path().is_ident("cfg") {
            return false;
        }
        let condition: String = list.tokens.to_string().split_whitespace().collect();
        condition == "test"
            || condition.starts_with("all(test,")
            || condition.ends_with(",test)") && condition.starts_with("all(")
    })
}

#[cfg(test)]
mod self_test {
    use super::*;

    const TEXT: &str = "//! Room.\n// tokio in a comment\nconst A: &str = \"tokio\";\nfn a() { b.unwrap(); }\n\
                        #[cfg(test)]\nmod tests {\n    fn c() { d.unwrap(); }\n}\n#[cfg(test)]\nmod far;\n";

    #[test]
    fn sees_tokens_and_test_lines() {
        let file = Rust::parse("x/src/a.rs", TEXT).unwrap_or_else(|c| panic!("{c}"));
        assert!(file.find("tokio").is_empty());
        assert_eq!(file.find(". unwrap ( )"), [4, 7]);
        assert_eq!(file.find_in_production(". unwrap ( )"), [4]);
        assert_eq!(file.test_mods, [5..=8]);
        assert_eq!(file.test_files, ["far"]);
        assert!(Rust::parse("x/src/a.rs", "fn (").is_err());
    }

    #[test]
    fn knows_test_files_by_path() {
        assert!(is_test_path("linkd/tests/a.rs"));
        assert!(is_test_path("tests/tests/tidy/main.rs"));
        assert!(is_test_path("linkd/src/router/tests.rs"));
        assert!(!is_test_path("tests/src/lib.rs"));
        assert!(!is_test_path("linkd/src/router.rs"));
    }
}
