//! What comes from a connection after another has taken its place, its late close included, changes nothing. A session
//! number is never given twice.
//!
//! Holds: H-33, Q7, Q20, Q22, Z-10.

use std::collections::BTreeMap;

use linkd::router::Action;

use super::{Invariant, RouterId, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct StaleConnectionsChangeNothing {
    /// The sids each router has given.
    sids: BTreeMap<RouterId, std::collections::BTreeSet<base::LinkSid>>,
}

impl Invariant for StaleConnectionsChangeNothing {
    fn name(&self) -> &'static str {
        "stale_connections_change_nothing"
    }

    fn see(&mut self, _told: &Told, seen: &Seen<'_>) -> Verdict {
        match seen {
            Seen::Stale { at, changed } => {
                hold(!changed, || format!("an old connection changed something at {at}"))
            }
            Seen::Router { at, actions, .. } => {
                for action in *actions {
                    if let Action::Accept { sid, .. } = action {
                        let new = self.sids.entry(*at).or_default().insert(*sid);
                        hold(new, || format!("{sid} is given a second time"))?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
