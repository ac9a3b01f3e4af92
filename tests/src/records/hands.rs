//! What a cache says to its surroundings, kept until the simulation looks.

use std::sync::Arc;

use base::Mono;
use parking_lot::Mutex;
use tables::arbiter::Evicted;
use tables::cache::{Load, Outward};
use tables::{Arbiter, Word};

/// Everything that was said since it was taken last.
#[derive(Default)]
pub struct Said {
    pub words: Vec<Word>,
    pub loads: Vec<Load>,
    pub raises: Vec<Vec<Evicted>>,
    pub looks: Vec<Mono>,
    /// There is something to write; true: somebody waits for it.
    pub flush: Option<bool>,
    pub abandoned: bool,
}

/// See the module.
#[derive(Default)]
pub struct Hands {
    said: Mutex<Said>,
}

impl std::fmt::Debug for Hands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hands").finish_non_exhaustive()
    }
}

impl Hands {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn take(&self) -> Said {
        std::mem::take(&mut *self.said.lock())
    }
}

impl Arbiter for Hands {
    fn say(&self, words: &mut Vec<Word>) {
        self.said.lock().words.append(words);
    }
}

impl Outward for Hands {
    fn load(&self, load: Load) {
        self.said.lock().loads.push(load);
    }

    fn raise(&self, evicted: Vec<Evicted>) {
        self.said.lock().raises.push(evicted);
    }

    fn look_at(&self, at: Mono) {
        self.said.lock().looks.push(at);
    }

    fn flush(&self, soon: bool) {
        let flush = &mut self.said.lock().flush;
        *flush = Some(flush.unwrap_or_default() || soon);
    }

    fn abandon(&self) {
        self.said.lock().abandoned = true;
    }
}
