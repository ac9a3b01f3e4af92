//! Core: load reports: which are believed, and how often they change anything.

use base::{Generation, Mono};
use wire::link::message;

use super::provider::{Load, OVERLOAD, Provider};
use super::rate::{Rate, Taken};
use super::{Action, Loss, Router};

/// Reports of one provider that change something; of those that come faster the newest is kept until its turn.
const REPORTS_PER_SECOND: u64 = 10;

impl Router {
    pub(super) fn loaded(
        &mut self,
        now: Mono,
        conn: Generation,
        load: message::Load,
        actions: &mut Vec<Action>,
    ) {
        let Some(provider) = self.providers.by_conn(conn) else {
            actions.push(Action::Dropped(Loss::ConnectionGone));
            return;
        };
        let newest = provider.held_load.as_ref().map_or(provider.load.seq, |held| held.seq);
        // A report that says nothing a provider could mean leaves the last good one standing.
        let sound = load.overload <= OVERLOAD && load.propose_max_online > 0;
        if load.seq <= newest || !sound {
            actions.push(Action::Dropped(Loss::StaleLoad));
            return;
        }
        if provider.held_load.replace(load).is_some() {
            actions.push(Action::Dropped(Loss::LoadCoalesced));
        }
        provider.take_load(now);
    }

    /// Reports that came too fast have their turn.
    pub(super) fn held_loads(&mut self, now: Mono) {
        for provider in self.providers.iter_mut() {
            provider.take_load(now);
        }
    }
}

impl Provider {
    fn take_load(&mut self, now: Mono) {
        if self.held_load.is_none() {
            return;
        }
        let mut after = self.reports;
        if after.take(now, Rate::new(REPORTS_PER_SECOND, REPORTS_PER_SECOND), 1) != Taken::Within {
            return;
        }
        self.reports = after;
        let Some(load) = self.held_load.take() else { return };
        self.bound_since_load = 0;
        self.load = Load {
            seq: load.seq,
            online: load.online,
            online_new: load.online_new,
            propose_max_online: load.propose_max_online,
            max_online_new: load.max_online_new,
            overload: load.overload,
        };
    }
}
