//! A process of ours under test: its output as it comes, signals, and an end within a bound.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
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
        let lines = lines(child.stdout.take().unwrap());
        Self { child, lines, seen: Vec::new() }
    }

    /// Its log, which is its standard error, is among the lines.
    pub fn spawn_with_log(mut command: Command) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let child = command.spawn().unwrap();
        // The command holds the writing ends: only without it the pipe ends with the child.
        drop(command);
        Self { child, lines: lines(reader), seen: Vec::new() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that contains `text` and returns it.
    pub fn wait_for(&mut self, text: &str) -> String {
        self.wait_within(text, PATIENCE)
    }

    /// The same within less time.
    pub fn wait_within(&mut self, text: &str, patience: Duration) -> String {
        let deadline = Instant::now() + patience;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no {text:?} within {patience:?}; seen {:#?}", self.seen)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("ended without {text:?}; seen {:#?}", self.seen)
                }
            }
        }
    }

    /// Waits for a line that contains `text`; false: it ended without one.
    pub fn is_ready(&mut self, text: &str) -> bool {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.push(line);
                    if self.seen.last().is_some_and(|line| line.contains(text)) {
                        return true;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => panic!("no end and no {text:?}; seen {:#?}", self.seen),
            }
        }
    }

    /// Everything that it has said so far.
    pub fn said(&mut self) -> &[String] {
        self.seen.extend(self.lines.try_iter());
        &self.seen
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

/// What a process says, line by line.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = sync_channel(10_000);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// An address that is free now, for a process that must come back to it. Below the ports that the system gives to
/// whoever dials: one of those could be taken while the process is away.
pub fn free_addr() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Tests run side by side, each in a process of its own.
    let first = std::process::id().wrapping_mul(61) as u16;
    loop {
        let port = 10_000 + first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
        if net::Tcp::listen(([127, 0, 0, 1], port).into()).is_ok() {
            return format!("127.0.0.1:{port}");
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
