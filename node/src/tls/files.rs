//! Reading certificates and keys: from files that nobody else may read, and only what holds now.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base::hash;
use net::tls::{Identity, Material, MaterialError};

use crate::clock;
use crate::config::BadSetting;
use crate::files::{self, FileError};

/// No certificate file is larger.
const FILE_BYTES_MAX: usize = 1024 * 1024;

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
        let ca = self.ca.as_ref().map(|path| self.of("ca", path, files::read)).transpose()?;
        let cert = self.of("cert", &self.pair.cert, files::read)?;
        let key = self.of("key", &self.pair.key, files::read_secret)?;
        let digest = hash::parts([ca.as_deref().unwrap_or_default(), &cert, key.expose()]);
        let material = match &ca {
            Some(ca) => Material::node(ca, &cert, key.expose()),
            None => Material::players(&cert, key.expose()),
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

    /// The content of a file, or which setting names one that can't be used.
    fn of<T>(
        &self,
        key: &str,
        path: &Path,
        read: impl Fn(&Path, usize) -> Result<T, FileError>,
    ) -> Result<T, BadSetting> {
        let bad = |error| BadSetting::new(self.section, key, format!("{}: {error}", path.display()));
        read(path, FILE_BYTES_MAX).map_err(bad)
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
    i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX)
}

fn date(unix: i64) -> String {
    let after = Duration::from_secs(u64::try_from(unix).unwrap_or(0));
    humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + after).to_string()
}
