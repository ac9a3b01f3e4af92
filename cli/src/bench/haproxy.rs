//! Debian's haproxy in TCP mode, what people put in front of a game server today.

use std::io::Write;
use std::process::Command;

use anyhow::{Context, Result};

use super::process::{self, Part};

/// Two threads and splicing, as its manual recommends for copying bytes.
const GLOBAL: &[&str] = &["nbthread 2", "maxconn 4000"];
/// As many sessions as it is told to take.
pub const SESSIONS_MAX: usize = 4_000;
const DEFAULTS: &[&str] =
    &["mode tcp", "timeout connect 5s", "timeout client 1h", "timeout server 1h", "option splice-auto"];

/// What is on while it is measured.
pub fn limits() -> String {
    [GLOBAL, DEFAULTS].concat().join(", ")
}

/// A haproxy in front of `backend`, with its configuration in a file that lives as long as it.
#[derive(Debug)]
pub struct Haproxy {
    pub part: Part,
    _config: tempfile::NamedTempFile,
}

/// Starts one and waits until it listens; on one core when `pinned`.
pub async fn start(backend: &str, pinned: bool) -> Result<Haproxy> {
    let port = process::free_port()?;
    let mut config = tempfile::NamedTempFile::new().context("haproxy's configuration")?;
    let (global, defaults) = (GLOBAL.join("\n  "), DEFAULTS.join("\n  "));
    write!(
        config,
        "global\n  {global}\ndefaults\n  {defaults}\nlisten bench\n  bind 127.0.0.1:{port}\n  server echo {backend}\n"
    )?;
    config.flush()?;
    let mut command = if pinned {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", "haproxy"]);
        command
    } else {
        Command::new("haproxy")
    };
    command.arg("-f").arg(config.path()).arg("-q").arg("-db");
    let part = process::start_silent(command, &format!("127.0.0.1:{port}")).await?;
    Ok(Haproxy { part, _config: config })
}
