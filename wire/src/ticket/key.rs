//! Keys of tickets and their files: a few lines of text each, so that any tool can write them.
//!
//! ```text
//! linkstead ticket public key v1
//! kid 7
//! public 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo
//! retire_at 1800000000
//! ```

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};

const PUBLIC: &str = "linkstead ticket public key v1";
const PRIVATE: &str = "linkstead ticket private key v1";
/// A key file is far smaller.
pub const KEY_FILE_BYTES_MAX: usize = 4 * 1024;

/// Why a text is no key. Never shows what stands in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("the first line must be {0:?}")]
    Header(&'static str),
    #[error("line {line}: expected one of \"kid\", {secret:?} and \"retire_at\", each once, and its value")]
    Line { line: usize, secret: &'static str },
    #[error("{0:?} is missing or can't be read")]
    Value(&'static str),
    #[error("the public key is a weak one: anybody can sign for it")]
    Weak,
    #[error("the key file has more than {KEY_FILE_BYTES_MAX} bytes")]
    TooLong,
    #[error("key id {0} is given to two different keys")]
    Twice(u16),
}

/// A public key with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub kid: u16,
    pub(super) key: VerifyingKey,
    /// Unix seconds from which on its tickets are refused; `None`: never.
    pub retire_at: Option<u64>,
}

impl Key {
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let (kid, bytes, retire_at) = lines(text, PUBLIC, "public")?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| BadKey::Value("public"))?;
        if key.is_weak() {
            return Err(BadKey::Weak);
        }
        Ok(Self { kid, key, retire_at })
    }
}

/// As the file says it.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{PUBLIC}\nkid {}\npublic {}", self.kid, URL_SAFE_NO_PAD.encode(self.key.as_bytes()))?;
        self.retire_at.map_or(Ok(()), |at| writeln!(f, "retire_at {at}"))
    }
}

/// A private key with its number. Wiped when dropped, never shown.
#[derive(Clone)]
pub struct Signer {
    kid: u16,
    key: SigningKey,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer {{ kid: {}, key: *** }}", self.kid)
    }
}

impl Signer {
    /// `secret` must come from the system's random source.
    pub fn new(kid: u16, secret: &[u8; 32]) -> Self {
        Self { kid, key: SigningKey::from_bytes(secret) }
    }

    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let (kid, secret, _) = lines(text, PRIVATE, "private")?;
        Ok(Self::new(kid, &secret))
    }

    pub fn kid(&self) -> u16 {
        self.kid
    }

    /// What the file holds. A secret.
    pub fn secret_file(&self) -> String {
        format!("{PRIVATE}\nkid {}\nprivate {}\n", self.kid, URL_SAFE_NO_PAD.encode(self.key.to_bytes()))
    }

    pub fn public(&self) -> Key {
        Key { kid: self.kid, key: self.key.verifying_key(), retire_at: None }
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.key.sign(bytes).to_bytes()
    }
}

fn lines(
    text: &str,
    header: &'static str,
    secret: &'static str,
) -> Result<(u16, [u8; 32], Option<u64>), BadKey> {
    if text.len() > KEY_FILE_BYTES_MAX {
        return Err(BadKey::TooLong);
    }
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    if lines.next().is_none_or(|(_, line)| line.trim() != header) {
        return Err(BadKey::Header(header));
    }
    let mut values = BTreeMap::new();
    for (at, line) in lines {
        let bad = BadKey::Line { line: at + 1, secret };
        let (name, value) = line.trim().split_once(' ').ok_or_else(|| bad.clone())?;
        if ![secret, "kid", "retire_at"].contains(&name) || values.insert(name, value.trim()).is_some() {
            return Err(bad);
        }
    }
    let kid = values.get("kid").and_then(|kid| kid.parse().ok()).ok_or(BadKey::Value("kid"))?;
    let bytes = values.get(secret).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(BadKey::Value(secret))?;
    let retire_at = match values.get("retire_at") {
        None => None,
        Some(at) => Some(at.parse().map_err(|_| BadKey::Value("retire_at"))?),
    };
    Ok((kid, bytes, retire_at))
}

/// The public keys that a linkd trusts, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(BTreeMap<u16, Key>);

impl Keys {
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Result<Self, BadKey> {
        let mut all = BTreeMap::new();
        for key in keys {
            let kid = key.kid;
            if all.insert(kid, key).is_some() {
                return Err(BadKey::Twice(kid));
            }
        }
        Ok(Self(all))
    }

    /// The key of this number, unless it is retired at `now`.
    pub(super) fn at(&self, kid: u16, now: u64) -> Option<&Key> {
        let retired = |key: &&Key| key.retire_at.is_some_and(|at| now >= at);
        self.0.get(&kid).filter(|key| !retired(key) || base::planted::is("retired_keys_count"))
    }

    pub fn kids(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.keys().copied()
    }
}
