//! The commands that the pages show, run as written. A code block whose fence
//! says `sh ci` runs to its end and must exit 0; one that says
//! `sh ci=background:READY TEXT` is started, must print that text, stays up while
//! the rest of the page runs, and must end with exit 0 on Ctrl-C.
//!
//! Each page runs in a fresh copy of the repository; each block in a shell of
//! its own that starts in the copy's root.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};

use crate::repo;

/// How a block is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Foreground,
    /// Until the page ends; up once it has printed this text.
    Background(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub page: String,
    /// Of the first command.
    pub line: usize,
    pub kind: Kind,
    pub script: String,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A foreground block, or the start of a background one; both may build.
    pub block: Duration,
    /// From Ctrl-C to the end.
    pub stop: Duration,
}

/// What became of one block.
#[derive(Debug)]
pub struct Outcome {
    pub block: Block,
    pub took: Duration,
    /// Why it failed.
    pub failure: Option<String>,
}

/// The blocks of a page that are to run, in order.
pub fn blocks(page: &str, text: &str) -> Result<Vec<Block>> {
    let mut out = Vec::new();
    // The fence that is open, and the block if it is one of ours.
    let mut open: Option<(String, Option<Block>)> = None;
    for (index, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        if let Some((fence, block)) = &mut open {
            if bare.trim_end() == fence {
                out.extend(open.take().and_then(|(_, block)| block));
            } else if let Some(block) = block {
                block.script.push_str(line);
                block.script.push('\n');
            }
        } else if bare.starts_with("```") {
            let fence: String = bare.chars().take_while(|&c| c == '`').collect();
            let info = bare[fence.len()..].trim();
            let place = || format!("{page}:{}", index + 1);
            let kind = kind(info).with_context(place)?;
            let (page, line) = (page.to_owned(), index + 2);
            open = Some((fence, kind.map(|kind| Block { page, line, kind, script: String::new() })));
        }
    }
    if open.is_some() {
        bail!("{page}: the last code block is not closed");
    }
    Ok(out)
}

/// `None` for blocks that are only shown.
fn kind(info: &str) -> Result<Option<Kind>> {
    let Some((language, tag)) = info.split_once(' ') else { return Ok(None) };
    let tag = tag.trim();
    if !tag.starts_with("ci") {
        return Ok(None);
    }
    if language != "sh" {
        bail!("only `sh` blocks can run, not `{language}`");
    }
    match tag.strip_prefix("ci=background:") {
        Some(ready) if !ready.trim().is_empty() => Ok(Some(Kind::Background(ready.trim().to_owned()))),
        None if tag == "ci" => Ok(Some(Kind::Foreground)),
        _ => bail!("expected `ci` or `ci=background:READY TEXT`, not `{tag}`"),
    }
}

/// Runs one page's blocks in `folder`. A failure ends the page, since later
/// commands build on earlier ones; what runs in the background is always ended.
pub fn run_page(blocks: Vec<Block>, folder: &Path, target: &Path, limits: Limits) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    let mut background = Vec::new();
    for block in blocks {
        println!("--- {}:{}\n{}", block.page, block.line, block.script.trim_end());
        let start = Instant::now();
        let mut running = Running::start(&block.script, folder, target)?;
        let failure = match &block.kind {
            Kind::Foreground => running.finish(limits.block),
            Kind::Background(ready) => running.wait_for(ready, limits.block),
        };
        let failed = failure.is_some();
        let up = !failed && block.kind != Kind::Foreground;
        outcomes.push(Outcome { block, took: start.elapsed(), failure });
        if up {
            background.push((outcomes.len() - 1, running));
        }
        if failed {
            break;
        }
    }
    // The last one started is the first one ended, as a reader would do it.
    for (index, mut running) in background.into_iter().rev() {
        println!("--- Ctrl-C to {}:{}", outcomes[index].block.page, outcomes[index].block.line);
        running.signal("-INT")?;
        outcomes[index].failure = running.finish(limits.stop).map(|why| format!("after Ctrl-C: {why}"));
    }
    Ok(outcomes)
}

/// One shell in a process group of its own, so that a signal reaches all it started.
struct Running {
    group: u32,
    lines: Receiver<String>,
    ended: Receiver<std::io::Result<std::process::ExitStatus>>,
    over: bool,
}

/// Readers wait when nobody takes their lines; a block prints far less than this
/// between two looks.
const LINES_MAX: usize = 4096;

impl Running {
    fn start(script: &str, folder: &Path, target: &Path) -> Result<Self> {
        let mut child = Command::new("bash")
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(folder)
            .env("CARGO_TARGET_DIR", target)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("cannot start bash")?;
        let (line, lines) = sync_channel(LINES_MAX);
        pump(child.stdout.take(), line.clone());
        pump(child.stderr.take(), line);
        let group = child.id();
        let (end, ended) = sync_channel(1);
        std::thread::spawn(move || wait(child, &end));
        Ok(Self { group, lines, ended, over: false })
    }

