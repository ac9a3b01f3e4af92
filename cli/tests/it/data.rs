//! The directory's data folder when it is not what it should be: the start is refused with words that help and nothing
//! is written, and what was acknowledged is there again once the folder is well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use node::directory::{Claim, ClaimError};

use crate::cluster::{join, within};
use crate::process::{Process, addr_after, linkstead};

const PATIENCE: Duration = Duration::from_secs(20);
const STORES: [&str; 2] = ["redb", "sled"];

fn args(store: &str, dir: &Path, sets: &[&str]) -> Vec<String> {
    let mut args: Vec<String> = ["service-manager", "--profile", "dev"].map(str::to_owned).into();
    let always = [
        "service_manager.listen=127.0.0.1:0".to_owned(),
        format!("service_manager.store={store}"),
        format!("service_manager.data_dir={}", dir.display()),
        "node.ops=127.0.0.1:0".to_owned(),
        "node.insecure=true".to_owned(),
        "node.cluster=test".to_owned(),
    ];
    for set in always.into_iter().chain(sets.iter().map(|set| (*set).to_owned())) {
        args.extend(["--set".to_owned(), set]);
    }
    args
}

fn command(store: &str, dir: &Path, sets: &[&str]) -> Command {
    linkstead(&args(store, dir, sets).iter().map(String::as_str).collect::<Vec<_>>())
}

/// The same with files of at most so many KiB: what it is told then is what a full disk tells.
fn cramped(store: &str, dir: &Path, kib: u64) -> Command {
    let mut command = Command::new("bash");
    let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_linkstead")]).args(args(store, dir, &[]));
    command
}

/// Every file with its bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => drop(all.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    all
}

