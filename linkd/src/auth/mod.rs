//! Who proves what, and how: the shell of authentication. The router asks for a judgement and gets exactly one.
//!
//! Signatures are checked where the frame was read: they cost less than a hand-over. Whatever waits for another node (the
//! directory that consumes a ticket, the provider that judges) runs beside, at most `linkd.auths_max` at once.

pub mod attempts;
pub mod config;
pub mod jwt;
pub mod ticket;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base::{Account, Blame, LinkSid};
use net::calls::CallError;
use net::link::Link;
use node::Clock;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use wire::code::{self, Code};
use wire::link::{AUTHENTICATE, message};

use crate::router::{Judge, Proof};
use attempts::Attempts;

/// What a proof was found to be.
pub type Judgement = Result<Account, &'static Code>;
/// A judgement that needs another node.
pub type Pending = Pin<Box<dyn Future<Output = Judgement> + Send>>;

/// A proof is judged at once, or needs another node.
pub enum Begun {
    Judged(Judgement),
    Waits(Pending),
}

impl From<&'static Code> for Begun {
    fn from(code: &'static Code) -> Self {
        Self::Judged(Err(code))
    }
}

/// How a linkd lets players in.
#[derive(Debug)]
pub enum Way {
    Open,
    Ticket(Arc<ticket::Tickets>),
    Jwt(Arc<jwt::Tokens>),
    /// A provider is asked, and has this long.
    Module {
        timeout: Duration,
    },
}

/// Shared by all workers of a linkd.
#[derive(Debug)]
pub struct Gate {
    way: Way,
    attempts: Attempts,
    running: Arc<Semaphore>,
    failures: Mutex<BTreeMap<&'static str, u64>>,
    clock: Clock,
}

impl Gate {
    /// `auths_max` judgements may wait for other nodes at once.
    pub fn new(way: Way, attempts: Attempts, auths_max: usize) -> Self {
        let running = Arc::new(Semaphore::new(auths_max.min(Semaphore::MAX_PERMITS)));
        Self { way, attempts, running, failures: Mutex::default(), clock: Clock::start() }
    }

    /// Believes everybody.
    pub fn open() -> Self {
        Self::new(Way::Open, Attempts::new(10, 20), 1)
    }

    pub fn judge(&self) -> Judge {
        match self.way {
            Way::Open => Judge::Nobody,
            Way::Ticket(_) | Way::Jwt(_) => Judge::Shell,
            Way::Module { .. } => Judge::Provider,
        }
    }

    /// Begins to judge. `provider`: the connection of the one that the router chose, while it is open.
    pub fn begin(&self, sid: LinkSid, proof: Proof, provider: Option<Link>) -> Begun {
        if !self.attempts.allowed(self.clock.now(), proof.addr.ip()) {
            return (&code::TOO_MANY_ATTEMPTS).into();
        }
        let begun = match &self.way {
            // The router asks nobody then.
            Way::Open => (&code::AUTH_REFUSED).into(),
            Way::Ticket(tickets) => tickets.begin(sid, &proof),
            Way::Jwt(tokens) => tokens.begin(sid, &proof),
            Way::Module { timeout } => match provider {
                Some(link) => Begun::Waits(Box::pin(ask(link, proof, *timeout))),
                None => (&code::NO_PROVIDER).into(),
            },
        };
        let Begun::Waits(pending) = begun else { return begun };
        match self.running.clone().try_acquire_owned() {
            Ok(permit) => Begun::Waits(Box::pin(async move {
                let judgement = pending.await;
                drop(permit);
                judgement
            })),
            Err(_) => (&code::BUSY).into(),
        }
    }

    /// Counts a refused Auth; what was the client's doing also counts against its address.
    pub fn failed(&self, address: std::net::IpAddr, code: &'static Code) {
        metrics::counter!("linkstead_linkd_auth_failures_total", "code" => code.name).increment(1);
        *self.failures.lock().entry(code.name).or_default() += 1;
        if code.blame == Blame::Client && code.number != code::TOO_MANY_ATTEMPTS.number {
            self.attempts.failed(self.clock.now(), address);
        }
    }

    /// Refused Auths by code.
    pub fn failures(&self) -> BTreeMap<&'static str, u64> {
        self.failures.lock().clone()
    }

    /// Whether there are key files to be read again.
    pub fn has_keys(&self) -> bool {
        matches!(self.way, Way::Ticket(_) | Way::Jwt(_))
    }

    /// Reads the key files again. A file that can't be read leaves all keys as they were.
    pub fn reload(&self) {
        match &self.way {
            Way::Open | Way::Module { .. } => {}
            Way::Ticket(tickets) => tickets.reload(),
            Way::Jwt(tokens) => tokens.reload(),
        }
    }
}

/// Reads key files anew every `every`, and at once at SIGHUP.
pub async fn keep_keys(gate: Arc<Gate>, every: Duration) {
    let mut looks = node::signal::Looks::new(every);
    loop {
        looks.next().await;
        let gate = gate.clone();
        // Files may be slow.
        let reloaded = tokio::task::spawn_blocking(move || gate.reload()).await;
        if let Err(error) = reloaded {
            tracing::error!(%error, "reading keys anew failed");
        }
    }
}

/// One call and no second one: what became of a lost call is unknown, and a token may be good only once.
async fn ask(link: Link, proof: Proof, timeout: Duration) -> Judgement {
    let ask = message::Authenticate {
        account: proof.account.as_ref().map_or_else(String::new, |account| account.as_str().to_owned()),
        token: proof.token.expose().to_vec().into(),
        app_version: proof.app_version.0,
        client_addr: proof.addr.to_string(),
    };
    let answer = link.call::<message::Authenticated>(AUTHENTICATE, &ask, timeout).await;
    match answer {
        Ok(answer) => Account::new(&answer.account).map_err(|error| {
            tracing::warn!(node = %link.peer.node, %error, "an authenticator answered with what can't be an account");
            &code::NAME_INVALID
        }),
        Err(CallError::Refused(refusal)) => Err(refused(refusal.code)),
        Err(error) => {
            tracing::warn!(node = %link.peer.node, %error, "an authenticator did not answer");
            Err(match error {
                CallError::Busy => &code::BUSY,
                CallError::Timeout => &code::TIMEOUT,
                _ => &code::PROVIDER_BROKEN,
            })
        }
    }
}

/// What a client hears of an authenticator's refusal: of ours the code, of the game's own only that it was no.
fn refused(number: i32) -> &'static Code {
    let known = Code::find(number);
    known
        .filter(|code| code.blame == Blame::Client || code.number == code::BUSY.number)
        .unwrap_or(&code::AUTH_REFUSED)
}
