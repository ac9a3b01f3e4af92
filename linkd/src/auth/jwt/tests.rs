//! Tokens as login services make them, and as attackers do.

use std::path::Path;

use base::{AppVersion, Secret};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer, SigningKey};
use jsonwebtoken::{EncodingKey, Header};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use super::*;
use crate::auth::ticket::Used;

const HMAC: &[u8] = b"0123456789abcdef0123456789abcdef";
/// SubjectPublicKeyInfo up to the key itself.
const ED_SPKI: &[u8] = &[0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];
const P256_SPKI: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3,
    1, 7, 3, 0x42, 0,
];

struct World {
    dir: tempfile::TempDir,
    ed: SigningKey,
    ec: EncodingKey,
    config: JwtConfig,
}

fn pem(prefix: &[u8], key: &[u8]) -> String {
    let text = STANDARD.encode([prefix, key].concat());
    format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
}

fn secret(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ed = SigningKey::from_bytes(&[5; 32]);
        let pkcs8 =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &SystemRandom::new())
                .unwrap();
        let file = |name: &str| dir.path().join(name);
        std::fs::write(file("ed"), pem(ED_SPKI, ed.verifying_key().as_bytes())).unwrap();
        std::fs::write(file("ec"), pem(P256_SPKI, pair.public_key().as_ref())).unwrap();
        std::fs::write(file("rsa"), include_str!("rsa.pub.pem")).unwrap();
        secret(&file("hs"), HMAC);
        let key = |kid: &str, algorithm| JwtKey { kid: kid.into(), algorithm, file: file(kid) };
        let keys = vec![
            key("ed", Algorithm::EdDSA),
            key("ec", Algorithm::ES256),
            key("rsa", Algorithm::RS256),
            key("hs", Algorithm::HS256),
        ];
        let config = JwtConfig { keys, audience: "game".into(), ..JwtConfig::default() };
        Self { ec: EncodingKey::from_ec_der(pkcs8.as_ref()), dir, ed, config }
    }

    fn tokens(&self) -> Tokens {
        Tokens::new(self.config.clone(), Replay::Local(Arc::new(Used::new(10)))).unwrap()
    }

    /// Signed by the Ed25519 key.
    fn eddsa(&self, claims: &Value) -> String {
        let header = json!({ "alg": "EdDSA", "kid": "ed" });
        let text = [header, claims.clone()].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(self.ed.sign(text.as_bytes()).to_bytes()))
    }

    fn signed(&self, alg: Alg, kid: &str, key: &EncodingKey, claims: &Value) -> String {
        let header = Header { kid: Some(kid.to_owned()), ..Header::new(alg) };
        jsonwebtoken::encode(&header, claims, key).unwrap()
    }
}

fn now() -> u64 {
    node::clock::unix_micros() / 1_000_000
}

fn claims() -> Value {
    json!({ "sub": "ann", "aud": "game", "exp": now() + 60 })
}

fn with(name: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims();
    claims[name] = value.into();
    claims
}

fn judge_as(tokens: &Tokens, account: Option<&str>, token: &str) -> Result<String, &'static str> {
    let account = account.map(|account| Account::new(account).unwrap());
    let addr = "127.0.0.1:1".parse().unwrap();
    let proof = Proof { account, token: Secret::new(token), app_version: AppVersion(0), addr, by: None };
    match tokens.begin(LinkSid(1), &proof) {
        Begun::Judged(judgement) => judgement.map(|account| account.to_string()).map_err(|code| code.name),
        Begun::Waits(_) => panic!("nothing to wait for"),
    }
}

fn judge(tokens: &Tokens, token: &str) -> Result<String, &'static str> {
    judge_as(tokens, None, token)
}

#[test]
fn each_algorithm_lets_its_own_tokens_in() {
    let world = World::new();
    let tokens = world.tokens();
    let ann = || Ok("ann".to_owned());
    assert_eq!(judge(&tokens, &world.eddsa(&claims())), ann());
    assert_eq!(judge(&tokens, &world.signed(Alg::ES256, "ec", &world.ec, &claims())), ann());
    let hmac = EncodingKey::from_secret(HMAC);
    assert_eq!(judge(&tokens, &world.signed(Alg::HS256, "hs", &hmac, &claims())), ann());
    assert_eq!(judge(&tokens, include_str!("rsa.jwt").trim()), ann());
    assert_eq!(judge_as(&tokens, Some("ann"), &world.eddsa(&claims())), ann());
    assert_eq!(judge_as(&tokens, Some("bob"), &world.eddsa(&claims())), Err("TICKET_MISMATCH"));
}

