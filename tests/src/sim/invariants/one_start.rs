//! A second start of a node id is not let in while the first one answers.
//!
//! Holds: H-10, Z-24.

use super::{Invariant, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct OneStart;

impl Invariant for OneStart {
    fn name(&self) -> &'static str {
        "one_start"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        match *seen {
            // One that claims an epoch is the newer start, which a directory without memory let in second.
            Seen::Superseded { node, claimed: 0, healthy } => {
                hold(!healthy, || format!("{node} is alive and answers, and another start took its place"))
            }
            _ => Ok(()),
        }
    }
}