    /// Shows the output until `ready` appears in it; otherwise says what went wrong.
    fn wait_for(&mut self, ready: &str, limit: Duration) -> Option<String> {
        let end = Instant::now() + limit;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    println!("{line}");
                    if line.contains(ready) {
                        return None;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Some(format!("did not say `{ready}` within {} s", limit.as_secs()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let why = self.finish(Duration::from_secs(1)).unwrap_or_else(|| "exit 0".to_owned());
                    return Some(format!("ended before it said `{ready}`: {why}"));
                }
            }
        }
    }

    /// Shows the output until the shell has ended; `None` for exit 0.
    fn finish(&mut self, limit: Duration) -> Option<String> {
        let end = Instant::now() + limit;
        let step = Duration::from_millis(50);
        let status = loop {
            while let Ok(line) = self.lines.try_recv() {
                println!("{line}");
            }
            match self.ended.recv_timeout(step) {
                Ok(status) => break status,
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(_) => return Some(format!("still running after {} s", limit.as_secs())),
            }
        };
        self.over = true;
        // What is still in the pipes; a grandchild that keeps them open must not hold us up.
        while let Ok(line) = self.lines.recv_timeout(step) {
            println!("{line}");
        }
        match status {
            Ok(status) if status.success() => None,
            Ok(status) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let group = format!("-{}", self.group);
        let status = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
        status.context("cannot send a signal").map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing of a page may outlive it, whatever path led here. The group may
        // be empty by now; then the signal finds nobody.
        if let Err(error) = self.signal("-KILL") {
            eprintln!("group {}: {error}", self.group);
        }
    }
}

fn wait(mut child: Child, end: &SyncSender<std::io::Result<std::process::ExitStatus>>) {
    // The receiver is gone when the page was given up; then nobody wants to know.
    let _unheard = end.send(child.wait());
}

/// Sends each line on. Output that is not UTF-8 is shown with replacements.
fn pump(pipe: Option<impl Read + Send + 'static>, lines: SyncSender<String>) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            bytes.clear();
            // Keep reading when nobody listens: a full pipe would stop the block.
            let _unheard = lines.send(line);
        }
    });
}

/// A copy of what git would commit, below the target folder, so that a page may
/// change files and the next one starts afresh.
pub fn copy_repository(target: &Path) -> Result<PathBuf> {
    let (from, to) = (repo::root(), target.join("docs-scratch"));
    copy(&from, &repo::files(&from)?, &to)?;
    Ok(to)
}

/// Copies `files` with an age that lets the second page build only what is another than it was built of: the source's when
/// nothing stands there, that of an equal copy, and now for whatever a page or somebody else has changed.
fn copy(from: &Path, files: &[String], to: &Path) -> Result<()> {
    let ages = files.iter().map(|path| age(&from.join(path), &to.join(path)));
    let ages = ages.collect::<Result<Vec<_>>>()?;
    if to.exists() {
        std::fs::remove_dir_all(to).with_context(|| format!("cannot clear {}", to.display()))?;
    }
    let mut folders = BTreeSet::new();
    for (path, age) in files.iter().zip(ages) {
        let goal = to.join(path);
        let folder = goal.parent().unwrap_or(to);
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::copy(from.join(path), &goal).with_context(|| format!("cannot copy {path}"))?;
        if let Some(age) = age {
            date(&goal, age)?;
        }
        folders.extend(Path::new(path).ancestors().skip(1).map(Path::to_owned));
    }
    // Last, since each file changes the age of its folder. Build scripts that watch a
    // folder ask for it.
    folders.iter().try_for_each(|folder| date(&to.join(folder), modified(&from.join(folder))?))
}

/// How old a copy of `file` over the one that stands there must look; `None` is new.
fn age(file: &Path, copy: &Path) -> Result<Option<SystemTime>> {
    let Ok(before) = std::fs::read(copy) else { return modified(file).map(Some) };
    let now = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    if before == now { modified(copy).map(Some) } else { Ok(None) }
}

fn modified(path: &Path) -> Result<SystemTime> {
    let modified = || std::fs::metadata(path)?.modified();
    modified().with_context(|| format!("cannot tell the age of {}", path.display()))
}

