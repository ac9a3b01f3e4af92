//! What operators ask: every node is found through the directory's ops port and asked itself.

use base::{Account, LinkSid};
use clap::Args;
use node::admin::{self, AdminError, Client, Target};
use serde_json::{Value, json};

use crate::Failed;

/// Whom to ask.
#[derive(Debug, Clone, Args)]
pub struct Ask {
    /// The ops address of any node of the cluster.
    #[arg(long, default_value = "127.0.0.1:7700")]
    pub ops: String,
    #[arg(long)]
    pub json: bool,
}

/// Whom to end.
#[derive(Debug, Clone, Args)]
pub struct Kick {
    /// The account to end.
    #[arg(required_unless_present = "sid")]
    pub account: Option<String>,
    /// One session, as a number; linkds number sessions each for itself, so give `--ops` of its linkd.
    #[arg(long, conflicts_with = "account")]
    pub sid: Option<u64>,
    /// What the client is told.
    #[arg(long, default_value = "")]
    pub text: String,
    #[command(flatten)]
    pub ask: Ask,
}

pub fn unreachable(error: AdminError) -> Failed {
    Failed::Unreachable(error.to_string())
}

/// Every node that the directory lists.
pub async fn nodes(ask: &Ask) -> Result<Vec<Value>, Failed> {
    let mut client = Client::connect(&ask.ops).await.map_err(unreachable)?;
    match client.topology().await.map_err(unreachable)? {
        Value::Array(nodes) => Ok(nodes),
        other => Err(Failed::Unreachable(format!("the node at {} answers {other} for a topology", ask.ops))),
    }
}

/// The text of a field; empty when there is none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Asks each node for its status. A node that does not answer is shown as that.
pub async fn status(ask: &Ask) -> Result<(), Failed> {
    let mut all = serde_json::Map::new();
    let mut own = Client::connect(&ask.ops).await.map_err(unreachable)?;
    let own = own.status().await.map_err(unreachable)?;
    let mut silent = 0;
    for node in nodes(ask).await? {
        let (name, ops) = (text(&node, "node").to_string(), text(&node, "ops").to_string());
        let answer = match Client::connect(&ops).await {
            Ok(mut client) => client.status().await,
            Err(error) => Err(error),
        };
        let status = answer.unwrap_or_else(|error| {
            silent += 1;
            json!({ "role": text(&node, "role"), "error": error.to_string() })
        });
        all.insert(name, status);
    }
    all.entry(text(&own, "node").to_string()).or_insert(own);
    if ask.json {
        println!("{}", Value::Object(all));
    } else {
        for (name, status) in &all {
            println!("{:<20} {}", name, line(status));
        }
    }
    if silent == 0 { Ok(()) } else { Err(Failed::Unreachable(format!("{silent} nodes did not answer"))) }
}

/// The few figures that tell whether a node is well.
fn line(status: &Value) -> String {
    if let Some(error) = status.get("error") {
        return format!("{:<16} {error}", text(status, "role"));
    }
    let mut words = vec![format!("{:<16}", text(status, "role"))];
    let figures = ["epoch", "sessions", "authed", "online", "in_flight", "nodes", "services", "revision"];
    for key in figures.into_iter().chain(["records", "waited_for"]) {
        match status.get(key) {
            Some(Value::Number(value)) => words.push(format!("{key} {value}")),
            // Numbers of 64 bits are texts.
            Some(Value::String(value)) => words.push(format!("{key} {value}")),
            _ => {}
        }
    }
    if status.get("disabled").and_then(Value::as_bool) == Some(true) {
        words.push("closed to new players".into());
    }
    if let Some(ms) = status.get("opens_after_ms").and_then(Value::as_u64).filter(|ms| *ms > 0) {
        words.push(format!("grants in {} s", ms.div_ceil(1_000)));
    }
    words.join("  ")
}

/// Shows the directory's list.
pub async fn topology(ask: &Ask) -> Result<(), Failed> {
    let nodes = nodes(ask).await?;
    if ask.json {
        println!("{}", Value::Array(nodes));
        return Ok(());
    }
    for node in &nodes {
        println!(
            "{:<20} {:<16} epoch {:<18} ops {:<22} on {}",
            text(node, "node"),
            text(node, "role"),
            text(node, "epoch"),
            text(node, "ops"),
            text(node, "host")
        );
        for service in node["services"].as_array().into_iter().flatten() {
            println!("    {:<16} {}", text(service, "name"), text(service, "address"));
        }
    }
    Ok(())
}

/// Ends sessions at every linkd, or one session at one linkd.
pub async fn kick(kick: &Kick) -> Result<(), Failed> {
    let (target, addrs) = match (&kick.account, kick.sid) {
        (_, Some(sid)) => (Target::LinkSid(LinkSid(sid)), vec![kick.ask.ops.clone()]),
        (account, None) => {
            let account = account.as_deref().unwrap_or_default();
            let account = Account::new(account).map_err(|error| Failed::Usage(error.to_string()))?;
            let linkds = nodes(&kick.ask).await?;
            let linkds = linkds.iter().filter(|node| text(node, "role") == "linkd");
            (Target::Account(account), linkds.map(|node| text(node, "ops").to_string()).collect())
        }
    };
    let mut kicked = 0;
    for addr in &addrs {
        let mut client = Client::connect(addr).await.map_err(unreachable)?;
        let order = admin::Kick { target: target.clone(), code: wire::code::KICKED, text: kick.text.clone() };
        kicked += client.kick(order).await.map_err(unreachable)?;
    }
    if kick.ask.json {
        println!("{}", json!({ "kicked": kicked, "linkds": addrs.len() }));
    } else {
        println!("{kicked} sessions ended at {} linkds", addrs.len());
    }
    Ok(())
}
