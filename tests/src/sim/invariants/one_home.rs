//! A session's requests of a static module go to one provider, and to another only after the client was told that the
//! first is broken. A dynamic bind holds until its owner unbinds it.
//!
//! Holds: Z-05, Z-06, Z-07, Z-09, Q58.

use std::collections::BTreeMap;

use base::{Generation, LinkSid, ModuleId};
use linkd::router::Action;
use wire::code;

use super::super::frames::{ROOM, Said, Way};
use super::super::input::Input;
use super::{Invariant, RouterId, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct OneHome {
    homes: BTreeMap<(RouterId, LinkSid, ModuleId), Generation>,
}

impl Invariant for OneHome {
    fn name(&self) -> &'static str {
        "one_home"
    }

    fn see(&mut self, told: &Told, seen: &Seen<'_>) -> Verdict {
        match seen {
            Seen::Ended { place } => self.homes.retain(|(at, ..), _| at.place != *place),
            Seen::Router { at, input, actions } => {
                let ended = ended(input, actions);
                for action in *actions {
                    match action {
                        Action::Report { sid, code, .. } if *code == code::PROVIDER_BROKEN.number => {
                            self.homes.retain(|(router, session, _), home| {
                                (*router, *session) != (*at, *sid) || !ended.contains(home)
                            });
                        }
                        Action::Dispatch { to, sid, .. } => {
                            if let Input::Frame { said: Said::Asked(asked), .. } = input {
                                self.dispatched(told, *at, *sid, asked.way, to.conn)?;
                            }
                        }
                        Action::CloseClient { sid, .. } => self.forget(*at, *sid),
                        _ => {}
                    }
                }
                if let Input::ClientClosed { sid } = input {
                    self.forget(*at, *sid);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl OneHome {
    fn dispatched(&mut self, told: &Told, at: RouterId, sid: LinkSid, way: Way, to: Generation) -> Verdict {
        if way == Way::Key {
            return Ok(());
        }
        if way.module() == ROOM {
            let bound = told.session(at, sid).and_then(|session| session.binds.get(&ROOM));
            return hold(bound.is_none_or(|home| *home == to), || {
                format!("{sid} is bound to {bound:?} for its room and goes to {to}")
            });
        }
        let home = *self.homes.entry((at, sid, way.module())).or_insert(to);
        hold(home == to, || format!("{sid} moves with {way:?} from {home} to {to} and was not told"))
    }

    fn forget(&mut self, at: RouterId, sid: LinkSid) {
        self.homes.retain(|(router, session, _), _| (*router, *session) != (at, sid));
    }
}

/// The connections that this step ends.
fn ended(input: &Input, actions: &[Action]) -> Vec<Generation> {
    let closed = actions.iter().filter_map(|action| match action {
        Action::CloseProvider { conn, .. } => Some(*conn),
        _ => None,
    });
    let own = match input {
        Input::ProviderClosed { conn } => Some(*conn),
        _ => None,
    };
    closed.chain(own).collect()
}
