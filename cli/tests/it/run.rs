//! Commands that end by themselves.

use crate::process::output;

/// Holds: BI-114.
#[test]
fn help_and_version_work_and_mistakes_are_exit_code_2() {
    assert_eq!(output(&["--help"]).0, 0);
    let (code, out, _) = output(&["version", "--json"]);
    assert_eq!(code, 0);
    assert!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["version"].is_string());
    for wrong in [&["up", "--bots"][..], &["up", "--linkds", "0"]] {
        let (code, _, err) = output(wrong);
        assert_eq!(code, 2, "{wrong:?}: {err}");
        assert!(!err.contains("panicked"), "{err}");
    }
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
