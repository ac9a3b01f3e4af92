//! Processes of a bench: this binary again in another part, or a baseline. Each is killed when its handle is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// What a part prints when it may be used; the rest of the line is its address.
const READY: &str = "READY ";

/// Tells the bench that this part is up.
pub fn say_ready(addr: &str) {
    println!("{READY}{addr}");
}

/// A running part.
#[derive(Debug)]
pub struct Part {
    child: Child,
    /// Where it listens.
    pub addr: String,
}

impl Part {
    /// The process's number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This binary with other arguments, on one core when `pinned`.
pub fn ourselves(args: &[&str], pinned: bool) -> Result<Command> {
    let exe = std::env::current_exe().context("where this binary is")?;
    let mut command = if pinned {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(exe);
        command
    } else {
        Command::new(exe)
    };
    command.args(args);
    Ok(command)
}

/// Starts a part and waits until it says that it is ready.
pub fn start(mut command: Command) -> Result<Part> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {:?}", command.get_program()))?;
    let stdout = child.stdout.take().context("the part has no output")?;
    for line in BufReader::new(stdout).lines() {
        if let Some(addr) = line?.strip_prefix(READY) {
            let addr = addr.to_string();
            return Ok(Part { child, addr });
        }
    }
    let _ = child.kill();
    bail!("{:?} ended before it was ready: {}", command.get_program(), child.wait()?)
}

/// Starts a program that says nothing, and waits until its port answers.
pub async fn start_silent(mut command: Command, addr: &str) -> Result<Part> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {:?}; is it installed?", command.get_program()))?;
    let part = Part { child, addr: addr.to_string() };
    for _ in 0..200 {
        if net::Tcp::dial(addr).await.is_ok() {
            return Ok(part);
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    bail!("{:?} does not answer on {addr}", command.get_program())
}

/// A port that is free now.
pub fn free_port() -> Result<u16> {
    Ok(net::Tcp::listen(([127, 0, 0, 1], 0).into())?.local_addr()?.port())
}
