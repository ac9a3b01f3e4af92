//! Words that promise trouble: unfinished code, skipped tests, tests that wait
//! by the clock, queues without a bound, panics in production.

use syn::visit::{self, Visit};

use crate::complaint::{Complaint, lines};
use crate::rust::{Lines, Rust, range};
use crate::tree::{judge, planted};

/// Nowhere, tests included.
const NEVER: &[(&str, &str)] = &[
    ("todo !", "write it, or answer with an error that says so"),
    ("unimplemented !", "write it, or answer with an error that says so"),
    ("dbg !", "use tracing, or delete it"),
    ("# [ ignore", "make the test fast and sure, or delete it"),
];

/// Not where it runs for real.
const PRODUCTION: &[(&str, &str)] = &[
    (". unwrap ( )", "return the error, or `expect` with the reason it holds"),
    ("unbounded_channel", "give the queue a bound and a named behaviour at the bound"),
    ("unbounded (", "give the queue a bound and a named behaviour at the bound"),
    ("unbounded ::", "give the queue a bound and a named behaviour at the bound"),
];

/// What the compiler can't check is proved in the lines above: `// SAFETY: proof`.
const SAFETY_MARK: &str = "// SAFETY: ";
/// A proof is at most this long.
const SAFETY_LINES_MAX: usize = 5;

/// A test that must sleep says why in the line above: `// Sleep: reason`.
const SLEEP_MARK: &str = "// Sleep: ";

fn rule(file: &Rust) -> Vec<Complaint> {
    let mut out = Vec::new();
    let mut complain = |line: usize, pattern: &str, todo: &str| {
        let said = pattern.replace(' ', "");
        out.push(Complaint::new(&file.path, line, format!("`{said}`"), todo));
    };
    for (pattern, todo) in NEVER {
        file.find(pattern).into_iter().for_each(|line| complain(line, pattern, todo));
    }
    let text: Vec<&str> = file.text.lines().collect();
    let proved = |line: usize| {
        let above = &text[line.saturating_sub(SAFETY_LINES_MAX + 1)..line.saturating_sub(1)];
        above.iter().any(|line| line.trim_start().starts_with(SAFETY_MARK))
    };
    for line in file.find("unsafe").into_iter().filter(|line| !proved(*line)) {
        complain(line, "unsafe", "find the safe way, or prove it in the lines above: `// SAFETY: proof`");
    }
    for (pattern, todo) in PRODUCTION {
        file.find_in_production(pattern).into_iter().for_each(|line| complain(line, pattern, todo));
    }
    out
}

fn sleeps(file: &Rust) -> Vec<Complaint> {
    let mut finder = Paused::default();
    finder.visit_file(&file.file);
    let text: Vec<&str> = file.text.lines().collect();
    let excused = |line: usize| {
        let above = (line >= 2).then(|| text.get(line - 2)).flatten();
        above.is_some_and(|above| above.trim_start().starts_with(SLEEP_MARK))
    };
    let paused = |line: usize| finder.lines.iter().any(|range| range.contains(&line));
    let hits = file.find("sleep (").into_iter().filter(|line| file.in_test(*line));
    let bad = hits.filter(|line| !paused(*line) && !excused(*line));
    let todo =
        "wait for the event itself, or pause the clock (`start_paused = true`), or say why with `// Sleep: `";
    bad.map(|line| Complaint::new(&file.path, line, "a test that waits by the clock", todo)).collect()
}

/// Tests under a paused clock: sleeping there is exact and costs nothing.
#[derive(Default)]
struct Paused {
    lines: Vec<Lines>,
}

impl<'ast> Visit<'ast> for Paused {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let paused = |attribute: &syn::Attribute| {
            let Ok(list) = attribute.meta.require_list() else { return false };
            list.tokens.to_string().contains("start_paused = true")
        };
        if item.attrs.iter().any(paused) {
            self.lines.push(range(item));
        }
        visit::visit_item_fn(self, item);
    }
}

#[test]
fn the_tree_says_no_forbidden_word() {
    judge(rule);
}

#[test]
fn the_tree_tests_without_sleeping() {
    judge(sleeps);
}

#[test]
fn fires_on_each_word() {
    let text = "//! x\nfn a() { todo!() }\nfn b() { dbg!(1); unimplemented!(); }\nfn c() { d.unwrap(); }\n\
                fn e() { mpsc::unbounded_channel(); channel::unbounded(); channel::unbounded::<u8>(); }\n\
                fn f() { unsafe { g() } }\n#[ignore = \"slow\"]\n#[test]\nfn h() { i.unwrap(); }\n\
                // todo!() in a comment, unwrap() too\nfn j() { k.unwrap_or(1); \"dbg!\" }\n";
    let mut fired = lines(&rule(&planted("linkd/src/a.rs", text)));
    fired.sort_unstable();
    assert_eq!(fired, [2, 3, 3, 4, 5, 5, 5, 6, 7]);
}

#[test]
fn fires_on_a_test_that_sleeps() {
    let text = "//! x\nfn production() { sleep(d); }\n#[test]\nfn a() { thread::sleep(d); }\n\
                #[tokio::test(start_paused = true)]\nasync fn b() { sleep(d).await; }\n\
                #[test]\nfn c() {\n    // Sleep: a process must really be silent for this long.\n    sleep(d);\n}\n";
    assert_eq!(lines(&sleeps(&planted("linkd/src/a.rs", text))), [4]);
}
