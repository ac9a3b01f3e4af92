//! The folder of certificates: `ca.pem`, `ca.key`, and `NODE.pem`, `NODE.key` for each node. Keys are their owner's alone.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Mode of a key's file, and of a folder that has keys.
const KEY_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
const CERT_MODE: u32 = 0o644;
/// No certificate's file is larger.
const FILE_BYTES_MAX: usize = 1024 * 1024;

/// What the authority is called in a folder.
pub const AUTHORITY: &str = "ca";

/// Where a certificate of this name and its key are.
pub fn paths(dir: &Path, name: &str) -> [PathBuf; 2] {
    [dir.join(format!("{name}.pem")), dir.join(format!("{name}.key"))]
}

/// Writes a certificate and its key. Neither may exist unless `replace`; then each is exchanged in one step.
pub fn write(dir: &Path, name: &str, cert: &str, key: &str, replace: bool) -> Result<[PathBuf; 2]> {
    let [cert_path, key_path] = paths(dir, name);
    for path in [&cert_path, &key_path] {
        if path.exists() && !replace {
            bail!("{} exists already and is not overwritten", path.display());
        }
    }
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(dir)
        .with_context(|| format!("making {}", dir.display()))?;
    // The key first: a process that looks in between finds a pair that does not fit, keeps its old one and looks again.
    put(&key_path, key, KEY_MODE)?;
    put(&cert_path, cert, CERT_MODE)?;
    Ok([cert_path, key_path])
}

/// Reads a certificate and its key, which must be its owner's alone.
pub fn read(dir: &Path, name: &str) -> Result<(String, String)> {
    let [cert, key] = paths(dir, name);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).context("it is no PEM text");
    let named = |path: &Path| format!("reading {}", path.display());
    let certificate = node::files::read(&cert, FILE_BYTES_MAX).with_context(|| named(&cert))?;
    let secret = node::files::read_secret(&key, FILE_BYTES_MAX).with_context(|| named(&key))?;
    let secret = text(secret.expose().to_vec()).with_context(|| named(&key))?;
    Ok((text(certificate).with_context(|| named(&cert))?, secret))
}

/// A whole file or none, with its mode from the first moment.
fn put(path: &Path, text: &str, mode: u32) -> Result<()> {
    let mut new = path.to_owned().into_os_string();
    new.push(".new");
    let new = PathBuf::from(new);
    let written = || -> std::io::Result<()> {
        // What an interrupted run left behind.
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().with_context(|| format!("writing {}", path.display()))
}
