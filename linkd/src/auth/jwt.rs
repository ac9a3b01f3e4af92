//! JSON Web Tokens: each key for one algorithm, so that a token can't choose how it is checked.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base::{Account, LinkSid};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm as Alg, DecodingKey, Validation};
use node::files;
use serde_json::Value;
use wire::code::{self, Code};
use wire::ticket::Hex;

use super::Begun;
use super::config::{Algorithm, JwtConfig, JwtKey};
use super::ticket::{Replay, bad_reload};
use crate::router::Proof;

/// A longer token is not looked at.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// A longer `jti` can't be remembered.
const JTI_BYTES_MAX: usize = 96;
/// Larger than any key in PEM that makes sense here.
const FILE_BYTES_MAX: usize = 64 * 1024;
/// A shorter secret can be guessed.
const SECRET_BYTES_MIN: usize = 32;

/// Keys by `kid`.
type Keys = BTreeMap<String, (Alg, DecodingKey)>;

/// Judges tokens.
pub struct Tokens {
    config: JwtConfig,
    keys: ArcSwap<Keys>,
    replay: Replay,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("kids", &self.keys.load().keys()).finish_non_exhaustive()
    }
}

impl Tokens {
    /// `Err`: which file, and why.
    pub fn new(config: JwtConfig, replay: Replay) -> Result<Self, String> {
        let keys = load(&config.keys)?;
        Ok(Self { config, keys: ArcSwap::from_pointee(keys), replay })
    }

    pub fn begin(&self, sid: LinkSid, proof: &Proof) -> Begun {
        let claims = match self.claims(proof.token.expose()) {
            Ok(claims) => claims,
            Err(code) => return code.into(),
        };
        let account = claims.get(&self.config.account_claim).and_then(Value::as_str);
        let Some(account) = account.and_then(|text| Account::new(text).ok()) else {
            return (&code::NAME_INVALID).into();
        };
        if proof.account.as_ref().is_some_and(|said| *said != account) {
            return (&code::TICKET_MISMATCH).into();
        }
        if !self.config.single_use {
            return Begun::Judged(Ok(account));
        }
        let jti =
            claims.get("jti").and_then(Value::as_str).filter(|jti| (1..=JTI_BYTES_MAX).contains(&jti.len()));
        let (Some(jti), Some(exp)) = (jti, claims.get("exp").and_then(seconds)) else {
            return (&code::TICKET_INVALID).into();
        };
        let now_unix = node::clock::unix_seconds();
        let last = exp.saturating_add(self.config.leeway.0.as_secs()).saturating_add(2);
        let key = format!("jwt/{}", Hex(jti.as_bytes()));
        self.replay.consume(sid, key, now_unix, last.saturating_sub(now_unix).max(1)).then(Ok(account))
    }

    fn claims(&self, token: &[u8]) -> Result<Value, &'static Code> {
        let invalid = &code::TICKET_INVALID;
        if token.len() > TOKEN_BYTES_MAX {
            return Err(invalid);
        }
        let token = std::str::from_utf8(token).map_err(|_| invalid)?;
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid)?;
        let keys = self.keys.load();
        let (algorithm, key) = keys.get(header.kid.as_deref().unwrap_or("")).ok_or(invalid)?;
        // The validation below knows the key's algorithm only, whatever the header says.
        let decoded = jsonwebtoken::decode::<Value>(token, key, &self.validation(*algorithm));
        decoded.map(|token| token.claims).map_err(|error| match error.kind() {
            ErrorKind::ExpiredSignature => &code::TICKET_EXPIRED,
            ErrorKind::ImmatureSignature => &code::TICKET_NOT_YET_VALID,
            ErrorKind::InvalidAudience | ErrorKind::InvalidIssuer => &code::TICKET_MISMATCH,
            _ => invalid,
        })
    }

    fn validation(&self, algorithm: Alg) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = self.config.leeway.0.as_secs();
        validation.validate_nbf = true;
        validation.set_audience(&[&self.config.audience]);
        let mut required = vec!["exp", "aud"];
        if !self.config.issuer.is_empty() {
            validation.set_issuer(&[&self.config.issuer]);
            required.push("iss");
        }
        if self.config.require_nbf {
            required.push("nbf");
        }
        validation.set_required_spec_claims(&required);
        validation
    }

    pub fn reload(&self) {
        match load(&self.config.keys) {
            Ok(keys) => self.keys.store(Arc::new(keys)),
            Err(why) => bad_reload(&why),
        }
    }
}

/// As the library reads them: whole seconds, or a fraction that is cut off.
fn seconds(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|f| *f >= 0.0).map(|f| f as u64))
}

fn load(keys: &[JwtKey]) -> Result<Keys, String> {
    keys.iter().map(|key| Ok((key.kid.clone(), (algorithm(key.algorithm), read(key)?)))).collect()
}

fn algorithm(algorithm: Algorithm) -> Alg {
    match algorithm {
        Algorithm::EdDSA => Alg::EdDSA,
        Algorithm::ES256 => Alg::ES256,
        Algorithm::RS256 => Alg::RS256,
        Algorithm::HS256 => Alg::HS256,
    }
}

fn read(key: &JwtKey) -> Result<DecodingKey, String> {
    let path: &PathBuf = &key.file;
    let at = |why: String| format!("{}: {why}", path.display());
    if key.algorithm == Algorithm::HS256 {
        let secret = files::read_secret(path, FILE_BYTES_MAX).map_err(|error| at(error.to_string()))?;
        let secret = secret.expose().trim_ascii_end();
        if secret.len() < SECRET_BYTES_MIN {
            return Err(at(format!("a secret of HS256 needs at least {SECRET_BYTES_MIN} bytes")));
        }
        return Ok(DecodingKey::from_secret(secret));
    }
    let pem = files::read(path, FILE_BYTES_MAX).map_err(|error| at(error.to_string()))?;
    let parsed = match key.algorithm {
        Algorithm::ES256 => DecodingKey::from_ec_pem(&pem),
        Algorithm::RS256 => DecodingKey::from_rsa_pem(&pem),
        Algorithm::EdDSA | Algorithm::HS256 => DecodingKey::from_ed_pem(&pem),
    };
    // The library's error may quote the file.
    parsed.map_err(|_| at(format!("it holds no public key of {:?} in PEM", key.algorithm)))
}

#[cfg(test)]
mod tests;
