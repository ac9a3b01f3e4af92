//! The repository as a list of texts. Every rule of tidy, and `cargo promises`,
//! look at what git would commit, so that build output and scratch files never
//! make a test fail.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The folder of the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Paths of all files that are tracked or would be, relative to `root`, with
/// forward slashes, sorted. Outside a git checkout (a release archive) the
/// folders are walked instead, as in a copy below an ignored folder of a checkout.
pub fn files(root: &Path) -> Result<Vec<String>> {
    let git = Command::new("git")
        .args(["-c", "safe.directory=*", "-c", "core.quotePath=false"])
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut found = match git {
        Ok(out) if out.status.success() && !out.stdout.is_empty() => {
            String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect()
        }
        _ => {
            let mut all = Vec::new();
            walk(root, root, &mut all)?;
            all
        }
    };
    // Deleted but still tracked, and symbolic links to folders, have no text.
    found.retain(|path| root.join(path).is_file());
    found.sort();
    found.dedup();
    Ok(found)
}

/// Reads one file; `None` when it is not text.
pub fn text(root: &Path, path: &str) -> Result<Option<String>> {
    let bytes = std::fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
    Ok(String::from_utf8(bytes).ok())
}

fn walk(root: &Path, folder: &Path, all: &mut Vec<String>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), ".git" | "target" | ".scratch" | "node_modules") {
                walk(root, &path, all)?;
            }
        } else if let Ok(inside) = path.strip_prefix(root) {
            all.push(inside.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_this_file_and_no_build_output() {
        let all = files(&root()).unwrap();
        assert!(all.iter().any(|path| path == "tests/src/repo.rs"));
        assert!(!all.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }

    #[test]
    fn walks_where_there_is_no_git() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/target")).unwrap();
        std::fs::write(dir.path().join("a/b.md"), "x").unwrap();
        std::fs::write(dir.path().join("a/target/c.md"), "x").unwrap();
        assert_eq!(files(dir.path()).unwrap(), ["a/b.md"]);
    }
}
