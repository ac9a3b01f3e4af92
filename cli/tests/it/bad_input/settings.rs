//! Command lines and configurations that can't work: exit code 2, and the words that help.

use std::net::SocketAddr;
use std::path::Path;

use super::table::Table;
use crate::process::output;

/// Tries one, which must end with exit code 2, say all of `says` and start nothing.
fn refused(table: &mut Table, id: &str, input: &str, args: &[&str], says: &[&str]) {
    let (code, out, err) = output(args);
    let silent = out.is_empty() && !err.contains("panicked");
    let missing: Vec<_> = says.iter().filter(|word| !err.contains(**word)).collect();
    let got =
        if silent && missing.is_empty() { format!("exit {code}") } else { format!("exit {code}: {err}") };
    table.process(id, input, "exit 2", got);
}

pub fn run(table: &mut Table, directory: SocketAddr) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("linkstead.toml");
    let path = path.to_str().unwrap();
    files(table, dir.path(), path);
    let text = |table: &mut Table, id: &str, input: &str, text: &str, says: &[&str]| {
        std::fs::write(path, text).unwrap();
        refused(table, id, input, &["check-config", "--config", path], says);
    };
    text(table, "BI-109", "a syntax error", "[linkd\n", &["linkstead.toml:1"]);
    let near = ["linkstead.toml:2", "linkd.listen_addr", "linkd.listen"];
    text(table, "BI-109", "an unknown key", "[linkd]\nlisten_addr = \"127.0.0.1:1\"\n", &near);
    let kind = ["linkstead.toml:2", "linkd.frame_max"];
    text(table, "BI-109", "a value of a wrong type", "[linkd]\nframe_max = \"5 apples\"\n", &kind);
    text(table, "BI-110", "port 65536", "[linkd]\nlisten = \"127.0.0.1:65536\"\n", &["linkd.listen"]);
    let order = ["service_manager.ttl", "3 x heartbeat"];
    text(table, "BI-111", "timers that can't work together", "[service_manager]\nttl = \"6s\"\n", &order);
    let lease = ["linkstead.toml:2", "global_cache.eviction", "lease terms"];
    text(table, "BI-111", "a lease that ends too late", "[global_cache]\neviction = \"9s\"\n", &lease);
    let renewals = ["global_cache.renew", "a third"];
    text(table, "BI-111", "renewals that come too late", "[global_cache]\nrenew = \"2s\"\n", &renewals);
    text(table, "BI-111", "stages beyond the grace", "[node]\ngrace = \"3s\"\n", &["node.grace"]);
    text(
        table,
        "BI-113",
        "a store that is not there",
        "[service_manager]\nstore = \"redis\"\n",
        &["service_manager.store"],
    );
    text(
        table,
        "BI-110",
        "believes everybody beyond loopback",
        "[linkd]\nlisten = \"0.0.0.0:7710\"\n",
        &["linkd.auth", "open"],
    );
    let beyond = ["linkd.provider_listen", "loopback"];
    text(table, "BI-110", "providers beyond loopback", "[linkd]\nprovider_listen = \"0.0.0.0:1\"\n", &beyond);
    let beyond = ["global_cache.listen", "loopback"];
    text(table, "BI-110", "an arbiter beyond loopback", "[global_cache]\nlisten = \"0.0.0.0:1\"\n", &beyond);
    text(
        table,
        "BI-110",
        "operators beyond loopback",
        "[node]\nops = \"0.0.0.0:1\"\n",
        &["node.ops", "loopback"],
    );
    let none = ["linkstead.toml:2", "provider.io_workers"];
    text(table, "BI-109", "a number that can't work", "[provider]\nio_workers = 0\n", &none);
    let none = ["linkstead.toml:2", "global_cache.held_max"];
    text(table, "BI-109", "an arbiter that may grant nothing", "[global_cache]\nheld_max = 0\n", &none);
    ports(table, directory);
    for (input, args) in [
        ("an unknown command", &["no-such-command"][..]),
        ("an unknown flag", &["linkd", "--nothing"]),
        ("a flag without its value", &["linkd", "--set"]),
    ] {
        refused(table, "BI-114", input, args, &["--help"]);
    }
    secrets(table, dir.path(), path);
}

fn files(table: &mut Table, dir: &Path, path: &str) {
    let check = |path| ["check-config", "--config", path];
    refused(table, "BI-108", "a file that is missing", &check(path), &[path]);
    let dir = dir.to_str().unwrap();
    refused(table, "BI-108", "a directory in place of a file", &check(dir), &[dir]);
}

/// Ports that are taken, and a node id that can't be one.
fn ports(table: &mut Table, directory: SocketAddr) {
    let listener = net::Tcp::listen(([127, 0, 0, 1], 0).into()).unwrap();
    let taken = listener.local_addr().unwrap();
    for (role, key) in [
        ("service-manager", "service_manager.listen"),
        ("service-manager", "node.ops"),
        ("global-cache", "global_cache.listen"),
        ("global-cache", "node.ops"),
        ("linkd", "node.ops"),
        ("linkd", "linkd.listen"),
        ("linkd", "linkd.provider_listen"),
    ] {
        let (set, directory) = (format!("{key}={taken}"), format!("node.directory=[\"{directory}\"]"));
        let free = [
            "service_manager.listen=127.0.0.1:0",
            "global_cache.listen=127.0.0.1:0",
            "linkd.listen=127.0.0.1:0",
            "linkd.provider_listen=127.0.0.1:0",
            "linkd.ws_listen=off",
            "node.ops=127.0.0.1:0",
            "node.insecure=true",
            "node.cluster=test",
            "node.id=late-1",
            "node.log.level=off",
        ];
        let mut args = vec![role];
        for set in free.into_iter().chain([set.as_str(), directory.as_str()]) {
            args.extend(["--set", set]);
        }
        refused(table, "BI-110", &format!("a port that is taken: {key} of {role}"), &args, &[key]);
    }
    let set = ["--set", "node.id=bad name", "--set", "node.insecure=true"];
    let args = [&["linkd"][..], &set].concat();
    refused(table, "BI-112", "a node id that can't be one", &args, &["node.id"]);
}

/// A key that others may read.
fn secrets(table: &mut Table, dir: &Path, path: &str) {
    use std::os::unix::fs::PermissionsExt;
    let (cert, key) = (dir.join("play.pem"), dir.join("play.key"));
    std::fs::write(&cert, "").unwrap();
    std::fs::write(&key, "hunter2").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(path, format!("[linkd.tls]\ncert = {cert:?}\nkey = {key:?}\n")).unwrap();
    let args = ["check-config", "--config", path];
    refused(table, "BI-115", "a key that others may read", &args, &["linkd.tls.key", "0600"]);
}
