//! The directory gives up nobody who could speak: not a node on a whole connection, also when it was the directory
//! itself that slept.
//!
//! Holds: H-11.

use super::{Invariant, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct OnlySilenceKills;

impl Invariant for OnlySilenceKills {
    fn name(&self) -> &'static str {
        "only_silence_kills"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        match *seen {
            Seen::Evicted { node, healthy } => {
                hold(!healthy, || format!("{node} was there all the time and is given up"))
            }
            _ => Ok(()),
        }
    }
}
