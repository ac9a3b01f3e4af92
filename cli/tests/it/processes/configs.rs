//! The files of `examples/configs` are good, and the units beside them fit.

use std::process::Command;
use std::time::Duration;

use super::world::{NODES, World, configs};

/// Holds: G-10.
#[tokio::test]
async fn every_file_is_one_that_its_role_starts_with() {
    let world = World::new();
    for node in NODES {
        let (code, out) = world.check(node);
        assert_eq!(code, Some(0), "{node}: {out}");
        assert!(out.contains("the configuration is"), "{out}");
    }
}

fn value<'a>(unit: &'a str, key: &str) -> &'a str {
    let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key} in {unit}"))
}

/// systemd waits longer than a stop takes, starts only what is there, and gives a gateway its files.
#[test]
fn the_units_start_these_files_and_wait_for_their_stops() {
    let common = std::fs::read_to_string(configs().join("common.toml")).unwrap();
    let grace = common.lines().find_map(|line| line.strip_prefix("grace = ")).unwrap();
    let grace: Duration = grace.trim_matches('"').parse::<node::config::Time>().unwrap().0;
    for (unit, file, files_min) in [
        ("linkstead-service-manager.service", "service-manager.toml", 10_000),
        ("linkstead-global-cache.service", "global-cache.toml", 5_000),
        ("linkstead-linkd@.service", "linkd-%i.toml", 50_000),
        ("linkstead-game@.service", "game-%i.toml", 1_000),
    ] {
        let text = std::fs::read_to_string(configs().join("systemd").join(unit)).unwrap();
        let program = value(&text, "ExecStart");
        assert!(program.contains(&format!("--config /etc/linkstead/{file}")), "{program}");
        assert!(configs().join(file.replace("%i", "1")).exists(), "{file}");
        let stop = Duration::from_secs(value(&text, "TimeoutStopSec").parse().unwrap());
        assert!(stop > grace, "{unit}: {stop:?} are not longer than node.grace");
        assert_eq!((value(&text, "KillSignal"), value(&text, "Restart")), ("SIGTERM", "on-failure"));
        // Exit code 2: nothing was started, and starting again mends nothing.
        assert_eq!(value(&text, "RestartPreventExitStatus"), "2");
        assert!(value(&text, "LimitNOFILE").parse::<u32>().unwrap() > files_min, "{unit}");
    }
}

impl World {
    /// Runs `check-config` for a node.
    fn check(&self, node: &'static str) -> (Option<i32>, String) {
        let mut command: Command = self.command(node, true);
        let done = command.output().unwrap();
        let text = [done.stdout, done.stderr].concat();
        (done.status.code(), String::from_utf8_lossy(&text).into_owned())
    }
}
