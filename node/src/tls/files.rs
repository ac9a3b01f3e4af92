//! Reading certificates and keys: from files that nobody else may read, and only what holds now.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base::hash;
use net::tls::{Identity, Material, MaterialError};

use crate::clock;
use crate::config::BadSetting;

/// No certificate file is larger.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// What a key file's mode may have at most: its owner reads and writes.
const KEY_MODE: u32 = 0o600;

/// A certificate's file and its key's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The files of one end, and the section of the configuration that names them.
#[derive(Debug)]
pub(super) struct Files {
    section: &'static str,
    ca: Option<PathBuf>,
    pub pair: Pair,
}

impl Files {
    pub fn new(section: &'static str, ca: Option<PathBuf>, pair: Pair) -> Self {
        Self { section, ca, pair }
    }

    /// What the files hold, if it is good now, and a digest that tells one content from another.
    pub fn read(&self) -> Result<(Material, u64), BadSetting> {
        let ca = self.ca.as_ref().map(|path| self.bytes("ca", path, None)).transpose()?;
        let cert = self.bytes("cert", &self.pair.cert, None)?;
        let key = self.bytes("key", &self.pair.key, Some(KEY_MODE))?;
        let digest = hash::parts([ca.as_deref().unwrap_or_default(), &cert, &key]);
        let material = match &ca {
            Some(ca) => Material::node(ca, &cert, &key),
            None => Material::players(&cert, &key),
        };
        let material = material.map_err(|error| self.bad(key_of(&error), error))?;
        self.judge_time(&material)?;
        Ok((material, digest))
    }

    pub fn identity(&self, material: &Material) -> Result<Identity, BadSetting> {
        material.identity().map_err(|error| self.bad("cert", error))
    }

    /// Names the setting and its file.
    pub fn bad(&self, key: &str, error: MaterialError) -> BadSetting {
        let file = match (key, &self.ca) {
            ("ca", Some(ca)) => ca,
            ("key", _) => &self.pair.key,
            _ => &self.pair.cert,
        };
        BadSetting::new(self.section, key, format!("{}: {error}", file.display()))
    }

    fn judge_time(&self, material: &Material) -> Result<(), BadSetting> {
        let (now, (from, until)) = (unix_seconds(), material.validity());
        let file = self.pair.cert.display();
        let bad = |why: String| Err(BadSetting::new(self.section, "cert", why));
        if now >= until {
            return bad(format!("{file} has expired on {}; issue a new one", date(until)));
        }
        if now < from {
            return bad(format!(
                "{file} does not hold before {}; is this machine's clock right?",
                date(from)
            ));
        }
        Ok(())
    }

    fn bytes(&self, key: &str, path: &Path, mode_max: Option<u32>) -> Result<Vec<u8>, BadSetting> {
        let bad = |why: String| BadSetting::new(self.section, key, format!("{}: {why}", path.display()));
        let unread = |error: std::io::Error| bad(format!("can't be read: {error}"));
        let file = std::fs::File::open(path).map_err(unread)?;
        let meta = file.metadata().map_err(unread)?;
        if !meta.is_file() {
            return Err(bad("is no file".to_owned()));
        }
        // Judged on the opened file, so that nobody exchanges it in between.
        let mode = meta.permissions().mode() & 0o777;
        if let Some(max) = mode_max
            && mode & !max != 0
        {
            let why =
                format!("has mode {mode:04o}, so others can read the key; run: chmod 600 {}", path.display());
            return Err(bad(why));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(bad("is larger than any certificate".to_owned()));
        }
        Ok(bytes)
    }
}

/// Which setting an error is about.
fn key_of(error: &MaterialError) -> &'static str {
    match error {
        MaterialError::Missing { what } | MaterialError::Unreadable { what, .. } => match *what {
            "private key" => "key",
            "certificate" => "cert",
            _ => "ca",
        },
        MaterialError::Unusable(_) | MaterialError::Identity(_) => "cert",
    }
}

pub(super) fn unix_seconds() -> i64 {
    i64::try_from(clock::unix_micros() / 1_000_000).unwrap_or(i64::MAX)
}

fn date(unix: i64) -> String {
    let after = Duration::from_secs(u64::try_from(unix).unwrap_or(0));
    humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + after).to_string()
}
