//! Core: which provider. Filter, then choose.

use base::{ModuleId, Mono, hash};
use wire::code::{self, Code};

use super::Router;
use super::module::{Choice, Module};
use super::provider::{OVERLOAD, Provider, ProviderRef};
use super::session::Player;

/// What the choice is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Binding the session: the provider takes a new login.
    Bind,
    /// This one request: the session stays where it is.
    Request,
}

impl Router {
    /// Chooses a provider of `module` for the player, or says why there is none. `key` is the value a `route_by`
    /// protocol is routed by.
    pub(super) fn choose(
        &mut self,
        now: Mono,
        player: Player,
        module: ModuleId,
        key: Option<u64>,
        purpose: For,
    ) -> Result<ProviderRef, &'static Code> {
        self.draws += 1;
        let draw = hash::mix(self.rules.seed.wrapping_add(self.draws));
        let Some(module) = self.modules.get(&module) else {
            let never = self.registered.as_ref().is_some_and(|registered| !registered.contains(&module));
            return Err(if never { &code::UNKNOWN_MODULE } else { &code::NO_PROVIDER });
        };
        let view = View { router: self, player, module, purpose };
        let chosen = match (key, module.choice) {
            (Some(key), _) => view.by_hash(key),
            (None, Choice::HashAccount) => view.by_hash(player.account_hash),
            (None, Choice::HashRole) => match player.role {
                Some(role) => view.by_hash(hash::bytes(&role.0.to_le_bytes())),
                None => return Err(&code::NO_ROLE),
            },
            (None, Choice::HashSource) => view.by_hash(player.source_hash),
            (None, Choice::FeedFull) => view.feed_full(),
            (None, Choice::Load) => view.by_weight(draw, Provider::room),
            (None, Choice::Request) => {
                let busiest = view.eligible().map(|p| p.requests.last_5_s(now)).max().unwrap_or(0);
                // The smoothing keeps a provider that just came from getting everything.
                view.by_weight(draw, |p| u64::from(busiest - p.requests.last_5_s(now).min(busiest)) + 10_000)
            }
        };
        chosen.ok_or_else(|| view.why_none())
    }
}

struct View<'a> {
    router: &'a Router,
    player: Player,
    module: &'a Module,
    purpose: For,
}

impl<'a> View<'a> {
    fn admits(&self, provider: &Provider) -> bool {
        let admitted = provider.announced
            && !provider.disabled
            && provider.load.overload < OVERLOAD
            && self.player.app_version.matches(provider.app_version)
            && (self.purpose == For::Request || provider.takes_logins());
        admitted || (base::planted::is("choice_ignores_overload") && provider.announced)
    }

    /// The eligible of our own region, or all eligible when it has none.
    fn eligible(&self) -> impl Iterator<Item = &'a Provider> + '_ {
        let local = self.local();
        let providers = self.module.providers.iter().filter_map(|&p| self.router.providers.get(p));
        providers.filter(move |p| self.admits(p) && (!local || p.region == self.router.rules.region))
    }

    /// Whether an eligible provider of our own region exists.
    fn local(&self) -> bool {
        let region = &self.router.rules.region;
        let here = |p: &Provider| p.region == *region && self.admits(p);
        !region.is_empty()
            && self.module.providers.iter().any(|&p| self.router.providers.get(p).is_some_and(here))
    }

    /// The key's owner on the ring, or the next eligible one. Data and accounts have one home whatever the region, so
    /// that every linkd answers the same.
    fn by_hash(&self, key: u64) -> Option<ProviderRef> {
        let admits = |&p: &ProviderRef| self.router.providers.get(p).is_some_and(|p| self.admits(p));
        self.module.ring.owner(key, admits).copied()
    }

    /// The first in ServerId order that has room.
    fn feed_full(&self) -> Option<ProviderRef> {
        self.eligible().filter(|p| p.room() > 0).min_by_key(|p| p.server).map(Provider::reference)
    }

    /// One drawn in proportion to its weight; weight 0 is never drawn.
    fn by_weight(&self, draw: u64, weight: impl Fn(&Provider) -> u64) -> Option<ProviderRef> {
        let total: u64 = self.eligible().map(&weight).sum();
        let mut left = draw.checked_rem(total)?;
        for provider in self.eligible() {
            let weight = weight(provider);
            if left < weight {
                return Some(provider.reference());
            }
            left -= weight;
        }
        None
    }

    /// Tells "the version isn't served" and "all are busy" from "nobody is there".
    fn why_none(&self) -> &'static Code {
        let mut served =
            self.module.providers.iter().filter_map(|&p| self.router.providers.get(p)).peekable();
        if served.peek().is_none() {
            return &code::NO_PROVIDER;
        }
        let mut right_version = served.filter(|p| self.player.app_version.matches(p.app_version)).peekable();
        if right_version.peek().is_none() {
            return &code::VERSION_NOT_SERVED;
        }
        if right_version.all(|p| p.disabled) { &code::NO_PROVIDER } else { &code::PROVIDER_BUSY }
    }
}
