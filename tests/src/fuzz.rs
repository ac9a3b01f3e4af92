//! Builds the fuzz program and drives it: each target for a while from its committed corpus, and one of them with a
//! planted fault, which it must find.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::planted::VARIABLE;
use crate::repo;

/// The variable that chooses the target.
const TARGET: &str = "LINKSTEAD_FUZZ";
/// A fault that a target must find, so that a fuzzer which finds nothing is not taken for clean code.
pub const PLANTED: (&str, &str) = ("node_frames", "node_head_believed");
/// Longer inputs find nothing that shorter ones don't; `fuzz::INPUT_BYTES_MAX`.
const INPUT_BYTES_MAX: usize = 4_096;
/// No input takes more memory; each target has a much closer bound of its own.
const RSS_MIB_MAX: usize = 512;
/// No input takes longer.
const INPUT_SECONDS_MAX: u64 = 10;

/// The built program and where its corpora are.
#[derive(Debug)]
pub struct Fuzzer {
    program: PathBuf,
    corpus: PathBuf,
    /// What it finds new, and the inputs that break something.
    scratch: PathBuf,
}

/// One target's run.
#[derive(Debug)]
pub struct Ran {
    pub took: Duration,
    /// Inputs tried.
    pub inputs: u64,
    /// `Some`: what it found, its last lines.
    pub finding: Option<String>,
}

impl Fuzzer {
    /// Only packages of ours are built anew, with counters in them; the rest is what other builds use.
    pub fn build() -> Result<Self> {
        let root = repo::root();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // The whole workspace, so that other packages have the features that its tests build them with.
        cargo.args(["test", "--workspace", "--no-run", "--test", "libfuzzer"]);
        cargo.args(["--features", "fuzz/libfuzzer,fuzz/planted"]);
        cargo.arg("--message-format=json-render-diagnostics");
        cargo.env("RUSTC_WORKSPACE_WRAPPER", root.join("fuzz/rustc"));
        let out = cargo.current_dir(&root).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
        if !out.status.success() {
            bail!("the fuzz program does not build");
        }
        let program = String::from_utf8_lossy(&out.stdout).lines().find_map(program);
        let program = program.context("cargo does not say where the fuzz program is")?;
        let scratch = program.parent().unwrap_or(Path::new(".")).join("fuzzing");
        Ok(Self { program, corpus: root.join("fuzz/corpus"), scratch })
    }

    /// The targets, by their corpora.
    pub fn targets(&self) -> Result<Vec<String>> {
        let folders = std::fs::read_dir(&self.corpus).context("cannot list fuzz/corpus")?;
        let mut names = Vec::new();
        for folder in folders {
            names.push(folder?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// Tries inputs for some seconds, in `planted`'s presence if there is one.
    pub fn run(&self, target: &str, seconds: u64, planted: Option<&str>) -> Result<Ran> {
        let folder = self.scratch.join(target);
        // What a planted fault leads to must not be kept.
        let found = folder.join(planted.unwrap_or("found"));
        std::fs::create_dir_all(&found).with_context(|| format!("cannot make {}", found.display()))?;
        let mut command = Command::new(&self.program);
        command.arg(&found).arg(self.corpus.join(target));
        command.arg(format!("-max_total_time={seconds}"));
        command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
        command.arg(format!("-rss_limit_mb={RSS_MIB_MAX}"));
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
        command.arg(format!("-artifact_prefix={}/", folder.display()));
        command.arg("-print_final_stats=1");
        command.env(TARGET, target).env_remove(VARIABLE).stdin(Stdio::null());
        if let Some(fault) = planted {
            command.env(VARIABLE, fault);
        }
        let began = Instant::now();
        let out = command.output().context("cannot start the fuzz program")?;
        let text = String::from_utf8_lossy(&out.stderr);
        let inputs = number(&text, "stat::number_of_executed_units:").unwrap_or(0);
        let finding = (!out.status.success()).then(|| tail(&text));
        Ok(Ran { took: began.elapsed(), inputs, finding })
    }
}

/// Reads one line of cargo's messages: the fuzz program it has built.
fn program(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let name = message["target"]["name"].as_str()?;
    (name == "libfuzzer").then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
}

fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// What was found stands at the end, between the numbers of the run.
fn tail(text: &str) -> String {
    let said: Vec<&str> =
        text.lines().filter(|line| !line.starts_with(['#', ' ']) || line.contains("/src/")).collect();
    said[said.len().saturating_sub(25)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_cargo_and_the_fuzzer_say() {
        let line =
            r#"{"reason":"compiler-artifact","target":{"name":"libfuzzer"},"executable":"/t/libfuzzer-1"}"#;
        assert_eq!(program(line), Some(PathBuf::from("/t/libfuzzer-1")));
        assert_eq!(program(&line.replace("r\"}", "\"}").replace("libfuzzer\"", "fuzz\"")), None);
        let text = "#2 INITED\nstat::number_of_executed_units: 512\nstat::peak_rss_mb: 9\n";
        assert_eq!(number(text, "stat::number_of_executed_units:"), Some(512));
        assert_eq!(number("", "stat::number_of_executed_units:"), None);
    }

    #[test]
    fn the_planted_fault_has_a_row() {
        assert!(crate::planted::choose(&[PLANTED.1.to_owned()]).is_ok());
    }
}
