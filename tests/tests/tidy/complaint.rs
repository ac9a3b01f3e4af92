//! What a rule says when it is broken: where, what is wrong, what to do.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    pub path: String,
    pub line: usize,
    pub wrong: String,
    pub todo: String,
}

impl Complaint {
    pub fn new(path: &str, line: usize, wrong: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, wrong: wrong.into(), todo: todo.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.wrong, self.todo)
    }
}

/// Fails the test with every complaint at once, so that one run shows all of them.
#[track_caller]
pub fn demand_none(mut complaints: Vec<Complaint>) {
    complaints.sort();
    complaints.dedup();
    if complaints.is_empty() {
        return;
    }
    let lines: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    panic!("{} complaints\n{}\n", lines.len(), lines.join("\n"));
}

/// For self-tests: the lines at which a rule fired.
pub fn lines(complaints: &[Complaint]) -> Vec<usize> {
    complaints.iter().map(|complaint| complaint.line).collect()
}
