//! Debian's redis-server without persistence, which one would lock records with otherwise: `SET key value NX PX 10000`,
//! pipelined on one connection. And the load on it.

use std::collections::VecDeque;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};
use bytes::{Buf, BytesMut};
use net::Tcp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::load::Measured;
use super::process::{self, Part};
use super::tally::{Pace, Tally};

/// One run of the load.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    #[arg(long)]
    pub addr: String,
    #[command(flatten)]
    pub pace: Pace,
}

/// Starts a server that keeps nothing.
pub async fn start() -> Result<Part> {
    let port = process::free_port()?.to_string();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.args(["--loglevel", "warning"]);
    process::start_silent(command, &format!("127.0.0.1:{port}")).await
}

/// Locks one key after another, each for the first time, and unlocks none.
pub async fn run(plan: &Plan) -> Result<Measured> {
    let mut stream = Tcp::dial(&plan.addr).await?;
    stream.set_nodelay(true)?;
    let mut tally = Tally::new(&plan.pace)?;
    let (mut out, mut buf) = (Vec::new(), BytesMut::with_capacity(64 * 1024));
    // Answers come in the order of what was sent.
    let mut sent = VecDeque::new();
    let mut key = node::clock::unix_micros() << 8;
    let mut free = plan.pace.window;
    loop {
        let now = Instant::now();
        for _ in 0..free {
            set(&mut out, key);
            key = key.wrapping_add(1);
            sent.push_back(now);
        }
        stream.write_all(&out).await?;
        out.clear();
        if stream.read_buf(&mut buf).await? == 0 {
            bail!("redis has closed the connection");
        }
        let now = Instant::now();
        free = 0;
        let mut used = 0;
        while let Some(end) = buf[used..].iter().position(|byte| *byte == b'\n') {
            // Anything but a granted lock: `$-1` for one that others have, `-ERR …`.
            tally.errors += u64::from(&buf[used..=used + end] != b"+OK\r\n");
            used += end + 1;
            if let Some(began) = sent.pop_front() {
                tally.note(began, now);
            }
            free += 1;
        }
        buf.advance(used);
        if tally.is_over(now) {
            return Ok(tally.measured());
        }
        buf.reserve(64 * 1024);
    }
}

/// A key of twelve bytes, as ours have; a value that would say whose the lock is.
fn set(out: &mut Vec<u8>, key: u64) {
    out.extend_from_slice(b"*6\r\n$3\r\nSET\r\n$12\r\nlock");
    out.extend_from_slice(&key.to_be_bytes());
    out.extend_from_slice(b"\r\n$8\r\nload-001\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n");
}
