//! The game of the runs: it writes down what it runs, pushes, and answers.

use std::time::Duration;

use base::{Account, Epoch};
use linkstead::{AuthRequest, Authenticator, Cx, Error, Result, module};

use crate::ledger::Shared;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Ask {
    /// Which of its player's requests.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// How long the handler waits.
    #[prost(uint32, tag = "2")]
    pub wait_ms: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Told {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(string, tag = "2")]
    pub account: String,
}

/// Pushed by each request before its answer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Note {
    #[prost(uint64, tag = "1")]
    pub number: u64,
}

/// One start of a provider.
pub struct Desk {
    pub ledger: Shared,
    pub node: String,
    pub epoch: Epoch,
}

#[module(id = 9, choice = "hash_account", pushes(Note))]
impl Desk {
    #[handler]
    async fn ask(&self, cx: &Cx, ask: Ask) -> Result<Told> {
        let (account, at) = (cx.account().as_str(), format!("{} {}", self.node, self.epoch));
        tracing::info!(account, number = ask.number, link = %cx.link(), "runs");
        self.ledger.lock().ran(account, ask.number, cx.link(), at);
        if ask.wait_ms > 0 {
            // Sleep: a handler that takes its time; time is virtual.
            tokio::time::sleep(Duration::from_millis(ask.wait_ms.into())).await;
        }
        // A session that ended meanwhile hears neither this nor the answer.
        let _ = cx.push(&Note { number: ask.number });
        Ok(Told { number: ask.number, account: account.to_owned() })
    }
}

/// Whoever says that it is itself, is.
pub struct Doorman;

impl Authenticator for Doorman {
    async fn authenticate(&self, request: AuthRequest) -> Result<Account> {
        match request.account {
            Some(account) if account.as_str().as_bytes() == request.token.expose() => Ok(account),
            _ => Err(Error::code(1, "the token is not the account's")),
        }
    }
}