/// Gives a file or folder this age.
fn date(path: &Path, age: SystemTime) -> Result<()> {
    let dated = || std::fs::File::open(path)?.set_modified(age);
    dated().with_context(|| format!("cannot date {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { block: Duration::from_secs(30), stop: Duration::from_secs(30) };

    fn run(page: &str) -> Vec<Option<String>> {
        let dir = tempfile::tempdir().unwrap();
        let outcomes = run_page(blocks("p.md", page).unwrap(), dir.path(), dir.path(), LIMITS).unwrap();
        outcomes.into_iter().map(|outcome| outcome.failure).collect()
    }

    #[test]
    fn takes_only_the_tagged_blocks() {
        let page = "```sh\nshown\n```\n```sh ci\none\ntwo\n```\n````md\n```sh ci\nquoted\n```\n````\n\
                    - list\n  ```sh ci=background:ready to play\n  up\n  ```\n```rust ignore\nx\n```\n";
        let found = blocks("p.md", page).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].line, found[0].script.as_str()), (5, "one\ntwo\n"));
        assert_eq!(found[1].kind, Kind::Background("ready to play".to_owned()));
    }

    #[test]
    fn refuses_tags_it_does_not_know() {
        assert!(blocks("p.md", "```sh ci=later\nx\n```\n").is_err());
        assert!(blocks("p.md", "```sh ci=background:\nx\n```\n").is_err());
        assert!(blocks("p.md", "```rust ci\nx\n```\n").is_err());
        assert!(blocks("p.md", "```sh ci\nx\n").is_err());
    }

    #[test]
    fn blocks_share_the_folder_and_stop_at_the_first_failure() {
        let page =
            "```sh ci\necho hello > a\n```\n```sh ci\ngrep hello a\nfalse | true\n```\n```sh ci\ntrue\n```\n";
        let failures = run(page);
        assert_eq!(failures.len(), 2);
        assert_eq!(failures[0], None);
        assert!(failures[1].as_ref().is_some_and(|why| why.contains("exit status: 1")), "{failures:?}");
    }

    #[test]
    fn the_background_runs_until_ctrl_c() {
        let page = "```sh ci=background:all up\ntrap 'echo bye; touch bye; exit 0' INT\necho starting\n\
                    echo all up: 3 nodes\nwhile true; do read -t 0.02 <> <(:) || true; done\n```\n\
                    ```sh ci\ntest ! -e bye\n```\n";
        assert_eq!(run(page), [None, None]);
    }

    #[test]
    fn the_background_must_come_up_and_must_end_well() {
        let early = run("```sh ci=background:up\necho almost; exit 3\n```\n```sh ci\ntrue\n```\n");
        assert_eq!(early.len(), 1);
        assert!(
            early[0].as_ref().is_some_and(|why| why.contains("ended before it said `up`: exit status: 3"))
        );
        let rude = run("```sh ci=background:up\necho up\nexec cat <(exec tail -f /dev/null)\n```\n");
        assert!(rude[0].as_ref().is_some_and(|why| why.contains("after Ctrl-C: signal: 2")), "{rude:?}");
    }

    #[test]
    fn a_block_that_never_ends_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let found = blocks("p.md", "```sh ci\nexec tail -f /dev/null\n```\n").unwrap();
        let limits = Limits { block: Duration::from_millis(100), ..LIMITS };
        let outcomes = run_page(found, dir.path(), dir.path(), limits).unwrap();
        assert!(outcomes[0].failure.as_ref().is_some_and(|why| why.starts_with("still running")));
    }

    #[test]
    fn a_copy_is_as_old_as_what_it_was_made_from() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let files = ["a/b/c.proto".to_owned(), "a/d.rs".to_owned()];
        let age = |path: PathBuf| std::fs::metadata(path).unwrap().modified().unwrap();
        std::fs::create_dir_all(from.join("a/b")).unwrap();
        for (index, path) in ["a/b/c.proto", "a/d.rs", "a/b", "a"].iter().enumerate() {
            let path = from.join(path);
            if path.extension().is_some() {
                std::fs::write(&path, "one").unwrap();
            }
            let then = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + index as u64);
            std::fs::File::open(&path).unwrap().set_modified(then).unwrap();
        }
        let same = |path: &str| age(from.join(path)) == age(to.join(path));
        copy(&from, &files, &to).unwrap();
        assert!(["a", "a/b", "a/b/c.proto", "a/d.rs"].iter().all(|path| same(path)));
        // What a page has changed is built again; the rest is not.
        std::fs::write(to.join("a/d.rs"), "two").unwrap();
        copy(&from, &files, &to).unwrap();
        assert!(same("a/b/c.proto") && same("a") && !same("a/d.rs"));
        assert_eq!(std::fs::read_to_string(to.join("a/d.rs")).unwrap(), "one");
        // Once.
        let built = age(to.join("a/d.rs"));
        copy(&from, &files, &to).unwrap();
        assert!(same("a/b/c.proto") && same("a") && age(to.join("a/d.rs")) == built);
    }
}
