//! `linkstead cert`: a certificate authority for a cluster, and certificates for its nodes.

mod authority;
mod files;

use std::path::{Path, PathBuf};

use base::NodeId;
use net::hello::Role;
use serde_json::json;

use crate::Failed;
pub use authority::{Authority, Issued};

/// What to make.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make the authority of a cluster: ca.pem for every node, and ca.key, which only issuing needs.
    Init {
        /// The folder to make it in.
        #[arg(long)]
        dir: PathBuf,
        /// The cluster's name, as in node.cluster.
        #[arg(long, default_value = "linkstead")]
        cluster: String,
        #[arg(long)]
        json: bool,
    },
    /// Issue a node's certificate: NODE.pem and NODE.key.
    Issue(Issue),
}

/// For whom.
#[derive(Debug, clap::Args)]
pub struct Issue {
    /// The folder with the authority.
    #[arg(long)]
    dir: PathBuf,
    /// What the node does: directory, linkd, provider, arbiter or control.
    #[arg(long, value_parser = role)]
    role: Role,
    /// The node's id, as in node.id.
    #[arg(long, value_parser = NodeId::new)]
    node: NodeId,
    /// How long it holds.
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    days: u32,
    /// A further DNS name or address in it, for players to check; may be given more than once.
    #[arg(long = "name")]
    names: Vec<String>,
    /// Exchange the node's certificate for a new one. A running node takes it up by itself.
    #[arg(long)]
    replace: bool,
    #[arg(long)]
    json: bool,
}

/// Makes it; nothing that exists is overwritten unless asked.
pub fn run(command: Command) -> Result<(), Failed> {
    match command {
        Command::Init { dir, cluster, json } => {
            let [cert, key] = init(&dir, &cluster)?;
            report(json, json!({ "cluster": cluster, "ca": cert, "key": key }), || {
                format!(
                    "the authority of {cluster} is in {}; keep {} to yourself",
                    cert.display(),
                    key.display()
                )
            });
        }
        Command::Issue(issue) => {
            let authority = open(&issue.dir)?;
            let [cert, key] = write(&authority, &issue)?;
            let (role, node, cluster) = (issue.role.as_str(), &issue.node, &authority.cluster);
            let about = json!({
                "cluster": cluster, "role": role, "node": node.as_str(), "days": issue.days, "cert": cert, "key": key,
            });
            report(issue.json, about, || {
                format!(
                    "{} says {cluster}/{role}/{node} for {} days; its key is {}",
                    cert.display(),
                    issue.days,
                    key.display()
                )
            });
        }
    }
    Ok(())
}

/// The role of this name, for a command line.
pub fn role(text: &str) -> Result<Role, String> {
    Role::parse(text)
        .ok_or_else(|| "the roles are directory, linkd, provider, arbiter and control".to_owned())
}

/// Makes the authority of a cluster in `dir`.
fn init(dir: &Path, cluster: &str) -> Result<[PathBuf; 2], Failed> {
    let (authority, key) = Authority::new(cluster).map_err(usage)?;
    files::write(dir, files::AUTHORITY, &authority.pem, &key, false).map_err(usage)
}

/// The authority in `dir`.
fn open(dir: &Path) -> Result<Authority, Failed> {
    let (pem, key) = files::read(dir, files::AUTHORITY).map_err(|error| {
        Failed::Usage(format!(
            "{error:#}; make the authority with: linkstead cert init --dir {}",
            dir.display()
        ))
    })?;
    Authority::read(&pem, &key).map_err(usage)
}

fn write(authority: &Authority, issue: &Issue) -> Result<[PathBuf; 2], Failed> {
    let Issue { dir, role, node, days, names, replace, .. } = issue;
    if node.as_str() == files::AUTHORITY {
        return Err(Failed::Usage(
            "a node can't be called ca: its files would be the authority's".to_owned(),
        ));
    }
    let issued = authority.issue(*role, node, names, *days).map_err(usage)?;
    files::write(dir, node.as_str(), &issued.cert, &issued.key, *replace).map_err(usage)
}

/// Makes sure that `dir` has an authority of `cluster` and a certificate for each of these nodes.
pub fn provide(dir: &Path, cluster: &str, nodes: &[(Role, NodeId)]) -> Result<(), Failed> {
    let [ca, _] = files::paths(dir, files::AUTHORITY);
    if !ca.exists() {
        init(dir, cluster)?;
    }
    for (role, node) in nodes {
        if files::paths(dir, node.as_str()).iter().any(|path| path.exists()) {
            continue;
        }
        let (dir, node, names) = (dir.to_owned(), node.clone(), Vec::new());
        let issue = Issue { dir, role: *role, node, days: 365, names, replace: false, json: false };
        write(&open(&issue.dir)?, &issue)?;
    }
    Ok(())
}

fn usage(error: anyhow::Error) -> Failed {
    Failed::Usage(format!("{error:#}"))
}

fn report(json: bool, about: serde_json::Value, text: impl FnOnce() -> String) {
    if json {
        println!("{about}");
    } else {
        println!("{}", text());
    }
}
