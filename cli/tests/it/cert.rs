//! `linkstead cert`, and processes that use what it makes.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::process::{Process, addr_after, linkstead, output};

fn cert(args: &[&str], dir: &Path) -> (i32, String, String) {
    output(&[&["cert"], args, &["--dir", dir.to_str().unwrap()]].concat())
}

fn issue(dir: &Path, role: &str, node: &str) -> (i32, String, String) {
    cert(&["issue", "--role", role, "--node", node], dir)
}

/// Holds: BI-115.
#[test]
fn certificates_are_made_once_and_their_keys_are_private() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("certs");
    let (code, _, err) = issue(&dir, "linkd", "linkd-1");
    assert!(code == 2 && err.contains("cert init"), "{err}");
    let (code, out, err) = cert(&["init", "--cluster", "isles", "--json"], &dir);
    assert_eq!(code, 0, "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["cluster"], "isles");
    assert_eq!(issue(&dir, "linkd", "linkd-1").0, 0);
    for (name, mode) in [("ca.key", 0o600), ("linkd-1.key", 0o600), ("linkd-1.pem", 0o644), (".", 0o700)] {
        let found = fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found & !mode, 0, "{name}: {found:o}");
    }
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let (ca, old) = (read("ca.key"), read("linkd-1.pem"));
    let (code, _, err) = cert(&["init"], &dir);
    assert!(code == 2 && err.contains("exists already"), "{err}");
    let (code, _, err) = issue(&dir, "linkd", "linkd-1");
    assert!(code == 2 && err.contains("exists already"), "{err}");
    assert_eq!((read("ca.key"), read("linkd-1.pem")), (ca, old.clone()));
    assert_eq!(cert(&["issue", "--role", "linkd", "--node", "linkd-1", "--replace"], &dir).0, 0);
    assert_ne!(read("linkd-1.pem"), old);
    for (role, node, says) in [
        ("king", "linkd-2", "the roles are"),
        ("linkd", "a b", "node id"),
        ("linkd", "ca", "can't be called ca"),
    ] {
        let (code, _, err) = issue(&dir, role, node);
        assert!(code == 2 && err.contains(says), "{role} {node}: {err}");
    }
    let (code, out, err) =
        cert(&["issue", "--role", "provider", "--node", "game-1", "--days", "30", "--json"], &dir);
    assert_eq!(code, 0, "{err}");
    let about: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&about["role"], &about["days"]), (&"provider".into(), &30.into()));
}

/// `check-config` reads the files that a start would read.
///
/// Holds: BI-115, BI-112.
#[test]
fn check_config_judges_certificates() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(cert(&["init"], dir.path()).0, 0);
    assert_eq!(issue(dir.path(), "linkd", "linkd-1").0, 0);
    let set = format!("node.tls.dir={}", dir.path().display());
    let check = |more: &[&str]| output(&[&["check-config", "--set", &set], more].concat());
    assert_eq!(check(&["--role", "linkd"]).0, 0);
    assert_eq!(check(&["--set", "node.id=linkd-1"]).0, 0);
    for (more, says) in [
        (&["--role", "provider", "--set", "node.id=linkd-1"][..], "linkstead/linkd/linkd-1"),
        (&["--set", "node.id=linkd-1", "--set", "node.cluster=isles"], "isles"),
        (&["--role", "directory"], "service-manager-1.pem"),
        (&["--role", "linkd", "--set", "node.insecure=true"], "node.insecure"),
        (&["--set", "linkd.tls.cert=nowhere.pem", "--set", "linkd.tls.key=nowhere.key"], "nowhere.pem"),
    ] {
        let (code, _, err) = check(more);
        assert!(code == 2 && err.contains(says), "{more:?}: {err}");
    }
    fs::set_permissions(dir.path().join("linkd-1.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let (code, _, err) = check(&["--role", "linkd"]);
    assert!(code == 2 && err.contains("0644") && err.contains("chmod 600"), "{err}");
    let far = output(&["check-config", "--set", "linkd.listen=0.0.0.0:1"]);
    assert_eq!(far.0, 2, "{}", far.2);
}

/// Without certificates nothing starts, and both ways out are told.
#[test]
fn a_node_without_certificates_does_not_start() {
    for role in ["service-manager", "linkd"] {
        let (code, _, err) = output(&[role, "--set", "node.ops=127.0.0.1:0"]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("node.tls.dir") && err.contains("node.insecure = true"), "{err}");
    }
}

/// A process joins a running `up` with a certificate of its folder; no key shows in what either logs.
///
/// Holds: X-10.
#[test]
fn a_process_joins_with_a_certificate_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let certs = dir.path().join("certs");
    let folder = certs.to_str().unwrap();
    let mut up = Process::start(&["up", "--base-port", "0", "--certs", folder]);
    let line = up.wait_for("service-manager-1");
    let directory = addr_after(&line, "ready   ");
    up.wait_for("the cluster is up");
    assert_eq!(issue(&certs, "linkd", "linkd-9").0, 0);
    let log = dir.path().join("log");
    let sets = [
        "node.id=linkd-9".to_owned(),
        format!("node.tls.dir={folder}"),
        format!("node.directory=[\"{directory}\"]"),
        "linkd.listen=127.0.0.1:0".to_owned(),
        "linkd.provider_listen=127.0.0.1:0".to_owned(),
        "node.ops=127.0.0.1:0".to_owned(),
        "node.log.level=trace".to_owned(),
        format!("linkd.tls.cert={folder}/linkd-9.pem"),
        format!("linkd.tls.key={folder}/linkd-9.key"),
    ];
    let args = sets.iter().flat_map(|set| ["--set", set.as_str()]);
    let args: Vec<&str> = ["linkd", "--profile", "dev"].into_iter().chain(args).collect();
    let mut command = linkstead(&args);
    command.stderr(Stdio::from(File::create(&log).unwrap()));
    let mut linkd = Process::spawn(command);
    linkd.wait_for("linkd ready");
    linkd.signal("HUP");
    // A provider of the cluster has found it, so both have proven who they are.
    let began = std::time::Instant::now();
    while !fs::read_to_string(&log).unwrap().contains("provider connected") {
        assert!(began.elapsed() < crate::process::PATIENCE, "no provider came");
        std::thread::yield_now();
    }
    linkd.signal("TERM");
    assert!(linkd.end().success(), "{:#?}", linkd.seen);
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains("certificates were read again"), "{log}");
    let print = output(&["print-config", "--set", &sets[1]]).1;
    for entry in fs::read_dir(&certs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "key") {
            for secret in fs::read_to_string(&path).unwrap().lines().filter(|line| !line.starts_with('-')) {
                assert!(!log.contains(secret) && !print.contains(secret), "{} shows", path.display());
            }
        }
    }
    up.signal("TERM");
    assert!(up.end().success());
}
