//! The game's own judgement of logins, as a gateway asks for it.

use std::time::Duration;

use linkstead::{Account, AuthRequest, Authenticator, Config, Error, Result, code};
use net::calls::CallError;
use wire::link::{AUTHENTICATE, message};

use crate::game::game;
use crate::linkd::{Provider, SOON, pair};

/// Lets in who says the word, and does as the others say.
struct Door;

impl Authenticator for Door {
    async fn authenticate(&self, request: AuthRequest) -> Result<Account> {
        assert!(!format!("{request:?}").contains("open"), "a token is never shown");
        match request.token.expose() {
            b"open" => Ok(request.account.unwrap_or_else(|| Account::new("stranger").expect("a name"))),
            b"banned" => Err(Error::framework(&code::KICKED, "for cheating")),
            b"panic" => panic!("as the test wants it"),
            b"wait" => std::future::pending().await,
            _ => Err(Error::code(7, "the wrong word")),
        }
    }
}

async fn ask(
    linkd: &Provider,
    account: &str,
    token: &'static [u8],
    timeout: Duration,
) -> Result<String, i32> {
    let ask = message::Authenticate {
        account: account.to_owned(),
        token: token.into(),
        app_version: 1 << 48,
        client_addr: "203.0.113.7:4000".to_owned(),
    };
    match linkd.link.call::<message::Authenticated>(AUTHENTICATE, &ask, timeout).await {
        Ok(answer) => Ok(answer.account),
        Err(CallError::Refused(refusal)) => {
            assert!(refusal.text.is_empty(), "what the game says of a proof stays there: {}", refusal.text);
            Err(refusal.code)
        }
        Err(error) => Err(error.code().number),
    }
}

#[tokio::test]
async fn an_authenticator_is_announced_and_answers_each_call_once() {
    let (builder, _stage) = game();
    let (_running, _gateway, linkd) = pair(builder.authenticator(Door), Config::default()).await;
    assert_eq!(ask(&linkd, "ann", b"open", SOON).await, Ok("ann".to_owned()));
    assert_eq!(ask(&linkd, "", b"open", SOON).await, Ok("stranger".to_owned()));
    assert_eq!(ask(&linkd, "ann", b"shut", SOON).await, Err(code::AUTH_REFUSED.number));
    assert_eq!(ask(&linkd, "ann", b"banned", SOON).await, Err(code::KICKED.number));
    assert_eq!(ask(&linkd, "ann", b"panic", SOON).await, Err(code::EXCEPTION.number));
    assert_eq!(ask(&linkd, "ann", b"wait", Duration::from_millis(50)).await, Err(code::TIMEOUT.number));
    assert_eq!(ask(&linkd, "ann", b"open", SOON).await, Ok("ann".to_owned()), "it lives on");
}

#[tokio::test]
async fn a_provider_without_one_says_so() {
    let (builder, _stage) = game();
    let (_running, _gateway, linkd) = pair(builder, Config::default()).await;
    let ask = message::Authenticate { token: b"open"[..].into(), ..Default::default() };
    let answer = linkd.link.call::<message::Authenticated>(AUTHENTICATE, &ask, SOON).await;
    assert!(
        matches!(answer, Err(CallError::Refused(refusal)) if refusal.code == code::ROLE_VIOLATION.number)
    );
}
