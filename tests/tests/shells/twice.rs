//! Each seed runs twice, in two fresh processes, and both must write the same: whatever the runs of one seed can differ in
//! differs between processes too.

use std::process::{Command, Stdio};

/// The variable that names the seed of a run.
pub const VARIABLE: &str = "LINKSTEAD_TURMOIL_SEED";
/// The test that runs it.
const TEST: &str = "one_seed";
/// Lines that are shown of a run that broke a promise.
const TAIL: usize = 80;

/// What a run has printed, and whether it kept every promise.
struct Printed {
    lines: Vec<String>,
    kept: bool,
}

/// Runs a seed twice. Its trace and verdict, or what somebody needs to find out why.
pub fn examine(seed: u64) -> Result<Vec<String>, String> {
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(seed));
        (run(seed), other.join().expect("a run in another process"))
    });
    let replay = format!("replay: {VARIABLE}={seed} cargo turmoil");
    let longest = one.lines.len().max(other.lines.len());
    if let Some(at) = (0..longest).find(|&at| one.lines.get(at) != other.lines.get(at)) {
        let before = one.lines[at.saturating_sub(TAIL)..at].join("\n");
        let (a, b) = (one.lines.get(at), other.lines.get(at));
        return Err(format!("{before}\nseed {seed}: two runs differ at line {at}:\n{a:?}\n{b:?}\n{replay}"));
    }
    if !one.kept {
        let tail = one.lines[one.lines.len().saturating_sub(TAIL)..].join("\n");
        return Err(format!("{tail}\n{replay}"));
    }
    Ok(one.lines)
}

fn run(seed: u64) -> Printed {
    let program = std::env::current_exe().expect("a test knows its own program");
    let mut command = Command::new(program);
    command.args(["--exact", TEST, "--nocapture"]).env(VARIABLE, seed.to_string()).stdin(Stdio::null());
    let out = command.output().expect("the program of this test starts again");
    let text = String::from_utf8_lossy(&out.stdout);
    // How long it took is the runner's own line.
    let lines = text.lines().filter(|line| !line.starts_with("test result:")).map(str::to_owned).collect();
    Printed { lines, kept: out.status.success() }
}
