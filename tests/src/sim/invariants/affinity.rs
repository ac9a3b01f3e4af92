//! One account, and one key, has the same provider on every linkd, as long as they know the same eligible providers.
//!
//! Holds: Z-12, Z-18.

use std::collections::{BTreeMap, BTreeSet};

use base::{ModuleId, NodeId};
use linkd::router::Action;

use super::super::frames::{Said, Way};
use super::super::input::Input;
use super::{Invariant, Seen, Told, Verdict, hold};

/// Module, account or key, and who was eligible.
type Question = (ModuleId, String, BTreeSet<NodeId>);

#[derive(Debug, Default)]
pub struct Affinity {
    answers: BTreeMap<Question, NodeId>,
}

impl Invariant for Affinity {
    fn name(&self) -> &'static str {
        "affinity"
    }

    fn see(&mut self, told: &Told, seen: &Seen<'_>) -> Verdict {
        let Seen::Router { at, input: Input::Frame { said: Said::Asked(asked), .. }, actions } = seen else {
            return Ok(());
        };
        for action in *actions {
            let Action::Dispatch { to, sid, .. } = action else { continue };
            let (Some(router), Some(session)) = (told.router(*at), told.session(*at, *sid)) else { continue };
            let module = asked.way.module();
            let by = match asked.way {
                Way::Key => asked.key.clone(),
                // The shop is chosen by load, and a bind is no choice.
                Way::Hall | Way::Room if !session.binds.contains_key(&module) => session.account.clone(),
                _ => None,
            };
            let (Some(by), Some(chosen)) = (by, router.providers.get(&to.conn)) else { continue };
            let eligible = router.providers.values().filter(|p| p.is_eligible(module, session.version));
            let eligible = eligible.map(|provider| provider.node.clone()).collect();
            let text = format!("{module} {by} among {eligible:?}");
            let before = self.answers.entry((module, by, eligible)).or_insert_with(|| chosen.node.clone());
            hold(*before == chosen.node, || format!("{text} was {before}'s and goes to {}", chosen.node))?;
        }
        Ok(())
    }
}
