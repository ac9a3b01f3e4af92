//! Each role as a process of its own, in whatever order, with kills in between.

use std::process::Command;

use crate::process::{Process, addr_after, free_addr, linkstead, output};

fn directory(port: &str) -> Process {
    let set = format!("service_manager.listen={port}");
    let mut process = Process::start(&[
        "service-manager",
        "--profile",
        "dev",
        "--set",
        &set,
        "--set",
        "node.ops=127.0.0.1:0",
        "--set",
        "node.insecure=true",
    ]);
    process.wait_for("service-manager ready");
    process
}

fn linkd_args(directory: &str) -> Vec<String> {
    let mut args = vec!["linkd".into(), "--profile".into(), "dev".into()];
    for set in [
        "linkd.listen=127.0.0.1:0",
        "linkd.ws_listen=127.0.0.1:0",
        "linkd.provider_listen=127.0.0.1:0",
        "node.ops=127.0.0.1:0",
        "node.insecure=true",
    ] {
        args.extend(["--set".into(), set.to_string()]);
    }
    args.extend(["--set".into(), format!("node.directory=[\"{directory}\"]")]);
    args
}

fn arbiter(directory: &str) -> Process {
    let directory = format!("node.directory=[\"{directory}\"]");
    let sets = ["global_cache.listen=127.0.0.1:0", "node.ops=127.0.0.1:0", "node.insecure=true", &directory];
    let mut args = vec!["global-cache", "--profile", "dev"];
    sets.iter().for_each(|set| args.extend(["--set", set]));
    Process::start(&args)
}

fn linkd(directory: &str) -> Process {
    let args = linkd_args(directory);
    Process::start(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A linkd that starts before the directory waits for it; a second signal ends even a slow stop.
///
/// Holds: Z-66, Z-01, G-09, H-13.
#[tokio::test]
async fn a_linkd_waits_for_the_directory_and_stops_on_a_signal() {
    let addr = free_addr();
    let mut linkd = linkd(&addr);
    let mut directory = directory(&addr);
    linkd.wait_for("linkd ready");
    linkd.signal("TERM");
    assert!(linkd.end().success(), "{:#?}", linkd.seen);
    directory.signal("TERM");
    assert!(directory.end().success(), "{:#?}", directory.seen);
}

/// The second linkd with the same name is refused while the first one lives, and admitted at once when it was killed.
///
/// Holds: H-10, BI-112.
#[tokio::test]
async fn a_node_name_has_one_living_process() {
    let addr = free_addr();
    let _directory = directory(&addr);
    let mut first = linkd(&addr);
    let line = first.wait_for("linkd ready");
    assert!(addr_after(&line, "clients on ").starts_with("127.0.0.1:"));
    let mut second = linkd(&addr);
    let status = second.end();
    assert_eq!(status.code(), Some(1), "{:#?}", second.seen);
    first.signal("KILL");
    assert!(!first.end().success());
    let mut third = linkd(&addr);
    third.wait_for("linkd ready");
}

/// One node by its name, then the rest in order, the directory last; each ends as after a signal.
///
/// Holds: Z-66.
#[tokio::test]
async fn a_node_is_stopped_and_then_the_whole_cluster_in_order() {
    let (addr, ops) = (free_addr(), free_addr());
    let set = [format!("service_manager.listen={addr}"), format!("node.ops={ops}")];
    let mut directory = Process::start(&[
        "service-manager",
        "--profile",
        "dev",
        "--set",
        &set[0],
        "--set",
        &set[1],
        "--set",
        "node.insecure=true",
    ]);
    directory.wait_for("service-manager ready");
    let mut linkds = ["linkd-1", "linkd-2"].map(|name| {
        let mut args = linkd_args(&addr);
        args.extend(["--set".into(), format!("node.id={name}")]);
        Process::start(&args.iter().map(String::as_str).collect::<Vec<_>>())
    });
    linkds.iter_mut().for_each(|linkd| drop(linkd.wait_for("linkd ready")));
    let mut arbiter = arbiter(&addr);
    // In the profile `dev` nobody waits for a grace.
    let line = arbiter.wait_for("global-cache ready");
    assert!(!line.contains("grants in"), "{line}");
    let (code, out, err) = output(&["stop", "linkd-2", "--json", "--ops", &ops]);
    assert_eq!((code, out.trim()), (0, r#"{"stopped":["linkd-2"]}"#), "{err}");
    assert!(linkds[1].end().success());
    let (code, out, err) = output(&["stop", "--all", "--json", "--ops", &ops]);
    assert_eq!(
        (code, out.trim()),
        (0, r#"{"stopped":["linkd-1","global-cache-1","service-manager-1"]}"#),
        "{err}"
    );
    assert!(linkds[0].end().success() && arbiter.end().success() && directory.end().success());
}

/// It takes as many files as it may, and says so when they are too few for the connections it would hold.
#[test]
fn a_linkd_with_few_files_takes_all_and_warns() {
    let args = linkd_args("127.0.0.1:1");
    let inner = linkstead(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let mut shell = Command::new("bash");
    shell.args(["-c", "set -e; ulimit -Sn 100; ulimit -Hn 700; exec \"$0\" \"$@\" 2>&1"]);
    shell.arg(inner.get_program()).args(inner.get_args());
    let mut linkd = Process::spawn(shell);
    let line = linkd.wait_for("linkd.connections_max");
    assert!(line.contains("WARN") && line.contains("700 files") && line.contains("about 444"), "{line}");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", linkd.id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["700", "700"], "{files}");
    linkd.signal("TERM");
    assert!(linkd.end().success(), "{:#?}", linkd.seen);
}
