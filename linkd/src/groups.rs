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
            let id = |name: &str| name.strip_prefix(prefix)?.parse().ok().map(ModuleId);
            self.modules = Some(services.keys().filter_map(|(name, _)| id(name)).collect());
        }
        changed.is_ok()
    }
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