/// Runs until it ends, which must be a refusal with all of these words.
fn refused(command: Command, says: &[&str]) {
    let mut process = Process::spawn_with_log(command);
    let ended = process.end();
    let said = process.said().join("\n");
    assert!(!ended.success(), "it ended well: {said}");
    assert!(!said.contains("stack backtrace"), "{said}");
    for word in says {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
}

/// Claims keys until `count` are held or one is not answered; answers which are held.
async fn claim(addr: &str, name: &str, count: u32, bytes: usize) -> Vec<String> {
    let (_, directory, cancel) = join(addr.parse().unwrap(), name, "provider");
    let _gone = cancel.drop_guard();
    within(directory.epoch()).await.unwrap();
    let mut held = Vec::new();
    for n in 0..count {
        let key = format!("{name}/{n}");
        let (ttl, value) = (Duration::from_secs(3_600), vec![n as u8; bytes]);
        let claim = Claim { key: key.clone(), value, ttl, outlives_node: true };
        match directory.claim(claim, PATIENCE).await {
            Ok(()) => held.push(key),
            Err(ClaimError::Unknown | ClaimError::NotNow) => break,
            Err(error) => panic!("{error}"),
        }
    }
    held
}

async fn is_held(addr: &str, held: &[String]) {
    let (_, directory, cancel) = join(addr.parse().unwrap(), "other", "provider");
    let _gone = cancel.drop_guard();
    within(directory.epoch()).await.unwrap();
    for key in held {
        let (ttl, value) = (Duration::from_secs(60), b"other".to_vec());
        let claim = Claim { key: key.clone(), value, ttl, outlives_node: true };
        assert_eq!(directory.claim(claim, PATIENCE).await, Err(ClaimError::Taken), "{key}");
    }
}

fn start(command: Command) -> (Process, String) {
    let mut process = Process::spawn_with_log(command);
    let addr = addr_after(&process.wait_for("service-manager ready"), "ready on ");
    (process, addr)
}

fn stop(mut process: Process) {
    process.signal("TERM");
    assert!(process.end().success());
}

/// A folder with something in it, of a directory that was stopped.
async fn filled(store: &str, dir: &Path) -> Vec<String> {
    let (process, addr) = start(command(store, dir, &[]));
    let held = claim(&addr, "asker", 50, 100).await;
    assert_eq!(held.len(), 50);
    stop(process);
    held
}

/// A folder of a newer release, of another node or cluster, or in use: refused in words that help, and every byte stays.
///
/// Holds: BI-112, BI-116.
#[tokio::test]
async fn a_folder_that_is_not_ours_is_refused_and_nothing_is_written() {
    for store in STORES {
        let dir = tempfile::tempdir().unwrap();
        let held = filled(store, dir.path()).await;
        let label = dir.path().join("STORE");
        let text = std::fs::read_to_string(&label).unwrap();
        std::fs::write(&label, text.replace("linkstead-store 1", "linkstead-store 2")).unwrap();
        let before = files(dir.path());
        refused(command(store, dir.path(), &[]), &["newer release (format 2", "STORE"]);
        assert!(files(dir.path()) == before, "{store}: something was written");
        std::fs::write(&label, text).unwrap();

        let name = dir.path().display().to_string();
        let (ours, theirs) = ("node service-manager-1 of cluster test", "node dir-2 of cluster test");
        refused(command(store, dir.path(), &["node.id=dir-2"]), &[&name, ours, theirs]);
        refused(command(store, dir.path(), &["node.cluster=live"]), &[&name, ours, "of cluster live"]);

        let (process, addr) = start(command(store, dir.path(), &[]));
        refused(command(store, dir.path(), &[]), &[&name, "in use by another process"]);
        is_held(&addr, &held).await;
        stop(process);
    }
}

/// The file that holds the records.
fn records(dir: &Path) -> PathBuf {
    let largest = files(dir).into_iter().max_by_key(|(_, bytes)| bytes.len());
    largest.unwrap().0
}

/// Damage in the middle and a file that is gone are refused, naming the folder and the command that tells more; with the
/// damage undone, or from an export, everything is there.
///
/// Holds: BI-117.
#[tokio::test]
async fn a_damaged_folder_is_refused_and_names_the_command_that_helps() {
    for store in STORES {
        let dir = tempfile::tempdir().unwrap();
        let (data, backup) = (dir.path().join("data"), dir.path().join("backup"));
        let held = filled(store, &data).await;
        let export = ["store", "export", data.to_str().unwrap(), backup.to_str().unwrap()];
        assert!(linkstead(&export).output().unwrap().status.success());
        let whole = files(&data);
        let damaged = [data.to_str().unwrap(), "is damaged", "linkstead store verify", "import an export"];

        // Wherever the value of one record stands.
        let path = records(&data);
        let mut bytes = whole[&path].clone();
        let value = [20; 60];
        let written: Vec<usize> = (0..bytes.len() - 60).filter(|&at| bytes[at..at + 60] == value).collect();
        assert!(!written.is_empty());
        written.into_iter().for_each(|at| bytes[at] ^= 0x10);
        std::fs::write(&path, bytes).unwrap();
        refused(command(store, &data, &[]), &damaged);

        std::fs::write(&path, &whole[&path]).unwrap();
        std::fs::remove_file(&path).unwrap();
        refused(command(store, &data, &[]), &damaged);

        std::fs::remove_dir_all(&data).unwrap();
        let import = ["store", "import", backup.to_str().unwrap(), data.to_str().unwrap(), "--kind", store];
        assert!(linkstead(&import).output().unwrap().status.success());
        let (process, addr) = start(command(store, &data, &[]));
        is_held(&addr, &held).await;
        stop(process);
    }
}

/// A write that a crash tore at the end of the log was never acknowledged: the folder opens with all that was.
///
/// Holds: BI-117.
#[tokio::test]
async fn a_torn_tail_costs_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (mut process, addr) = start(command("sled", dir.path(), &[]));
    let held = claim(&addr, "asker", 50, 100).await;
    process.signal("KILL");
    process.end();
    let path = records(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend([0xa5; 300]);
    std::fs::write(&path, bytes).unwrap();
    let (process, addr) = start(command("sled", dir.path(), &[]));
    is_held(&addr, &held).await;
    stop(process);
}

/// No room at the start: refused. No room later: what can't be saved is not acknowledged, the process ends and says why,
/// and with room again all is there that was acknowledged.
///
/// Holds: BI-118, X-06.
#[tokio::test]
async fn without_room_nothing_is_acknowledged_and_with_room_all_is_there_again() {
    for store in STORES {
        let dir = tempfile::tempdir().unwrap();
        refused(cramped(store, &dir.path().join("none"), 0), &["full", "make room"]);

        let data = dir.path().join("some");
        filled(store, &data).await;
        let room = std::fs::metadata(records(&data)).unwrap().len() / 512 + 1_024;
        let (mut process, addr) = start(cramped(store, &data, room));
        let held = claim(&addr, "late", 20_000, 250).await;
        assert!(held.len() < 20_000, "{store}: there was room enough");
        assert!(!process.end().success());
        let said = process.said().join("\n");
        assert!(said.contains("full") && said.contains("make room"), "{said}");

        let (process, addr) = start(command(store, &data, &[]));
        is_held(&addr, &held).await;
        assert_eq!(claim(&addr, "later", 10, 100).await.len(), 10);
        stop(process);
    }
}
