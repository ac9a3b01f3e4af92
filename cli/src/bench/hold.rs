//! A process that opens connections, logs each in, says how long that took and then keeps them, saying nothing.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;

use super::{load, process};

/// Logins in progress at once: enough that linkd always has one waiting.
const AT_ONCE: usize = 128;

/// What to hold.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    #[arg(long)]
    pub addr: String,
    #[arg(long)]
    pub count: usize,
    /// The number of the first account.
    #[arg(long, default_value_t = 0)]
    pub first: usize,
}

/// What a holding process says when all are in.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Held {
    /// Unix time at which it began and at which the last was logged in, in microseconds.
    pub began_us: u64,
    pub done_us: u64,
    pub errors: u64,
}

/// Runs until it is killed.
pub async fn run(plan: &Plan) -> Result<()> {
    let (mut held, mut errors) = (Vec::with_capacity(plan.count), 0);
    let began_us = node::clock::unix_micros();
    let mut coming = JoinSet::new();
    let mut next = plan.first;
    let last = plan.first + plan.count;
    while next < last || !coming.is_empty() {
        while next < last && coming.len() < AT_ONCE {
            let (addr, account) = (plan.addr.clone(), next);
            coming.spawn(async move { load::connect(&addr, None, Some(account)).await });
            next += 1;
        }
        match coming.join_next().await {
            Some(Ok(Ok(stream))) => held.push(stream),
            Some(failed) => {
                errors += 1;
                if errors == 1 {
                    eprintln!("a connection failed: {failed:?}");
                }
            }
            None => {}
        }
    }
    let done_us = node::clock::unix_micros();
    let said = Held { began_us, done_us, errors };
    process::say_ready(&serde_json::to_string(&said).context("saying what was held")?);
    let mut ends = JoinSet::new();
    for mut stream in held {
        ends.spawn(async move {
            let mut buf = [0; 64];
            while matches!(stream.read(&mut buf).await, Ok(1..)) {}
        });
    }
    ends.join_next().await;
    anyhow::bail!("linkd closed a connection that did nothing")
}
