//! What a player proves an account with: tickets and tokens, and the keys they are signed with.

use std::sync::{Arc, OnceLock};

use base::{AppVersion, LinkSid, Secret};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey};
use linkd::auth::config::{Algorithm, JwtConfig, JwtKey};
use linkd::auth::jwt::Tokens;
use linkd::auth::ticket::{Replay, Used};
use linkd::auth::{Begun, Judgement};
use linkd::router::Proof;
use ring::hmac;
use wire::ticket::{DOMAIN, Expect, Key, Keys, Signer, Ticket};

/// The secrets of this fuzzer; nothing else is signed with them.
const SIGNING: [u8; 32] = [9; 32];
const SHARED: [u8; 32] = *b"0123456789abcdef0123456789abcdef";
/// When the corpus's tickets hold, in Unix seconds.
const NOW: u64 = 1_800_000_000;

fn verify(text: &[u8], now_unix: u64) -> Option<Ticket> {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    let keys = KEYS.get_or_init(|| Keys::new([Signer::new(1, &SIGNING).public()]).expect("one key"));
    let expect = Expect { now_unix, audience: "linkstead", app: AppVersion(0), account: None };
    let ticket = Ticket::verify(text, keys, expect).ok()?;
    // One way to write it: what is accepted is exactly what its signer writes.
    let again = ticket.sign(&Signer::new(1, &SIGNING)).expect("an accepted ticket can be signed");
    assert_eq!(again.as_bytes(), text);
    assert!(ticket.remembered_seconds(now_unix) > 0);
    Some(ticket)
}

/// A ticket's text as a client sends it.
pub fn ticket(bytes: &[u8]) {
    let verified = verify(bytes, NOW);
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert_eq!(verified, None);
        return;
    };
    let unverified = Ticket::read_unverified(text);
    assert!(verified.is_none() || verified == unverified);
    if let Some(Ok(again)) = unverified.map(|ticket| ticket.sign(&Signer::new(ticket.kid, &SIGNING))) {
        // The same but for the signature, the last 64 bytes.
        let signed = (again.len() * 3 / 4 - 64) * 8 / 6;
        assert_eq!(again[..signed], text[..signed]);
    }
}

/// Whatever a login service may sign: the first four bytes are the time, the rest stands before the signature.
pub fn ticket_signed(bytes: &[u8]) {
    let Some((now, body)) = bytes.split_first_chunk::<4>() else { return };
    let key = SigningKey::from_bytes(&SIGNING);
    let signature = key.sign(&[DOMAIN, body].concat()).to_bytes();
    verify(URL_SAFE_NO_PAD.encode([body, &signature].concat()).as_bytes(), u32::from_le_bytes(*now).into());
}

/// Files of ticket keys.
pub fn key(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Key::parse(text) {
        Ok(key) => assert_eq!(Key::parse(&key.to_string()), Ok(key)),
        Err(error) => assert!(error.to_string().len() < 200),
    }
    if let Ok(signer) = Signer::parse(text) {
        let again = Signer::parse(&signer.secret_file()).expect("its own file is read");
        assert_eq!(again.public(), signer.public());
        assert!(format!("{signer:?}").contains("***"));
    }
}

fn judge(token: &[u8]) -> Judgement {
    static TOKENS: OnceLock<Tokens> = OnceLock::new();
    let tokens = TOKENS.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a folder for one file");
        let file = dir.path().join("shared");
        secret(&file, &SHARED);
        let key = JwtKey { kid: "hs".to_owned(), algorithm: Algorithm::HS256, file };
        let config = JwtConfig { keys: vec![key], audience: "game".to_owned(), ..JwtConfig::default() };
        Tokens::new(config, Replay::Local(Arc::new(Used::new(10)))).expect("the key was just written")
    });
    let proof = Proof {
        account: None,
        token: Secret::new(token),
        app_version: AppVersion(0),
        addr: ([127, 0, 0, 1], 1).into(),
        by: None,
    };
    match tokens.begin(LinkSid(1), &proof) {
        Begun::Judged(judgement) => judgement,
        Begun::Waits(_) => panic!("a token that may be used often needs nobody else"),
    }
}

/// Keys are read only from files of mode 0600.
fn secret(path: &std::path::Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, bytes).expect("the folder is there");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("the file is ours");
}

fn mac(text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &SHARED), text.as_bytes()).as_ref().to_vec()
}

/// A token as a client sends it. Only one that carries the right code is believed.
pub fn token(bytes: &[u8]) {
    if judge(bytes).is_ok() {
        let text = std::str::from_utf8(bytes).expect("a token is text");
        let (signed, code) = text.rsplit_once('.').expect("a token has three parts");
        assert_eq!(URL_SAFE_NO_PAD.decode(code).ok(), Some(mac(signed)));
    }
}

/// Whatever a login service may sign: the claims of a token.
pub fn claims(bytes: &[u8]) {
    let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","kid":"hs"}"#);
    let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(bytes));
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac(&signed)));
    if let Ok(account) = judge(token.as_bytes()) {
        let claims: serde_json::Value = serde_json::from_slice(bytes).expect("what is believed is JSON");
        assert_eq!(claims["sub"].as_str(), Some(account.as_str()));
        assert!(claims["exp"].is_number() && claims["aud"] != serde_json::Value::Null);
    }
}
