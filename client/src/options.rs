//! Where to connect, as whom, and every bound of a client.

use std::time::Duration;

use base::{Secret, hash};
use net::tls::ClientTls;

use crate::{Error, Token};

/// Everything a client is started with. Make one with [`Options::new`] and change what you need:
///
/// ```
/// use client::{Options, Reconnect};
/// let options = Options {
///     token: "secret".into(),
///     reconnect: Some(Reconnect::default()),
///     ..Options::new("10.0.0.1:7710,10.0.0.2:7710", "alice")
/// };
/// # assert_eq!(options.addrs.len(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// One or more linkds as `host:port`. The account's hash decides which is tried first, so that players spread;
    /// the others follow in order.
    pub addrs: Vec<String>,
    /// 1 to 128 bytes of UTF-8 without control characters.
    pub account: String,
    /// The account's proof; what it must be is up to the linkd. Empty for `open` authentication.
    pub token: Token,
    /// The game's version as "a.b.c.d", or empty: then any main version serves this client.
    pub app_version: String,
    /// What a login queue gave this account; usually empty.
    pub queue_token: Secret,
    /// How long dial, handshake and login may take in all, per address.
    pub connect_timeout: Duration,
    /// The deadline of [`Client::request`](crate::Client::request).
    pub deadline: Duration,
    /// Requests that may wait for an answer at once; one more gets [`Error::Busy`]. A provider runs 64 per session.
    pub in_flight_max: usize,
    /// Events that may wait to be taken. When so many wait, **the connection is no longer read** until one is taken:
    /// nothing is lost, answers wait behind the events, and the linkd ends a client that stays so. 0 says that nobody
    /// will ask for events: then they are counted in [`Stats::ignored`](crate::Stats::ignored) and dropped.
    pub events_max: usize,
    /// Payload bytes a frame of ours may have; a larger message is [`Error::TooLarge`] and is not sent.
    pub payload_bytes_max: u32,
    /// Bytes that may wait to be written; beyond it a request gets [`Error::Busy`].
    pub outbox_bytes_max: usize,
    /// Wait for the linkd's greeting before speaking. Off for a listener with `handshake = "none"`.
    pub handshake: bool,
    /// Dial again when the connection is lost; `None` ends the client instead.
    pub reconnect: Option<Reconnect>,
    /// Inside TLS, as [`Options::tls`] sets it; `None` is in clear. With it nothing is ever sent in clear.
    pub tls: Option<ClientTls>,
}

/// How a lost connection is taken up again: at once at the next address, then with waits that double and are drawn at
/// random between half and the whole of themselves, so that a thousand clients don't come back at one instant.
#[derive(Debug, Clone)]
pub struct Reconnect {
    pub first_wait: Duration,
    pub wait_max: Duration,
    /// Dials in a row that may fail before the client gives up; 0 is for ever.
    pub tries_max: u32,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { first_wait: Duration::from_millis(200), wait_max: Duration::from_secs(10), tries_max: 0 }
    }
}

impl Options {
    /// `addrs`: one linkd, or several with commas between.
    pub fn new(addrs: &str, account: impl Into<String>) -> Self {
        Self {
            addrs: addrs
                .split(',')
                .map(|addr| addr.trim().to_owned())
                .filter(|addr| !addr.is_empty())
                .collect(),
            account: account.into(),
            token: Token::default(),
            app_version: String::new(),
            queue_token: Secret::default(),
            connect_timeout: Duration::from_secs(5),
            deadline: Duration::from_secs(10),
            in_flight_max: 64,
            events_max: 1024,
            payload_bytes_max: wire::frame::PAYLOAD_BYTES_DEFAULT,
            outbox_bytes_max: 1024 * 1024,
            handshake: true,
            reconnect: None,
            tls: None,
        }
    }

    /// Connects inside TLS 1.3. `roots`: PEM text with the authorities to believe; there are no others. `server_name`:
    /// the DNS name or address that the gateway's certificate must carry. An error says what is wrong with either.
    pub fn tls(mut self, roots: &str, server_name: &str) -> Result<Self, Error> {
        let tls = ClientTls::player(roots.as_bytes(), server_name);
        self.tls = Some(tls.map_err(|error| Error::BadOptions(error.to_string()))?);
        Ok(self)
    }

    /// The same with this proof.
    pub fn token(self, token: impl Into<Token>) -> Self {
        Self { token: token.into(), ..self }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let bad = |what: String| Err(Error::BadOptions(what));
        if self.addrs.is_empty() {
            return bad("no address is given; name at least one linkd as host:port".into());
        }
        if let Err(error) = base::Account::new(&self.account) {
            return bad(error.to_string());
        }
        if let Err(error) = self.app_version.parse::<base::AppVersion>() {
            return bad(error.to_string());
        }
        if self.in_flight_max == 0 {
            return bad("in_flight_max is 0, so no request could ever be sent".into());
        }
        Ok(())
    }

    /// The index of the address to begin with.
    pub(crate) fn first_addr(&self) -> usize {
        (hash::bytes(self.account.as_bytes()) % self.addrs.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_nobody_could_connect_with_are_refused_before_dialling() {
        let fine = Options::new("a:1, b:2,", "alice");
        assert_eq!(fine.addrs, ["a:1", "b:2"]);
        assert!(fine.check().is_ok());
        for bad in [
            Options::new("", "alice"),
            Options::new("a:1", ""),
            Options { app_version: "1.x".into(), ..fine.clone() },
            Options { in_flight_max: 0, ..fine },
        ] {
            assert!(matches!(bad.check(), Err(Error::BadOptions(_))), "{bad:?}");
        }
    }
}
