//! The directory as a provider sees it: each module is offered under its own name, and linkds are found by theirs.

use std::collections::BTreeMap;
use std::sync::Arc;

use node::{Directory, Instance, Service, Services};
use tokio::sync::watch;

use crate::config::Config;
use crate::linkds::Linkd;
use crate::module::Descriptor;

/// The service that linkds offer.
const LINKD: &str = "linkd";
/// The service that arbiters offer.
const ARBITER: &str = "arbiter";
/// How many workers a linkd has.
const EXTRA_WORKERS: &str = "workers";

/// One service per module: prefix and module id.
pub(crate) fn services(config: &Config, modules: &[Descriptor]) -> Vec<Service> {
    let service = |module: &Descriptor| Service {
        name: format!("{}{}", config.prefix, module.id),
        version: config.version().0,
        address: String::new(),
        region: config.region.clone(),
        extra: BTreeMap::new(),
    };
    modules.iter().map(service).collect()
}

/// The list of linkds, kept up to date.
pub(crate) fn linkds(directory: &Directory) -> watch::Receiver<Arc<Vec<Linkd>>> {
    follow(directory, LINKD, |services| Arc::new(list(services)))
}

/// Where the arbiter is: its latest start, if several are listed.
pub(crate) fn arbiter(directory: &Directory) -> watch::Receiver<Option<String>> {
    follow(directory, ARBITER, |services| {
        let arbiters = services.values().filter(|one| one.service.name == ARBITER);
        arbiters.max_by_key(|one| one.epoch).map(|one| one.service.address.clone())
    })
}

/// What a service's list comes to, kept up to date by a task that ends with its last reader.
fn follow<T: PartialEq + Send + Sync + 'static>(
    directory: &Directory,
    service: &str,
    read: impl Fn(&Services) -> T + Send + 'static,
) -> watch::Receiver<T> {
    let mut services = directory.subscribe(service);
    let (sender, receiver) = watch::channel(read(&services.borrow_and_update()));
    tokio::spawn(async move {
        loop {
            tokio::select! {
                biased;
                changed = services.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
            }
            let now = read(&services.borrow_and_update());
            sender.send_if_modified(|last| {
                let changed = *last != now;
                *last = now;
                changed
            });
        }
    });
    receiver
}

fn list(services: &Services) -> Vec<Linkd> {
    let linkd = |instance: &Instance| {
        let workers = instance.service.extra.get(EXTRA_WORKERS).and_then(|text| text.parse().ok());
        if workers.is_none() {
            tracing::warn!(linkd = %instance.node, "the linkd does not say how many workers it has; taken as one");
        }
        let address = instance.service.address.clone();
        Linkd { node: instance.node.clone(), epoch: instance.epoch, address, workers: workers.unwrap_or(1) }
    };
    services.values().filter(|instance| instance.service.name == LINKD).map(linkd).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Epoch, NodeId};

    const MODULE: Descriptor = Descriptor {
        id: 7,
        name: "Rank",
        choice: "request",
        dynamic: false,
        package: "game",
        protocols: &[],
        pushes: &[],
    };

    /// Holds: Z-19.
    #[test]
    fn a_module_is_offered_under_prefix_and_id() {
        let config = Config { region: "eu".into(), app_version: "1.2".into(), ..Config::default() };
        let services = services(&config, &[MODULE, Descriptor { id: -8, ..MODULE }]);
        let names: Vec<_> = services.iter().map(|service| service.name.as_str()).collect();
        assert_eq!(names, ["module/7", "module/-8"]);
        assert_eq!((services[0].version, services[0].region.as_str()), (config.version().0, "eu"));
    }

    #[test]
    fn linkds_are_listed_with_their_workers() {
        let node = NodeId::new("linkd-1").unwrap();
        let extra = BTreeMap::from([("workers".to_owned(), "3".to_owned())]);
        let service =
            Service { name: LINKD.into(), address: "127.0.0.1:7712".into(), extra, ..Service::default() };
        let instance = Instance { node: node.clone(), epoch: Epoch(4), service, unreachable: false };
        let listed = list(&Services::from([((LINKD.to_owned(), node.clone()), instance)]));
        let expected = Linkd { node, epoch: Epoch(4), address: "127.0.0.1:7712".into(), workers: 3 };
        assert_eq!(listed, [expected]);
    }
}
