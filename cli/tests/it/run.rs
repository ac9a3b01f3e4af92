//! Commands that end by themselves.

use std::io::Write;

use crate::process::output;

/// Holds: BI-114.
#[test]
fn help_and_version_work_and_mistakes_are_exit_code_2() {
    assert_eq!(output(&["--help"]).0, 0);
    let (code, out, _) = output(&["version", "--json"]);
    assert_eq!(code, 0);
    assert!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["version"].is_string());
    for wrong in [&["no-such-command"][..], &["up", "--bots"], &["up", "--linkds", "0"], &["linkd", "--set"]]
    {
        let (code, _, err) = output(wrong);
        assert_eq!(code, 2, "{wrong:?}: {err}");
        assert!(!err.contains("panicked"), "{err}");
    }
}

/// Holds: BI-108, BI-109, BI-110, BI-111.
#[test]
fn a_wrong_configuration_is_named_and_nothing_starts() {
    let dir = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        let path = dir.path().join("linkstead.toml");
        std::fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
        path.to_str().unwrap().to_string()
    };
    let refused = |text: &str, says: &[&str]| {
        let (code, out, err) = output(&["check-config", "--config", &file(text)]);
        assert_eq!((code, out.as_str()), (2, ""), "{text}");
        assert!(says.iter().all(|word| err.contains(word)), "{text}: {err}");
    };
    refused(
        "[linkd]\nlisten_addr = \"127.0.0.1:1\"\n",
        &["linkstead.toml:2", "linkd.listen_addr", "linkd.listen"],
    );
    refused("[linkd]\nframe_max = \"5 apples\"\n", &["linkstead.toml:2", "linkd.frame_max"]);
    refused("[linkd]\nlisten = \"0.0.0.0:7710\"\n", &["linkd.auth", "open"]);
    refused("[linkd]\nprovider_listen = \"0.0.0.0:1\"\n", &["linkd.provider_listen", "loopback"]);
    refused("[node]\nops = \"0.0.0.0:1\"\n", &["node.ops", "loopback"]);
    refused("[provider]\nio_workers = 0\n", &["linkstead.toml:2", "provider.io_workers"]);
    refused("[node]\ngrace = \"3s\"\n", &["linkstead.toml:2", "node.grace"]);
    refused("[service_manager]\nstore = \"postgres\"\n", &["service_manager.store", "memory"]);
    refused("[linkd\n", &["linkstead.toml:1"]);
    let (code, _, err) = output(&["linkd", "--config", dir.path().to_str().unwrap()]);
    assert_eq!(code, 2, "{err}");
    let (code, _, err) = output(&["check-config", "--config", "/nowhere/at/all.toml"]);
    assert!(code == 2 && err.contains("/nowhere/at/all.toml"), "{err}");
}

#[test]
fn the_printed_configuration_is_one_that_can_be_read_again() {
    let (code, out, _) = output(&["print-config", "--set", "linkd.region=eu"]);
    assert_eq!(code, 0);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &out).unwrap();
    let (code, again, err) = output(&["print-config", "--config", file.path().to_str().unwrap()]);
    assert_eq!((code, again), (0, out), "{err}");
}

#[test]
fn a_cluster_that_is_not_there_is_exit_code_3() {
    for command in [
        &["status"][..],
        &["topology"],
        &["kick", "ann"],
        &["drain", "game-1"],
        &["lookup", "ann"],
        &["stop", "linkd-1"],
        &["stop", "--all"],
    ] {
        let (code, _, err) = output(&[command, &["--ops", "127.0.0.1:1"]].concat());
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("127.0.0.1:1"), "{err}");
    }
}