/// A token can't choose how it is checked: not by `none`, not by using a public key as a secret, not by another key.
///
/// Holds: BI-023.
#[test]
fn a_token_that_names_another_algorithm_is_refused() {
    let world = World::new();
    let tokens = world.tokens();
    let good = world.eddsa(&claims());
    let parts: Vec<&str> = good.split('.').collect();
    let header = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let public = EncodingKey::from_secret(&std::fs::read(world.dir.path().join("ed")).unwrap());
    let wrong = [
        format!("{}.{}.", header(r#"{"alg":"none","kid":"ed"}"#), parts[1]),
        format!("{}.{}.{}", header(r#"{"alg":"ES256","kid":"ed"}"#), parts[1], parts[2]),
        world.signed(Alg::HS256, "ed", &public, &claims()),
        world.signed(Alg::ES256, "ed", &world.ec, &claims()),
        world.signed(Alg::ES256, "rsa", &world.ec, &claims()),
        world.signed(Alg::ES256, "nobody", &world.ec, &claims()),
        world.signed(Alg::ES256, "", &world.ec, &claims()),
        String::new(),
        "a.b.c".to_owned(),
        format!("{good}x"),
        good[..good.len() - 1].to_owned(),
        "x".repeat(1_000_000),
    ];
    for token in wrong {
        assert_eq!(judge(&tokens, &token), Err("TICKET_INVALID"), "{}", &token[..token.len().min(200)]);
    }
}

/// Holds: BI-019, BI-020, BI-024, BI-027.
#[test]
fn claims_are_held_to() {
    let world = World::new();
    let tokens = world.tokens();
    let check = |claims: Value| judge(&tokens, &world.eddsa(&claims));
    assert_eq!(check(with("exp", now() - 29)), Ok("ann".into()));
    assert_eq!(check(with("exp", now() - 32)), Err("TICKET_EXPIRED"));
    assert_eq!(check(with("nbf", now() + 28)), Ok("ann".into()));
    assert_eq!(check(with("nbf", now() + 32)), Err("TICKET_NOT_YET_VALID"));
    assert_eq!(check(with("aud", "shop")), Err("TICKET_MISMATCH"));
    assert_eq!(check(with("aud", json!(["shop", "game"]))), Ok("ann".into()));
    for missing in ["exp", "aud"] {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(missing);
        assert!(check(claims).is_err(), "{missing}");
    }
    for name in [json!("a\u{202e}b"), json!(7), json!(""), json!("x".repeat(129))] {
        assert_eq!(check(with("sub", name)), Err("NAME_INVALID"));
    }
    let strict = JwtConfig {
        issuer: "login".into(),
        require_nbf: true,
        account_claim: "player".into(),
        ..world.config.clone()
    };
    let strict = Tokens::new(strict, Replay::Local(Arc::new(Used::new(10)))).unwrap();
    let whole = json!({ "player": "bob", "iss": "login", "nbf": now(), "exp": now() + 9, "aud": "game" });
    assert_eq!(judge(&strict, &world.eddsa(&whole)), Ok("bob".into()));
    for (name, value) in [("iss", json!("other")), ("iss", Value::Null), ("nbf", Value::Null)] {
        let mut wrong = whole.clone();
        wrong[name] = value;
        assert!(judge(&strict, &world.eddsa(&wrong)).is_err(), "{name}");
    }
}

/// Holds: BI-021.
#[test]
fn a_token_may_be_good_for_one_login_only() {
    let world = World::new();
    let config = JwtConfig { single_use: true, ..world.config.clone() };
    let tokens = Tokens::new(config, Replay::Local(Arc::new(Used::new(10)))).unwrap();
    let token = world.eddsa(&with("jti", "one"));
    assert_eq!(judge(&tokens, &token), Ok("ann".into()));
    assert_eq!(judge(&tokens, &token), Err("TICKET_REPLAYED"));
    assert_eq!(judge(&tokens, &world.eddsa(&with("jti", "two"))), Ok("ann".into()));
    assert_eq!(judge(&tokens, &world.eddsa(&claims())), Err("TICKET_INVALID"), "it has no jti");
    assert_eq!(judge(&tokens, &world.eddsa(&with("jti", "x".repeat(97)))), Err("TICKET_INVALID"));
}

/// Holds: BI-115.
#[test]
fn key_files_must_be_what_they_should() {
    let world = World::new();
    let load_with =
        |algorithm, file: &Path| load(&[JwtKey { kid: String::new(), algorithm, file: file.into() }]);
    let file = |name: &str| world.dir.path().join(name);
    assert!(
        load_with(Algorithm::RS256, &file("ed")).is_err_and(|why| why.contains("no public key of RS256"))
    );
    assert!(load_with(Algorithm::EdDSA, &file("missing")).is_err_and(|why| why.contains("missing")));
    std::fs::write(file("open"), HMAC).unwrap();
    assert!(load_with(Algorithm::HS256, &file("open")).is_err_and(|why| why.contains("0600")));
    secret(&file("short"), b"too short\n");
    assert!(load_with(Algorithm::HS256, &file("short")).is_err_and(|why| why.contains("32 bytes")));
    let tokens = world.tokens();
    std::fs::write(file("ed"), "half a key").unwrap();
    tokens.reload();
    assert_eq!(judge(&tokens, &world.eddsa(&claims())), Ok("ann".into()), "the old keys stay");
}
