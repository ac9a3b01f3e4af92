//! Which modules anybody has registered, so that a client hears "not now" rather than "never". Each group of providers
//! registers its modules under a prefix of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::ModuleId;
use node::{Directory, Services};
use tokio::sync::watch;

use crate::worker::Shared;

/// How often the lists are looked at. That a list is complete, and that a group has come, nobody says by themselves.
const LOOK: Duration = Duration::from_millis(100);
/// Groups that are followed. With more, no module is "never".
const GROUPS_MAX: usize = 64;

/// One group as the directory lists it.
struct Group {
    services: watch::Receiver<Arc<Services>>,
    /// `None` until its first list came.
    modules: Option<BTreeSet<ModuleId>>,
}

impl Group {
    /// False: whoever kept the list is gone.
    fn look(&mut self, prefix: &str) -> bool {
        let changed = self.services.has_changed();
        if let Ok(true) = changed {
            let services = self.services.borrow_and_update();
            self.modules = Some(services.keys().filter_map(|(name, _)| module(prefix, name)).collect());
        }
        changed.is_ok()
    }
}

/// The module that a service's name means. Other nodes chose the names, so most of what could stand there is none.
fn module(prefix: &str, name: &str) -> Option<ModuleId> {
    name.strip_prefix(prefix)?.parse().ok().map(ModuleId)
}

/// Keeps the list of registered modules: of the groups that are configured, and of every group that has ever connected.
/// Nothing is "never" before each group's first list has come, or while the directory is away or warming.
pub async fn watch(directory: Directory, prefixes: Vec<String>, shared: Shared) {
    let mut known: BTreeSet<String> = prefixes.into_iter().collect();
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    loop {
        for summary in shared.summaries.iter() {
            let room = (GROUPS_MAX + 1).saturating_sub(known.len());
            let summary = summary.load();
            let new = summary.groups.iter().filter(|group| !known.contains(*group)).take(room);
            let new: Vec<String> = new.cloned().collect();
            known.extend(new);
        }
        for prefix in known.iter().take(GROUPS_MAX) {
            let group = groups
                .entry(prefix.clone())
                .or_insert_with(|| Group { services: directory.subscribe(prefix), modules: None });
            if !group.look(prefix) {
                return;
            }
        }
        let listed: Option<Vec<_>> = groups.values().map(|group| group.modules.as_ref()).collect();
        let sure = directory.connected() && !directory.warming() && known.len() <= GROUPS_MAX;
        let ids: Option<BTreeSet<ModuleId>> =
            listed.filter(|_| sure).map(|lists| lists.into_iter().flatten().copied().collect());
        if shared.registered.load().as_deref() != ids.as_ref() {
            shared.registered.store(ids.map(Arc::new));
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use base::NodeId;

    use super::*;

    /// A name that means no module is passed over, whatever it looks like, and the others count.
    ///
    /// Holds: Q33.
    #[test]
    fn services_that_are_no_modules_are_passed_over() {
        let names = ["m/7", "m/", "m/x", "m/8#9", "m/99999999999", "m7", "", "#", "m/-", "m/8"];
        let game = NodeId::new("game-1").unwrap();
        let instance = |name: &str| node::directory::Instance {
            node: game.clone(),
            epoch: base::Epoch(1),
            service: node::directory::Service { name: name.to_owned(), ..Default::default() },
            unreachable: false,
        };
        let listed: Services =
            names.iter().map(|name| ((name.to_string(), game.clone()), instance(name))).collect();
        let (sender, services) = watch::channel(Arc::default());
        let mut group = Group { services, modules: None };
        assert!(group.look("m/") && group.modules.is_none());
        sender.send_replace(Arc::new(listed));
        assert!(group.look("m/"));
        assert_eq!(group.modules, Some([ModuleId(7), ModuleId(8)].into()));
    }
}
