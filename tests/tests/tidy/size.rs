//! Rooms one can take in at a glance: files of at most 400 production lines
//! (marked cores 600), functions of at most 70, and every file begins by saying
//! what it is for.

use syn::visit::{self, Visit};

use crate::complaint::{Complaint, demand_none, lines};
use crate::rust::{Lines, Rust, range};
use crate::tree::{judge, planted, unparsed};

const FILE_LINES_MAX: usize = 400;
const CORE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

fn files(file: &Rust) -> Vec<Complaint> {
    let length = |lines: &Lines| lines.end() + 1 - lines.start();
    let tests: usize = file.test_mods.iter().map(length).sum();
    let production = file.text.lines().count() - tests;
    let limit = if file.is_core() { CORE_LINES_MAX } else { FILE_LINES_MAX };
    if production <= limit {
        return Vec::new();
    }
    let wrong = format!("{production} lines without tests, at most {limit}");
    vec![Complaint::new(&file.path, limit, wrong, "move one idea into a file of its own")]
}

fn functions(file: &Rust) -> Vec<Complaint> {
    let mut finder = Finder::default();
    finder.visit_file(&file.file);
    let long = finder.found.into_iter().filter_map(|(name, lines)| {
        let length = lines.end() + 1 - lines.start();
        (length > FUNCTION_LINES_MAX).then_some((name, *lines.start(), length))
    });
    let complain = |(name, line, length): (String, usize, usize)| {
        let wrong = format!("`{name}` has {length} lines, at most {FUNCTION_LINES_MAX}");
        Complaint::new(&file.path, line, wrong, "keep the branches here and move the work into helpers")
    };
    long.map(complain).collect()
}

fn heads(file: &Rust) -> Vec<Complaint> {
    if file.text.starts_with("//! ") {
        return Vec::new();
    }
    let todo = "begin with `//!` and what this room is for";
    vec![Complaint::new(&file.path, 1, "no sentence at the door", todo)]
}

/// Functions with the lines from `fn` to the closing brace; attributes and docs
/// do not count.
#[derive(Default)]
struct Finder {
    found: Vec<(String, Lines)>,
}

impl Finder {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = *range(signature).start()..=*range(block).end();
        self.found.push((signature.ident.to_string(), lines));
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[test]
fn the_tree_parses() {
    demand_none(unparsed());
}

#[test]
fn the_tree_keeps_files_short() {
    judge(files);
}

#[test]
fn the_tree_keeps_functions_short() {
    judge(functions);
}

#[test]
fn the_tree_says_what_each_file_is_for() {
    judge(heads);
}

#[test]
fn fires_on_a_long_file_but_counts_no_tests() {
    let filler = "const A: u8 = 1;\n".repeat(FILE_LINES_MAX);
    assert_eq!(files(&planted("a.rs", &format!("//! x\n{filler}"))).len(), 1);
    assert!(files(&planted("a.rs", &format!("//! Core: x\n{filler}"))).is_empty());
    assert!(files(&planted("a.rs", &format!("//! x\n#[cfg(test)]\nmod tests {{\n{filler}}}\n"))).is_empty());
}

#[test]
fn fires_on_a_long_function() {
    let filler = "    a();\n".repeat(FUNCTION_LINES_MAX - 1);
    assert!(functions(&planted("a.rs", &format!("//! x\n/// Docs.\nfn a() {{\n{filler}}}\n"))).len() == 1);
    let method = format!("//! x\nimpl A {{\n/// Docs.\npub async fn a(&self) {{\n    a();\n{filler}}}\n}}\n");
    assert_eq!(lines(&functions(&planted("a.rs", &method))), [4]);
    let shorter = "    a();\n".repeat(FUNCTION_LINES_MAX - 2);
    assert!(functions(&planted("a.rs", &format!("//! x\nfn a() {{\n{shorter}}}\n"))).is_empty());
}

#[test]
fn fires_on_a_file_without_a_head() {
    assert_eq!(heads(&planted("a.rs", "fn a() {}\n")).len(), 1);
    assert!(heads(&planted("a.rs", "//! Room.\n")).is_empty());
}
