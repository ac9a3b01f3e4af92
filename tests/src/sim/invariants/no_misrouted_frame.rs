//! A client's frame goes only to a provider that announced itself, is of the client's main version and serves the
//! module or holds its bind; for something new only to one that is neither disabled nor overloaded.
//!
//! Holds: Z-03, Z-17, Z-21.

use base::{AppVersion, ModuleId};
use linkd::router::Action;

use super::super::frames::{Said, Way};
use super::super::input::Input;
use super::{Invariant, Provider, Seen, Told, Verdict, hold};

#[derive(Debug, Default)]
pub struct NoMisroutedFrame;

impl Invariant for NoMisroutedFrame {
    fn name(&self) -> &'static str {
        "no_misrouted_frame"
    }

    fn see(&mut self, told: &Told, seen: &Seen<'_>) -> Verdict {
        let Seen::Router { at, input: Input::Frame { said, .. }, actions } = seen else { return Ok(()) };
        for action in *actions {
            let Action::Dispatch { to, sid, type_id, .. } = action else { continue };
            let Said::Asked(asked) = said else {
                return Err(format!("{sid} said nothing for a module and {type_id} was dispatched"));
            };
            let provider =
                told.provider(*at, to.conn).ok_or_else(|| format!("{type_id} of {sid} goes to nobody"))?;
            let session =
                told.session(*at, *sid).ok_or_else(|| format!("{sid} has ended and sends {type_id}"))?;
            hold(session.account.is_some(), || format!("{sid} has not logged in and sends {type_id}"))?;
            let module = asked.way.module();
            let bound = (asked.way != Way::Key).then(|| session.binds.get(&module)).flatten();
            // That a bind is kept is one_home's to say.
            let verdict = match bound.filter(|home| **home == to.conn) {
                Some(_) if provider.overload >= 2 && !asked.critical => {
                    Err("is bound to it while it is overloaded".into())
                }
                Some(_) => Ok(()),
                None => may_be_chosen(provider, module, session.version),
            };
            verdict
                .map_err(|why| format!("{type_id} of {sid} goes to {} {}: {why}", provider.node, to.conn))?;
        }
        Ok(())
    }
}

fn may_be_chosen(provider: &Provider, module: ModuleId, player: AppVersion) -> Verdict {
    hold(provider.announced, || "not announced".into())?;
    hold(provider.modules.contains(&module), || "doesn't serve it".into())?;
    hold(!provider.disabled, || "disabled".into())?;
    hold(provider.overload < 2, || "overloaded".into())?;
    hold(player.matches(provider.version), || format!("version {} for {player}", provider.version))
}
