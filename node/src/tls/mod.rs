//! Certificates in files: judged when a process starts, and read again when they change. A bad new file changes nothing
//! and raises an alarm; connections that live never notice.

mod files;
mod keeper;

use base::NodeId;
use net::hello::Role;
use net::tls::{Identity, Material, NodeTls, Security, ServerTls};
use tokio::task::JoinHandle;

use crate::config::{BadSetting, NodeConfig, Time};
use crate::ops::Readiness;
use files::Files;
use keeper::{Keeper, Kept};

pub use files::Pair;

/// How a node proves itself, and what keeps that fresh.
#[derive(Debug)]
pub struct Proven {
    pub security: Security,
    files: Option<(Files, u64, (i64, i64), Time)>,
}

/// A players' port's certificate, and what keeps that fresh.
#[derive(Debug)]
pub struct Players {
    pub tls: ServerTls,
    files: (Files, u64, (i64, i64), Time),
}

/// How this node talks to others, as `[node]` says. The node's own certificate must be of this cluster, role and id and
/// hold now. Without `[node.tls]` and without `insecure` it is refused, with both ways out.
pub fn secure(config: &NodeConfig, role: Role, node: &NodeId) -> Result<Proven, BadSetting> {
    let tls = &config.tls;
    if !tls.is_set() {
        return insecure(config, role, node);
    }
    if config.insecure {
        let why = "node.tls is set too; a node either proves who it is or is taken at its word, so remove one of them";
        return Err(BadSetting::new("node", "insecure", why));
    }
    if tls.look.0.is_zero() {
        return Err(BadSetting::new("node.tls", "look", "0s would read the files without pause"));
    }
    let identity = Identity::new(&config.cluster, role, node.clone())
        .map_err(|why| BadSetting::new("node", "cluster", why))?;
    let [ca, cert, key] = tls.files(node.as_str())?;
    let files = Files::new("node.tls", Some(ca), Pair { cert, key });
    let (material, digest) = files.read()?;
    let found = files.identity(&material)?;
    if found != identity {
        let why = format!("{} is {found}, and this node is {identity}", files.pair.cert.display());
        return Err(BadSetting::new("node.tls", "cert", why));
    }
    let nodes = NodeTls::new(&material).map_err(|error| files.bad("cert", error))?;
    let files = Some((files, digest, material.validity(), tls.look));
    Ok(Proven { security: Security::Tls(nodes), files })
}

fn insecure(config: &NodeConfig, role: Role, node: &NodeId) -> Result<Proven, BadSetting> {
    if !config.insecure {
        let (role, cluster) = (role.as_str(), &config.cluster);
        let why = format!(
            "nodes must prove who they are. Make certificates: linkstead cert init --dir certs --cluster {cluster}; \
             linkstead cert issue --dir certs --role {role} --node {node}; and set node.tls.dir = \"certs\". Or, when \
             all nodes run on this one machine, set node.insecure = true"
        );
        return Err(BadSetting::new("node", "insecure", why));
    }
    match config.directory.iter().find(|addr| !net::tls::is_loopback(addr)) {
        Some(addr) => {
            let why =
                format!("{addr} is beyond loopback, and node.insecure is true; set node.tls.dir instead");
            Err(BadSetting::new("node", "directory", why))
        }
        None => Ok(Proven { security: Security::Insecure, files: None }),
    }
}

/// What `check-config` can say of `[node.tls]` without knowing the role: the files of the node `config.id`, if it has one.
pub fn check(config: &NodeConfig) -> Result<(), BadSetting> {
    let named = !config.id.is_empty() || !config.tls.cert.as_os_str().is_empty();
    if !config.tls.is_set() || !named {
        return Ok(());
    }
    let [ca, cert, key] = config.tls.files(&config.id)?;
    let files = Files::new("node.tls", Some(ca), Pair { cert, key });
    let (material, _) = files.read()?;
    let identity = files.identity(&material)?;
    let bad = |why: String| Err(BadSetting::new("node.tls", "cert", why));
    if identity.cluster != config.cluster {
        return bad(format!("it is {identity}, and node.cluster is {:?}", config.cluster));
    }
    if !config.id.is_empty() && identity.node.as_str() != config.id {
        return bad(format!("it is {identity}, and node.id is {:?}", config.id));
    }
    NodeTls::new(&material).map(|_| ()).map_err(|error| files.bad("cert", error))
}

/// A players' port's certificate from files. `section` is for the messages, such as `linkd.tls`.
pub fn players(section: &'static str, pair: Pair, look: Time) -> Result<Players, BadSetting> {
    if look.0.is_zero() {
        return Err(BadSetting::new(section, "look", "0s would read the files without pause"));
    }
    let files = Files::new(section, None, pair);
    let (material, digest) = files.read()?;
    let tls = ServerTls::players(&material).map_err(|error| files.bad("cert", error))?;
    Ok(Players { tls, files: (files, digest, material.validity(), look) })
}

impl Proven {
    /// Without files: the certificates are the caller's business.
    pub fn without_files(security: Security) -> Self {
        Self { security, files: None }
    }

    /// Reads the files again whenever they change or SIGHUP comes, until the task is aborted or the process ends. `None`:
    /// there are no files.
    pub fn keep(self, readiness: Readiness) -> Option<JoinHandle<()>> {
        let (Security::Tls(tls), Some(files)) = (self.security, self.files) else { return None };
        Some(keep(Kept { name: "node", alarm: "node_tls" }, files, move |new| tls.replace(new), readiness))
    }
}

impl Players {
    /// As [`Proven::keep`].
    pub fn keep(self, readiness: Readiness) -> JoinHandle<()> {
        let tls = self.tls;
        let kept = Kept { name: "players", alarm: "linkd_tls" };
        keep(kept, self.files, move |new| tls.replace_players(new), readiness)
    }
}

fn keep(
    kept: Kept,
    (files, digest, validity, look): (Files, u64, (i64, i64), Time),
    replace: impl Fn(&Material) -> Result<(), net::tls::MaterialError> + Send + 'static,
    readiness: Readiness,
) -> JoinHandle<()> {
    let keeper = Keeper::new(kept, files, digest, validity, Box::new(replace), readiness);
    tokio::spawn(keeper.run(look.0))
}

#[cfg(test)]
mod tests;
