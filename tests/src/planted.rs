//! Planted faults: breaks built into the code on purpose, one at a time, to show
//! that a test sees them. They exist only under the cargo feature `planted`.
//!
//! Production code asks `if base::planted::is("bind_twice") { … }`. Without the
//! feature that is a constant `false` and nothing is left of it. With the feature
//! it is true when the variable `LINKSTEAD_PLANTED` holds that name. Every name
//! has a row in `table`; `cargo planted` runs them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

mod row;
mod table;

pub use table::{FAULTS, Fault};

/// The variable that chooses the fault.
pub const VARIABLE: &str = "LINKSTEAD_PLANTED";

/// A test that hangs has noticed the fault too, yet must not hold up the rest.
const RUN_TIME_MAX: Duration = Duration::from_secs(120);

/// What became of one fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// This many tests failed, as they must.
    Caught(usize),
    /// A test ran longer than any should.
    Hung,
    /// Every test passed although the fault was there.
    Missed,
    /// The tests fail without the fault, so they prove nothing.
    Broken,
    /// No test has such a name.
    NoTest,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        matches!(self, Self::Caught(_) | Self::Hung)
    }

    pub fn text(&self) -> String {
        match self {
            Self::Caught(1) => "caught by 1 test".to_owned(),
            Self::Caught(tests) => format!("caught by {tests} tests"),
            Self::Hung => "caught: a test hung".to_owned(),
            Self::Missed => "MISSED: every test passed".to_owned(),
            Self::Broken => "BROKEN: tests fail without the fault".to_owned(),
            Self::NoTest => "NO TEST has this name".to_owned(),
        }
    }
}

/// The rows to run: all, or the named ones.
pub fn choose(names: &[String]) -> Result<Vec<Fault>> {
    let pick = |name: &String| {
        let row = FAULTS.iter().find(|fault| fault.name == name).copied();
        row.with_context(|| format!("no planted fault is called `{name}`; see `cargo planted --list`"))
    };
    if names.is_empty() { Ok(FAULTS.to_vec()) } else { names.iter().map(pick).collect() }
}

/// The test programs of each package, built once with all faults in them.
pub struct Programs {
    of: BTreeMap<String, Vec<Program>>,
}

struct Program {
    path: PathBuf,
    /// Tests expect to run in the folder of their package.
    folder: PathBuf,
}

impl Programs {
    pub fn build(faults: &[Fault]) -> Result<Self> {
        let packages: BTreeSet<&str> = faults.iter().map(|fault| fault.package).collect();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["test", "--no-run", "--lib", "--tests", "--message-format=json-render-diagnostics"]);
        cargo.current_dir(crate::repo::root()).stderr(Stdio::inherit());
        let mut features = BTreeSet::from(["tests/planted".to_owned()]);
        cargo.args(["-p", "tests"]);
        for package in packages.iter().filter(|package| **package != "tests") {
            cargo.args(["-p", package]);
            features.insert(format!("{package}/planted"));
        }
        let features: Vec<String> = features.into_iter().collect();
        let out = cargo.arg("--features").arg(features.join(",")).output().context("cannot start cargo")?;
        if !out.status.success() {
            bail!("the tests do not build with the feature `planted`");
        }
        let mut of: BTreeMap<String, Vec<Program>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&out.stdout).lines() {
            if let Some((package, program)) = program(line) {
                of.entry(package).or_default().push(program);
            }
        }
        Ok(Self { of })
    }

    /// First without the fault, where all must pass, then with it.
    pub fn judge(&self, fault: &Fault) -> Result<Verdict> {
        let calm = self.run(fault, None)?;
        if calm.hung || calm.failed > 0 {
            return Ok(Verdict::Broken);
        }
        if calm.passed == 0 {
            return Ok(Verdict::NoTest);
        }
        let planted = self.run(fault, Some(fault.name))?;
        Ok(match planted {
            Outcome { failed, .. } if failed > 0 => Verdict::Caught(failed),
            Outcome { hung: true, .. } => Verdict::Hung,
            _ => Verdict::Missed,
        })
    }

    fn run(&self, fault: &Fault, planted: Option<&str>) -> Result<Outcome> {
        let mut sum = Outcome::default();
        for program in self.of.get(fault.package).into_iter().flatten() {
            let mut command = Command::new(&program.path);
            command.arg(fault.filter).current_dir(&program.folder).env_remove(VARIABLE);
            if let Some(name) = planted {
                command.env(VARIABLE, name);
            }
            let one = bounded(command, RUN_TIME_MAX)?;
            sum.passed += one.passed;
            sum.failed += one.failed;
            sum.hung |= one.hung;
        }
        Ok(sum)
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    passed: usize,
    failed: usize,
    hung: bool,
}

