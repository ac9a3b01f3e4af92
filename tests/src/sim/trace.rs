//! What happened, line by line: hashed, so that two runs can be compared, and its end kept for whoever must find out
//! why a promise broke.

use std::collections::VecDeque;

use base::{Mono, hash};

/// Lines kept for a report.
const TAIL_LINES: usize = 40;

/// How much of the trace is wanted. Formatting it costs more than the cores do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Nothing,
    /// Its hash and its last lines.
    Tail,
    /// And print every line.
    Print,
}

#[derive(Debug)]
pub struct Trace {
    keep: Keep,
    hash: u64,
    lines: u64,
    tail: VecDeque<String>,
}

impl Trace {
    pub fn new(keep: Keep) -> Self {
        Self { keep, hash: 0, lines: 0, tail: VecDeque::new() }
    }

    pub fn is_on(&self) -> bool {
        self.keep != Keep::Nothing
    }

    pub fn say(&mut self, now: Mono, what: impl FnOnce() -> String) {
        if self.keep == Keep::Nothing {
            return;
        }
        let line = format!("{now} {}", what());
        self.hash = hash::mix(self.hash ^ hash::bytes(line.as_bytes()));
        self.lines += 1;
        if self.keep == Keep::Print {
            println!("{line}");
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    /// The same for two runs exactly when they said the same.
    pub fn hash(&self) -> u64 {
        hash::mix(self.hash ^ self.lines)
    }

    pub fn tail(&self) -> Vec<String> {
        self.tail.iter().cloned().collect()
    }
}
