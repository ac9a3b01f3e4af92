//! Every request ends in exactly one of: an answer, a refusal, or the end of its client's connection. Nothing runs twice.
//! A one-way message that went nowhere is counted.
//!
//! Holds: Q5, Q60, Z-08.

use std::collections::{BTreeMap, BTreeSet};

use linkd::router::Action;
use linkstead::sessions;

use super::super::cluster::Cluster;
use super::super::frames::Said;
use super::super::input::Input;
use super::super::network::ConnId;
use super::{Invariant, Saw, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct NoSilentLoss {
    /// Requests under way.
    open: BTreeMap<u64, Open>,
    ran: BTreeSet<u64>,
    /// Requests that have had an end.
    ended: BTreeSet<u64>,
}

#[derive(Debug)]
struct Open {
    conn: ConnId,
    text: String,
}

impl Invariant for NoSilentLoss {
    fn name(&self) -> &'static str {
        "no_silent_loss"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        match seen {
            Seen::Client { conn, saw } => self.client(*conn, saw),
            Seen::Router { input: Input::Frame { said: Said::Asked(asked), .. }, actions, .. } => {
                // The router's own books: a frame that is not closed upon has one end there.
                let ends = |action: &&Action| {
                    matches!(
                        action,
                        Action::Dispatch { .. }
                            | Action::Refuse { .. }
                            | Action::CloseClient { .. }
                            | Action::Dropped(_)
                    )
                };
                let count = actions.iter().filter(ends).count();
                hold(count == 1, || {
                    format!("request {} has {count} ends at its router: {actions:?}", asked.uid)
                })
            }
            Seen::Sessions { actions, .. } => {
                for action in *actions {
                    if let sessions::Action::Run { job, .. } = action {
                        hold(self.ran.insert(job.0.uid), || format!("request {} runs twice", job.0.uid))?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, _cluster: &Cluster) -> Verdict {
        let lost: Vec<_> = self.open.values().map(|open| open.text.as_str()).collect();
        hold(lost.is_empty(), || format!("no answer and no refusal: {}", lost.join("; ")))
    }
}

impl NoSilentLoss {
    fn client(&mut self, conn: ConnId, saw: &Saw<'_>) -> Verdict {
        match saw {
            Saw::Asked(asked) if asked.wants_answer => {
                let text = format!("request {} for {:?} on {conn}", asked.uid, asked.way);
                self.open.insert(asked.uid, Open { conn, text });
            }
            Saw::Asked(_) => {}
            Saw::Answered { uid, .. } => {
                let asked = self.open.remove(uid).is_some_and(|open| open.conn == conn);
                let again = if self.ended.contains(uid) { "twice" } else { "that never was" };
                hold(asked, || format!("request {uid} {again} is answered on {conn}"))?;
                self.ended.insert(*uid);
            }
            Saw::Told(_) => {}
            Saw::Closed => self.open.retain(|_, open| open.conn != conn),
        }
        Ok(())
    }
}
