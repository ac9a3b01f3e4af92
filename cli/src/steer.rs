//! What operators change: closing providers to new players, looking for sessions, stopping nodes in order.

use std::collections::BTreeSet;
use std::time::Duration;

use base::{Account, LinkSid};
use clap::Args;
use node::admin::{Client, Target};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Failed;
use crate::locks;
use crate::operate::{Ask, nodes, text, unreachable};

/// The order of a whole stop: whoever lets players in first, whoever tells nodes of each other last.
const TIERS: [&str; 3] = ["linkd", "provider", "arbiter"];
/// Between two looks at who is still there.
const LOOK: Duration = Duration::from_millis(200);

/// Which provider.
#[derive(Debug, Clone, Args)]
pub struct Drain {
    /// The provider's node id, as `topology` shows it.
    pub node: String,
    #[command(flatten)]
    pub ask: Ask,
}

/// Whom to look for.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Lookup {
    #[command(subcommand)]
    other: Option<locks::Lookup>,
    /// An account, wherever it is logged in.
    #[arg(required_unless_present = "sid")]
    pub account: Option<String>,
    /// One session, as a number. Linkds number sessions each for itself, so several may have it.
    #[arg(long, conflicts_with = "account")]
    pub sid: Option<u64>,
    #[command(flatten)]
    pub ask: Ask,
}

/// What to stop.
#[derive(Debug, Clone, Args)]
pub struct Stop {
    /// The node id, as `topology` shows it.
    #[arg(required_unless_present = "all")]
    pub node: Option<String>,
    /// The whole cluster: linkds, then providers, the arbiter, the service manager last. `--ops` is the service manager's.
    #[arg(long, conflicts_with = "node")]
    pub all: bool,
    /// Skip the waits, as a second signal does.
    #[arg(long)]
    pub now: bool,
    /// Seconds that each tier may take to leave the directory.
    #[arg(long, default_value_t = 120)]
    pub timeout: u64,
    #[command(flatten)]
    pub ask: Ask,
}

/// The ops address of a node that the directory lists.
async fn address(ask: &Ask, wanted: &str) -> Result<String, Failed> {
    let nodes = nodes(ask).await?;
    let found = nodes.iter().find(|node| text(node, "node") == wanted);
    let names = || nodes.iter().map(|node| text(node, "node")).collect::<Vec<_>>().join(", ");
    let node =
        found.ok_or_else(|| Failed::Usage(format!("no node is called {wanted}; there are {}", names())))?;
    Ok(text(node, "ops").to_owned())
}

/// Closes a provider to new players, or opens it again. Fails when a linkd has not said that it knows.
pub async fn drain(drain: &Drain, closed: bool) -> Result<(), Failed> {
    let addr = address(&drain.ask, &drain.node).await?;
    let mut client = Client::connect(&addr).await.map_err(unreachable)?;
    let told = client.drain(closed).await.map_err(unreachable)?;
    if drain.ask.json {
        let failed: Vec<_> =
            told.failed.iter().map(|(node, why)| json!({"linkd": node, "why": why})).collect();
        println!(
            "{}",
            json!({"node": drain.node, "closed": closed, "acknowledged": told.acknowledged, "failed": failed})
        );
    } else {
        let state = if closed { "closed to new players" } else { "open" };
        println!("{} is {state}; {} workers of linkds know it", drain.node, told.acknowledged);
    }
    if told.failed.is_empty() {
        return Ok(());
    }
    let failed: Vec<_> = told.failed.iter().map(|(node, why)| format!("{node}: {why}")).collect();
    Err(Failed::Unreachable(format!("not every linkd knows it; {}", failed.join("; "))))
}

