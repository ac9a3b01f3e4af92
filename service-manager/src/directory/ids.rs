//! Core: blocks of numbers that are given once. A block whose answer was lost is lost with it: numbers are never given
//! twice, and there are enough.

use std::collections::BTreeMap;

use wire::code;

use super::limits::{Limits, Refusal};

/// Numbers that one answer may give.
pub const COUNT_MAX: u32 = 1_000_000;
/// Beyond this there are none: what fits a signed column of a database.
const LAST: u64 = i64::MAX as u64;

#[derive(Debug, Default)]
pub(super) struct Ids {
    next: BTreeMap<String, u64>,
}

impl Ids {
    /// The first of `count` numbers that nobody was ever given under this name; counted from 1.
    pub fn allocate(&mut self, name: &str, count: u32, limits: &Limits) -> Result<u64, Refusal> {
        if name.is_empty() || name.contains(char::is_control) {
            return Err(Refusal::new(code::BAD_MESSAGE, "ids need a name without control characters"));
        }
        if name.len() > limits.name_bytes {
            let text = format!("the name of ids: {}, at most {}", name.len(), limits.name_bytes);
            return Err(Refusal::new(code::LIMIT, text));
        }
        if count == 0 || count > COUNT_MAX {
            let text = format!("{count} ids at once; 1 to {COUNT_MAX} are given");
            return Err(Refusal::new(code::BAD_MESSAGE, text));
        }
        if !self.next.contains_key(name) && self.next.len() >= limits.id_names {
            let text = format!("this directory counts ids under {} names", limits.id_names);
            return Err(Refusal::new(code::LIMIT, text));
        }
        let first = self.next.get(name).copied().unwrap_or(1);
        let next = first.saturating_add(count.into());
        if next > LAST {
            return Err(Refusal::new(code::LIMIT, format!("the ids of {name:?} are used up")));
        }
        if !base::planted::is("directory_repeats_ids") {
            self.next.insert(name.to_owned(), next);
        }
        Ok(first)
    }

    pub fn restore(&mut self, name: String, next: u64) {
        let known = self.next.entry(name).or_insert(next);
        *known = next.max(*known);
    }

    pub fn next(&self, name: &str) -> u64 {
        self.next.get(name).copied().unwrap_or(1)
    }
}