/// Reads one line of cargo's messages: the test program it has built.
fn program(line: &str) -> Option<(String, Program)> {
    let message: Value = serde_json::from_str(line).ok()?;
    if !message["profile"]["test"].as_bool()? {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_path_buf();
    // `path+file:///a/linkd#0.1.0` or `path+file:///a/provider#linkstead@0.1.0`.
    let id = message["package_id"].as_str()?;
    let (place, tail) = id.rsplit_once('#')?;
    let package = tail.split_once('@').map(|(name, _)| name).or_else(|| place.rsplit('/').next())?;
    Some((package.to_owned(), Program { path, folder }))
}

/// Runs one test program for at most `limit`.
fn bounded(mut command: Command, limit: Duration) -> Result<Outcome> {
    command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null());
    let child = command.spawn().context("cannot start a test program")?;
    let id = child.id();
    let (done, result) = mpsc::sync_channel(1);
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let Ok(out) = result.recv_timeout(limit) else {
        Command::new("kill")
            .args(["-KILL", &id.to_string()])
            .status()
            .context("cannot stop a test program")?;
        return Ok(Outcome { hung: true, ..Outcome::default() });
    };
    let out = out.context("a test program cannot be waited for")?;
    let mut outcome = counts(&String::from_utf8_lossy(&out.stdout));
    // A program that died without its closing line (abort, stack overflow) failed.
    if !out.status.success() && outcome.failed == 0 {
        outcome.failed = 1;
    }
    Ok(outcome)
}

/// From `test result: FAILED. 3 passed; 1 failed; …`.
fn counts(stdout: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in stdout.lines().filter(|line| line.starts_with("test result:")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let number = pair[0].parse().unwrap_or(0);
            match pair[1] {
                "passed;" => outcome.passed += number,
                "failed;" => outcome.failed += number,
                _ => {}
            }
        }
    }
    outcome
}

/// The runner's own fault.
pub fn sample() -> u32 {
    if base::planted::is("sample") { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_whole() {
        assert_eq!(sample(), 2);
    }

    #[test]
    fn names_are_unique_and_can_be_chosen() {
        let names: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        assert_eq!(choose(&[]).unwrap().len(), FAULTS.len());
        assert!(choose(&["no-such-fault".to_owned()]).is_err());
    }

    #[test]
    fn reads_what_cargo_and_the_tests_say() {
        let line = r#"{"reason":"compiler-artifact","package_id":"path+file:///a/provider#linkstead@0.1.0","manifest_path":"/a/provider/Cargo.toml","profile":{"test":true},"executable":"/t/linkstead-1"}"#;
        let (package, program) = program(line).unwrap();
        assert_eq!((package.as_str(), program.folder.to_str()), ("linkstead", Some("/a/provider")));
        let plain = line.replace("provider#linkstead@0.1.0", "linkd#0.1.0");
        assert_eq!(super::program(&plain).unwrap().0, "linkd");
        assert!(super::program(&line.replace("\"test\":true", "\"test\":false")).is_none());
        let text = "running 4 tests\ntest result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out\n";
        assert_eq!(counts(text), Outcome { passed: 3, failed: 1, hung: false });
    }

    #[test]
    fn a_program_that_dies_failed_and_one_that_hangs_hung() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let limit = Duration::from_secs(60);
        assert_eq!(bounded(shell("exit 101"), limit).unwrap().failed, 1);
        assert_eq!(bounded(shell("true"), limit).unwrap(), Outcome::default());
        assert!(bounded(shell("exec sleep 600"), Duration::from_millis(50)).unwrap().hung);
    }
}
