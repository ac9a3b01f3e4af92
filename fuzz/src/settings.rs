//! Configuration of every role, from files and from flags.

use std::path::PathBuf;

use node::config::{self, Loaded, NodeConfig, Problem, Sources};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use service_manager::ServiceManagerConfig;

/// Every section, as the `linkstead` binary composes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Root {
    node: NodeConfig,
    service_manager: ServiceManagerConfig,
    linkd: linkd::Config,
    provider: linkstead::Config,
}

/// A file of this thread with this content.
fn written(text: &[u8]) -> PathBuf {
    thread_local! {
        static DIR: tempfile::TempDir = tempfile::tempdir().expect("a folder for one file");
    }
    let path = DIR.with(|dir| dir.path().join("linkstead.toml"));
    std::fs::write(&path, text).expect("the folder is there");
    path
}

/// Reads and judges everything. What is accepted is printed, and read again as the same.
fn judge(sources: &Sources) {
    let loaded = match config::load::<Root>(sources) {
        Ok(loaded) => loaded,
        Err(problems) => return complaints(&problems),
    };
    let Loaded { config: root, .. } = &loaded;
    let _ = (root.service_manager.check(), root.linkd.check(), root.provider.check());
    let _ = root.node.budgets().check();
    let _ = loaded.place("linkd.listen");
    // TOML has no numbers beyond 63 bits; what can't be printed is said, not printed wrong.
    let Ok(printed) = config::print_config(root) else { return };
    let printed = Sources {
        files: vec![written(printed.as_bytes())],
        presets: sources.presets.clone(),
        ..Sources::default()
    };
    match config::load::<Root>(&printed) {
        Ok(again) => assert_eq!(again.config, *root),
        // What a profile's own table brought is printed where it went, and the table is not.
        Err(problems) if matches!(problems[..], [Problem::UnknownProfile { .. }]) => {}
        Err(problems) => panic!("what is printed can't be read: {problems:?}"),
    }
}

/// Whoever is refused is told something.
fn complaints(problems: &[Problem]) {
    assert!(!problems.is_empty());
    assert!(problems.iter().all(|problem| problem.to_string().contains(": ")));
}

/// A configuration file.
pub fn file(bytes: &[u8]) {
    // Files that name others are tried where there are others; here they would name what stands on this machine.
    if bytes.windows(7).any(|window| window == b"include") {
        return;
    }
    let presets = [config::PRESETS, service_manager::PRESETS, linkstead::PRESETS].concat();
    judge(&Sources { files: vec![written(bytes)], presets, ..Sources::default() });
}

/// Flags, a line each; lines that begin with `LINKSTEAD_` are variables.
pub fn flags(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (env, set): (Vec<&str>, Vec<&str>) =
        text.lines().take(16).partition(|line| line.starts_with(config::ENV_PREFIX));
    let env = env.iter().filter_map(|line| line.split_once('='));
    judge(&Sources {
        set: set.into_iter().map(str::to_owned).collect(),
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..Sources::default()
    });
}