/// Shows the sessions of an account, or those with a number.
pub async fn lookup(lookup: &Lookup) -> Result<(), Failed> {
    if let Some(other) = &lookup.other {
        return locks::lookup(other).await;
    }
    let target = match (&lookup.account, lookup.sid) {
        (_, Some(sid)) => Target::LinkSid(LinkSid(sid)),
        (account, None) => {
            let account = account.as_deref().unwrap_or_default();
            Target::Account(Account::new(account).map_err(|error| Failed::Usage(error.to_string()))?)
        }
    };
    let mut all = Vec::new();
    for linkd in nodes(&lookup.ask).await?.iter().filter(|node| text(node, "role") == "linkd") {
        let mut client = Client::connect(text(linkd, "ops")).await.map_err(unreachable)?;
        if let Value::Array(found) = client.lookup(target.clone()).await.map_err(unreachable)? {
            all.extend(found.into_iter().map(|mut session| {
                session["linkd"] = linkd["node"].clone();
                session
            }));
        }
    }
    if lookup.ask.json {
        println!("{}", Value::Array(all));
        return Ok(());
    }
    for session in &all {
        let binds = session["binds"].as_object().into_iter().flatten();
        let binds: Vec<_> =
            binds.map(|(module, node)| format!("{module} at {}", node.as_str().unwrap_or(""))).collect();
        println!(
            "{:<20} {} at {}  from {}  modules {}",
            text(session, "account"),
            text(session, "sid"),
            text(session, "linkd"),
            text(session, "client_addr"),
            if binds.is_empty() { "none bound".to_owned() } else { binds.join(", ") },
        );
    }
    println!("{} sessions", all.len());
    Ok(())
}

/// Stops one node, or all of them in the order of their tiers.
pub async fn stop(stop: &Stop) -> Result<(), Failed> {
    let Some(node) = &stop.node else { return stop_all(stop).await };
    let addr = address(&stop.ask, node).await?;
    stop_at(&addr, stop.now).await?;
    gone(stop, &BTreeSet::from([node.clone()])).await?;
    say(stop, std::slice::from_ref(node));
    Ok(())
}

async fn stop_all(stop: &Stop) -> Result<(), Failed> {
    let own =
        Client::connect(&stop.ask.ops).await.map_err(unreachable)?.status().await.map_err(unreachable)?;
    if text(&own, "role") != "directory" {
        let text = format!("the node at {} is no service manager, which must be the last one", stop.ask.ops);
        return Err(Failed::Usage(text));
    }
    let mut stopped = Vec::new();
    for tier in TIERS {
        let nodes = nodes(&stop.ask).await?;
        let tier: Vec<_> = nodes.iter().filter(|node| text(node, "role") == tier).collect();
        for node in &tier {
            stop_at(text(node, "ops"), stop.now).await?;
        }
        let names: BTreeSet<_> = tier.iter().map(|node| text(node, "node").to_owned()).collect();
        gone(stop, &names).await?;
        stopped.extend(names);
    }
    stop_at(&stop.ask.ops, stop.now).await?;
    stopped.push(text(&own, "node").to_owned());
    say(stop, &stopped);
    Ok(())
}

async fn stop_at(addr: &str, now: bool) -> Result<(), Failed> {
    let mut client = Client::connect(addr).await.map_err(unreachable)?;
    client.stop(now).await.map_err(unreachable).map(|_| ())
}

/// Waits until the directory lists none of these any more.
async fn gone(stop: &Stop, names: &BTreeSet<String>) -> Result<(), Failed> {
    let until = Instant::now() + Duration::from_secs(stop.timeout);
    loop {
        let nodes = match nodes(&stop.ask).await {
            Ok(nodes) => nodes,
            // Whoever was asked for the list is who stops.
            Err(_) if !stop.all => return Ok(()),
            Err(error) => return Err(error),
        };
        let left: Vec<_> =
            nodes.iter().map(|node| text(node, "node")).filter(|name| names.contains(*name)).collect();
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            let text = format!("still there after {} s: {}", stop.timeout, left.join(", "));
            return Err(Failed::Unreachable(text));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn say(stop: &Stop, stopped: &[String]) {
    if stop.ask.json {
        println!("{}", json!({ "stopped": stopped }));
    } else {
        stopped.iter().for_each(|node| println!("{node} has stopped"));
    }
}
