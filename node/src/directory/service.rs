//! What nodes offer each other, and its form on the wire. Only messages of `wire` travel; they are converted here.

use std::collections::BTreeMap;

use base::{Epoch, NodeId};
use wire::directory as msg;

/// The service under which the directory itself lists every admitted node: its address is the node's ops address, its
/// extras are [`EXTRA_ROLE`] and [`EXTRA_HOST`]. Names that begin with '_' are the directory's.
pub const NODE_SERVICE: &str = "_node";
/// The key in [`NODE_SERVICE`]'s extras under which the node's role stands.
pub const EXTRA_ROLE: &str = "role";
/// The key in [`NODE_SERVICE`]'s extras under which the node's host stands.
pub const EXTRA_HOST: &str = "host";

/// One service that this node offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Service {
    /// 1 to 256 bytes, not beginning with '_' and not ending in '/'.
    pub name: String,
    /// The offering program's own version; the directory does not look at it.
    pub version: u64,
    /// Where others dial it, `host:port`; empty when it is reached otherwise.
    pub address: String,
    pub region: String,
    /// At most 4 KiB of keys and values together, for the service's own clients.
    pub extra: BTreeMap<String, String>,
}

/// A service with who offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub node: NodeId,
    pub epoch: Epoch,
    pub service: Service,
    /// The directory can't dial its address.
    pub unreachable: bool,
}

/// Everything under one subscription, by service name and node.
pub type Services = BTreeMap<(String, NodeId), Instance>;

/// A node as the directory lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    pub node: NodeId,
    pub role: String,
    pub epoch: Epoch,
    pub host: String,
    pub ops_address: String,
    /// What it offers, by name.
    pub services: Vec<Service>,
}

impl Instance {
    pub fn key(&self) -> (String, NodeId) {
        (self.service.name.clone(), self.node.clone())
    }

    /// `None` when the message names no service or no proper node.
    pub fn from_wire(message: msg::Instance) -> Option<Self> {
        let node = NodeId::new(&message.node).ok()?;
        let (epoch, service) = (Epoch(message.epoch), message.service?.into());
        Some(Self { node, epoch, service, unreachable: message.unreachable })
    }
}

impl From<msg::Service> for Service {
    fn from(message: msg::Service) -> Self {
        let extra = message.extra.into_iter().map(|extra| (extra.key, extra.value)).collect();
        let msg::Service { name, version, address, region, .. } = message;
        Self { name, version, address, region, extra }
    }
}

impl From<&Service> for msg::Service {
    fn from(service: &Service) -> Self {
        let extra = service.extra.iter();
        let extra = extra.map(|(key, value)| msg::Extra { key: key.clone(), value: value.clone() }).collect();
        let Service { name, version, address, region, .. } = service.clone();
        Self { name, version, address, region, extra }
    }
}

/// Groups a list of everything by node.
pub fn by_node(services: &Services) -> Vec<NodeInfo> {
    let mut nodes: BTreeMap<NodeId, NodeInfo> = BTreeMap::new();
    for instance in services.values() {
        let node = nodes.entry(instance.node.clone()).or_insert_with(|| NodeInfo {
            node: instance.node.clone(),
            role: String::new(),
            epoch: instance.epoch,
            host: String::new(),
            ops_address: String::new(),
            services: Vec::new(),
        });
        let service = &instance.service;
        if service.name == NODE_SERVICE {
            let extra = |key: &str| service.extra.get(key).cloned().unwrap_or_default();
            node.epoch = instance.epoch;
            node.role = extra(EXTRA_ROLE);
            node.host = extra(EXTRA_HOST);
            node.ops_address.clone_from(&service.address);
        } else {
            node.services.push(service.clone());
        }
    }
    nodes.into_values().collect()
}
