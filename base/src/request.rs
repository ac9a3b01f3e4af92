//! Request ids and the window that makes a repeated request answer the same.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Mono, Span};

/// A caller's own number of one request, growing by at least one. Whatever creates, spends or grants carries one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Results a window keeps per caller.
pub const RESULTS_MAX: usize = 1_024;
/// How long a window keeps a result.
pub const AGE_MAX: Span = Span::secs(600);

/// What a window knows of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen<'a, R> {
    /// Never seen: execute it, then [`Window::record`] its result.
    New,
    /// Executed before with the same content: answer this again.
    Before(&'a R),
    /// The id was used for other content. The caller's fault; never execute.
    Conflict,
    /// Older than the window remembers. Never execute; the caller must resynchronise.
    ResyncRequired,
}

/// The results of one caller's last requests, by count and by age.
#[derive(Debug, Clone)]
pub struct Window<R> {
    results: BTreeMap<RequestId, Kept<R>>,
    /// Ids up to this one may have been forgotten.
    forgotten: Option<RequestId>,
    results_max: usize,
    age_max: Span,
}

#[derive(Debug, Clone)]
struct Kept<R> {
    digest: u64,
    result: R,
    at: Mono,
}

impl<R> Default for Window<R> {
    fn default() -> Self {
        Self::new(RESULTS_MAX, AGE_MAX)
    }
}

impl<R> Window<R> {
    pub fn new(results_max: usize, age_max: Span) -> Self {
        Self { results: BTreeMap::new(), forgotten: None, results_max: results_max.max(1), age_max }
    }

    /// What is known of `id` with content `digest`.
    pub fn look(&mut self, now: Mono, id: RequestId, digest: u64) -> Seen<'_, R> {
        self.forget_old(now);
        match self.results.get(&id) {
            Some(kept) if kept.digest == digest => Seen::Before(&kept.result),
            Some(_) => Seen::Conflict,
            None if self.forgotten.is_some_and(|last| id <= last) => Seen::ResyncRequired,
            None => Seen::New,
        }
    }

    /// Remembers the result of a request that [`Window::look`] called new.
    pub fn record(&mut self, now: Mono, id: RequestId, digest: u64, result: R) {
        self.results.insert(id, Kept { digest, result, at: now });
        while self.results.len() > self.results_max {
            self.forget_first();
        }
    }

    fn forget_old(&mut self, now: Mono) {
        while self.results.first_key_value().is_some_and(|(_, kept)| now.since(kept.at) > self.age_max) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((id, _)) = self.results.pop_first() {
            self.forgotten = self.forgotten.max(Some(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_id_same_answer_and_another_content_is_a_conflict() {
        let mut window = Window::default();
        assert_eq!(window.look(Mono::ZERO, RequestId(1), 7), Seen::New);
        window.record(Mono::ZERO, RequestId(1), 7, "paid");
        assert_eq!(window.look(Mono::ZERO, RequestId(1), 7), Seen::Before(&"paid"));
        assert_eq!(window.look(Mono::ZERO, RequestId(1), 8), Seen::Conflict);
    }

    #[test]
    fn beyond_the_window_nothing_is_executed_again() {
        let mut window = Window::new(2, Span::secs(600));
        for id in 1..=3 {
            window.record(Mono::ZERO, RequestId(id), id, id);
        }
        assert_eq!(window.look(Mono::ZERO, RequestId(1), 1), Seen::ResyncRequired);
        assert_eq!(window.look(Mono::ZERO, RequestId(2), 2), Seen::Before(&2));
        assert_eq!(window.look(Mono::ZERO + Span::secs(601), RequestId(3), 3), Seen::ResyncRequired);
        assert_eq!(window.look(Mono::ZERO, RequestId(4), 4), Seen::New);
    }
}
