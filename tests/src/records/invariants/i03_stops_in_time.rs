//! Who is not heard of has stopped using its records before the arbiter hands them out, whatever the clocks do. And nobody
//! commits anything by then: neither without a lease nor after others may have what it held.
//! Holds: I3, Z-57, Z-59, Z-60.

use std::collections::BTreeMap;

use global_cache::arbiter::{self, Action};
use tables::Mode;

use super::super::court::node;
use super::{Invariant, Ledger, Seen, Verdict, hold};

#[derive(Debug)]
pub struct StopsInTime {
    records: BTreeMap<u128, usize>,
    /// Which node has which session.
    nodes: BTreeMap<arbiter::SessionId, base::NodeId>,
    joining: BTreeMap<base::Generation, base::NodeId>,
}

impl StopsInTime {
    pub fn new(records: BTreeMap<u128, usize>) -> Self {
        Self { records, nodes: BTreeMap::new(), joining: BTreeMap::new() }
    }

    fn granted(&self, ledger: &Ledger, session: arbiter::SessionId, grant: &arbiter::Grant) -> Verdict {
        let Some(key) = self.records.get(&grant.key.0) else { return Ok(()) };
        let to = self.nodes.get(&session);
        for (who, mind) in ledger.minds.iter().filter(|(_, mind)| mind.until > ledger.now) {
            if to == Some(&node(*who)) {
                continue;
            }
            let believes = |belief: &super::super::ledger::Belief| {
                belief.key == *key
                    && (belief.held == Mode::Modify
                        || (belief.held == Mode::Share && grant.mode == arbiter::Mode::Modify))
            };
            hold(!mind.beliefs.iter().any(believes), || {
                format!("record {key} is granted as {:?} to {to:?} while p{who} uses it", grant.mode)
            })?;
        }
        Ok(())
    }
}

impl Invariant for StopsInTime {
    fn name(&self) -> &'static str {
        "I3: who is silent stops in time"
    }

    fn see(&mut self, ledger: &Ledger, seen: &Seen<'_>) -> Verdict {
        match seen {
            Seen::Judged { judged, .. } => {
                if let arbiter::Event::Login { conn, node, .. } = &judged.event {
                    self.joining.insert(*conn, node.clone());
                }
                for action in &judged.actions {
                    match action {
                        Action::Welcome { conn, session, .. } => {
                            if let Some(node) = self.joining.remove(conn) {
                                self.nodes.insert(*session, node);
                            }
                        }
                        Action::Grant { session, grant, .. } => self.granted(ledger, *session, grant)?,
                        _ => {}
                    }
                }
                Ok(())
            }
            Seen::Committed { run } if !(run.reads.is_empty() && run.writes.is_empty()) => {
                let serializable = run.level == tables::Level::Serializable;
                hold(run.leased || !serializable, || {
                    format!("{} commits without a lease: {run:?}", run.place)
                })?;
                hold(ledger.is_alive(run.place) || !serializable, || {
                    format!("{} commits after others may have its records: {run:?}", run.place)
                })
            }
            _ => Ok(()),
        }
    }
}
