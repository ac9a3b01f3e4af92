//! A process that opens connections, logs each in, says how long that took and then keeps them, saying nothing.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{load, process};

/// Logins in progress at once: enough that linkd always has one waiting.
const AT_ONCE: usize = 128;
/// Between two looks whether a connection has ended.
const LOOK: Duration = Duration::from_secs(1);

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
    let load = load::Plan {
        addr: plan.addr.clone(),
        sessions: 0,
        window: 1,
        body_bytes: 0,
        warm_ms: 0,
        measure_ms: 0,
        login: true,
    };
    let (mut held, mut errors) = (Vec::with_capacity(plan.count), 0);
    let began_us = node::clock::unix_micros();
    let mut coming = JoinSet::new();
    let mut next = plan.first;
    let last = plan.first + plan.count;
    while next < last || !coming.is_empty() {
        while next < last && coming.len() < AT_ONCE {
            let (load, index) = (load.clone(), next);
            coming.spawn(async move { load::connect(&load, index).await });
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
    let closed = until_closed(&held).await;
    anyhow::bail!("linkd closed a connection that did nothing: {closed}")
}

/// Waits until one of the connections ends.
async fn until_closed(held: &[TcpStream]) -> io::Error {
    loop {
        for stream in held {
            match stream.try_read(&mut [0]) {
                Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return error,
                _ => {}
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}
