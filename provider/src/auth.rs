//! The game's own judgement of logins, for `linkd.auth = "module"`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base::{Account, AppVersion, Secret};
use net::link::Link;
use prost::Message;
use tokio::sync::Semaphore;
use wire::code::{self, Code};
use wire::link::message;
use wire::node::Frame;

use crate::error::{Error, Result};
use crate::hub::Hub;

/// Judgements under way at once; a gateway that asks for more is answered BUSY.
const RUNNING_MAX: usize = 1_024;
/// When a gateway names no deadline.
const DEADLINE: Duration = Duration::from_secs(10);

/// A player who wants in.
#[derive(Debug, Clone)]
pub struct AuthRequest {
    /// What the client says it is, if it says anything. Not proven.
    pub account: Option<Account>,
    /// The proof, up to 64 KiB: whatever the game's clients send. `Debug` shows `***`.
    pub token: Secret,
    /// Of the client; 0 when it states none.
    pub app_version: AppVersion,
    /// The client's `address:port`.
    pub client_addr: String,
}

/// Says who a player is. One provider with an authenticator is enough for a cluster; of several a gateway always asks
/// the same one for an account.
///
/// The answer is awaited `linkd.auth_call_timeout` (5 s unless set) and then given up. A gateway never asks twice for one
/// login: a proof may be good only once. An [`Error::Game`] tells the client `AUTH_REFUSED`; of an
/// [`Error::Framework`] it hears the code when that is the client's to mend.
///
/// ```
/// use linkstead::{Account, AuthRequest, Authenticator, Error, Result, module};
///
/// struct Passwords;
///
/// impl Authenticator for Passwords {
///     async fn authenticate(&self, request: AuthRequest) -> Result<Account> {
///         match (request.account, request.token.expose()) {
///             (Some(account), b"open sesame") => Ok(account),
///             _ => Err(Error::code(1, "no such player, or another password")),
///         }
///     }
/// }
///
/// # struct Cave;
/// # #[module(id = 1)] impl Cave {}
/// let game = linkstead::provider("game").authenticator(Passwords).module(|_| Ok(Cave));
/// ```
pub trait Authenticator: Send + Sync + 'static {
    /// The account that the proof proves, or why not. Two judgements may run at once. Dropped at any `.await` when the
    /// time is over.
    fn authenticate(&self, request: AuthRequest) -> impl Future<Output = Result<Account>> + Send;
}

type Judging = Pin<Box<dyn Future<Output = Result<Account>> + Send>>;

/// An authenticator whose type is forgotten, with its bound.
#[derive(Clone)]
pub(crate) struct Judge {
    judge: Arc<dyn Fn(AuthRequest) -> Judging + Send + Sync>,
    running: Arc<Semaphore>,
}

impl Judge {
    pub fn new(authenticator: impl Authenticator) -> Self {
        let authenticator = Arc::new(authenticator);
        let judge = move |request| -> Judging {
            let authenticator = authenticator.clone();
            Box::pin(async move { authenticator.authenticate(request).await })
        };
        Self { judge: Arc::new(judge), running: Arc::new(Semaphore::new(RUNNING_MAX)) }
    }
}

/// Answers an Authenticate exactly once, unless the connection ends first.
pub(crate) fn authenticate(hub: &Arc<Hub>, link: &Link, frame: &Frame<'_>) {
    let call = frame.meta.call;
    let refuse = |code: &'static Code, text: &str| {
        // What can't be queued is a connection that ends, and the gateway knows then.
        let _ = link.refuse(call, code, text);
    };
    let Some(judge) = &hub.judge else {
        return refuse(&code::ROLE_VIOLATION, "this provider has no authenticator");
    };
    let Some(request) = read(frame.body) else {
        return refuse(&code::DECODE_ERROR, "an Authenticate can't be read");
    };
    if hub.draining.load(std::sync::atomic::Ordering::Acquire) {
        return refuse(&code::BUSY, "this provider stops");
    }
    let Ok(permit) = judge.running.clone().try_acquire_owned() else {
        return refuse(&code::BUSY, "too many logins are being judged");
    };
    let deadline = match frame.meta.deadline_ms {
        0 => DEADLINE,
        ms => Duration::from_millis(ms.into()),
    };
    let (judging, link, pool) = ((judge.judge)(request), link.clone(), hub.pool().clone());
    hub.spawn(async move {
        let _permit = permit;
        // A task of its own, so that a panic is seen here.
        let mut running = pool.spawn(judging);
        let code = match tokio::time::timeout(deadline, &mut running).await {
            Ok(Ok(Ok(account))) => {
                let account = account.as_str().to_owned();
                let _ = link.reply(call, &message::Authenticated { account });
                return;
            }
            Ok(Ok(Err(error))) => {
                tracing::debug!(%error, "a login was refused");
                refusal(&error)
            }
            Ok(Err(_)) => {
                tracing::error!("the authenticator panicked");
                &code::EXCEPTION
            }
            Err(_) => {
                running.abort();
                &code::TIMEOUT
            }
        };
        // The text stays here: it may say something about the proof.
        let _ = link.refuse(call, code, "");
    });
}

fn read(body: &[u8]) -> Option<AuthRequest> {
    let message::Authenticate { account, token, app_version, client_addr } =
        message::Authenticate::decode(body).ok()?;
    let account = match account.as_str() {
        "" => None,
        text => Some(Account::new(text).ok()?),
    };
    Some(AuthRequest {
        account,
        token: Secret::new(token),
        app_version: AppVersion(app_version),
        client_addr,
    })
}

fn refusal(error: &Error) -> &'static Code {
    match error {
        Error::Framework { code, .. } => code,
        Error::Game { .. } | Error::Start(_) => &code::AUTH_REFUSED,
    }
}
