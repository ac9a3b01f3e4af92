//! The tree the rules look at: all texts of the repository, the Rust ones parsed.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use tests::repo;

use crate::complaint::{Complaint, demand_none};
use crate::rust::Rust;

pub struct Text {
    pub path: String,
    pub text: String,
}

/// Every text file. Binary files are left out.
pub fn texts() -> Vec<Text> {
    let root = repo::root();
    let paths = repo::files(&root).expect("the list of files can be read");
    let read = |path: String| {
        // A file may vanish between the list and the read while somebody works on it.
        let text = repo::text(&root, &path).ok().flatten()?;
        Some(Text { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

/// Every Rust file of ours, or the complaint that it does not parse.
fn rust_files() -> Vec<Result<Rust, Complaint>> {
    let ours = |text: &Text| text.path.ends_with(".rs") && !is_input(&text.path);
    let mut files: Vec<_> =
        texts().iter().filter(|t| ours(t)).map(|t| Rust::parse(&t.path, &t.text)).collect();
    let far: BTreeSet<String> = files.iter().flatten().flat_map(far_tests).collect();
    for file in files.iter_mut().flatten() {
        // `mod name;` under `#[cfg(test)]` makes the file, and its folder, a test.
        let whole =
            |stem: &String| file.path == format!("{stem}.rs") || file.path.starts_with(&format!("{stem}/"));
        file.is_test |= far.iter().any(whole);
    }
    files
}

/// Sources that are data of a test: what a macro must refuse to compile.
fn is_input(path: &str) -> bool {
    path.contains("/tests/ui/") || path.contains("/fixtures/")
}

/// Where the out-of-line test modules of one file live, without `.rs`.
fn far_tests(file: &Rust) -> Vec<String> {
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let stem = name.trim_end_matches(".rs");
    let base = match stem {
        "lib" | "main" | "mod" => folder.to_owned(),
        _ => format!("{folder}/{stem}"),
    };
    file.test_files.iter().map(|name| format!("{base}/{name}")).collect()
}

/// Runs one rule over all Rust files; a file that does not parse is a complaint
/// of the size rule only (it looks at every file anyway), not of all of them.
pub fn judge(rule: fn(&Rust) -> Vec<Complaint>) {
    demand_none(parsed().iter().flat_map(rule).collect());
}

pub fn unparsed() -> Vec<Complaint> {
    rust_files().into_iter().filter_map(Result::err).collect()
}

pub fn parsed() -> Vec<Rust> {
    rust_files().into_iter().flatten().collect()
}

/// For self-tests: one planted file.
pub fn planted(path: &str, text: &str) -> Rust {
    Rust::parse(path, text).unwrap_or_else(|complaint| panic!("{complaint}"))
}

/// Folders at the root, for rules that recognise paths by their beginning.
pub fn top_folders() -> &'static BTreeSet<String> {
    static TOP: OnceLock<BTreeSet<String>> = OnceLock::new();
    TOP.get_or_init(|| {
        let first = |text: Text| text.path.split_once('/').map(|(folder, _)| folder.to_owned());
        texts().into_iter().filter_map(first).collect()
    })
}

#[cfg(test)]
mod self_test {
    use super::*;

    #[test]
    fn finds_the_files_of_far_test_modules() {
        let text = "//! x\n#[cfg(test)]\nmod scripts;\n";
        assert_eq!(far_tests(&planted("linkd/src/router.rs", text)), ["linkd/src/router/scripts"]);
        assert_eq!(far_tests(&planted("linkd/src/lib.rs", text)), ["linkd/src/scripts"]);
    }
}
