//! Nothing is loaded before the storage refuses the late writes of everybody who was evicted: else what is read could be
//! overwritten under the reader.

use super::Load;

/// Loads that wait for fences.
#[derive(Default)]
pub(super) struct Gate {
    raising: usize,
    waiting: Vec<Load>,
}

impl Gate {
    /// Fences are being raised.
    pub fn close(&mut self) {
        self.raising += 1;
    }

    /// The load, if it may be done now. Else it comes out of [`raised`](Self::raised).
    pub fn pass(&mut self, load: Load) -> Option<Load> {
        if self.raising == 0 {
            return Some(load);
        }
        self.waiting.push(load);
        None
    }

    /// One set of fences is raised: the loads that may be done now.
    pub fn raised(&mut self) -> Vec<Load> {
        self.raising = self.raising.saturating_sub(1);
        if self.raising == 0 { std::mem::take(&mut self.waiting) } else { Vec::new() }
    }
}
