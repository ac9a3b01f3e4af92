//! The certificates of `up`: made in memory for one run, or kept in a folder that other processes use too.

use std::path::PathBuf;

use base::NodeId;
use net::hello::Role;
use net::tls::Security;
use node::config::NodeConfig;
use node::tls::Proven;

use super::Options;
use crate::Failed;
use crate::cert::{self, Authority};
use crate::config::default_id;

/// Where the nodes of this run get their certificates.
pub enum Certs {
    Memory(Box<Authority>),
    Folder(PathBuf),
}

impl Certs {
    /// As the options say; the folder has everything afterwards.
    pub fn new(options: &Options, config: &NodeConfig) -> Result<Self, Failed> {
        let Some(dir) = &options.certs else {
            let (authority, _) = Authority::new(&config.cluster)?;
            return Ok(Self::Memory(Box::new(authority)));
        };
        let one_of = |role| Ok::<_, Failed>((role, id(default_id(role))?));
        let mut nodes = vec![one_of(Role::Directory)?, one_of(Role::Arbiter)?];
        for instance in 0..options.linkds {
            nodes.push((Role::Linkd, id(&format!("linkd-{}", instance + 1))?));
        }
        for instance in 0..options.providers {
            nodes.push((Role::Provider, id(&format!("game-{}", instance + 1))?));
        }
        cert::provide(dir, &config.cluster, &nodes)?;
        Ok(Self::Folder(dir.clone()))
    }

    /// How this node proves who it is.
    pub fn prove(&self, config: &NodeConfig, role: Role, node: &NodeId) -> Result<Proven, Failed> {
        match self {
            Self::Memory(authority) => {
                let security: Security = authority.security(role, node)?;
                Ok(Proven::without_files(security))
            }
            Self::Folder(dir) => {
                let mut config = config.clone();
                config.tls.dir.clone_from(dir);
                node::tls::secure(&config, role, node).map_err(|bad| Failed::Usage(bad.to_string()))
            }
        }
    }
}

fn id(name: &str) -> Result<NodeId, Failed> {
    NodeId::new(name).map_err(|error| Failed::Usage(error.to_string()))
}
