//! A process of ours under test: its output as it comes, signals, and an end within a bound.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Process {
    child: Child,
    lines: Receiver<String>,
    pub seen: Vec<String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn linkstead(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linkstead"));
    command.args(args);
    command
}

impl Process {
    pub fn start(args: &[&str]) -> Self {
        Self::spawn(linkstead(args))
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = sync_channel(10_000);
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that contains `text` and returns it.
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no {text:?} within {PATIENCE:?}; seen {:#?}", self.seen)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("ended without {text:?}; seen {:#?}", self.seen)
                }
            }
        }
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end and how it came.
    pub fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.seen.extend(self.lines.try_iter());
                return status;
            }
            assert!(Instant::now() < deadline, "still running; seen {:#?}", self.seen);
            #[allow(clippy::disallowed_methods)]
            // Sleep: a process has no event to wait for without blocking for ever.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A word of the form `127.0.0.1:PORT` after `label` in a line.
pub fn addr_after(line: &str, label: &str) -> String {
    let rest = line.split(label).nth(1).unwrap_or_else(|| panic!("no {label:?} in {line:?}"));
    rest.split_whitespace().next().unwrap().trim_end_matches(',').to_string()
}

/// Runs to the end and answers exit code, standard output and standard error.
pub fn output(args: &[&str]) -> (i32, String, String) {
    let mut child =
        linkstead(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (child.wait().unwrap().code().unwrap_or(-1), out, err)
}
