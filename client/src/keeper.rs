//! Keeps a client connected: opens the first connection, serves it, and dials again when it is lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Retry, hash};
use net::dial::Backoff;
use net::{NetIo, Secured};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::client::{Shared, State};
use crate::link::{Connection, Outgoing};
use crate::{Cause, Error, Event, Reconnect};

/// The task behind a client.
pub(crate) struct Keeper<N: NetIo> {
    io: N,
    shared: Arc<Shared>,
    events: Outgoing,
    cancel: CancellationToken,
    /// Index of the address in use.
    addr: usize,
}

impl<N: NetIo> Keeper<N> {
    pub fn new(io: N, shared: Arc<Shared>, events: Outgoing, cancel: CancellationToken) -> Self {
        let addr = shared.options.first_addr();
        Self { io, shared, events, cancel, addr }
    }

    /// The first connection: each address once, in order. The last one's error is the answer, unless another says
    /// that trying elsewhere is no use.
    pub async fn first(&mut self) -> Result<Connection<Secured<N::Stream>>, Error> {
        let mut tries = self.shared.options.addrs.len();
        loop {
            tries -= 1;
            match self.dial().await {
                Ok(connection) => return Ok(connection),
                Err(error) if tries == 0 || is_final(&error) => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "trying the next address");
                    self.next_addr();
                }
            }
        }
    }

    /// Serves `connection` and, if the options say so, its successors, until the client is closed or nothing helps.
    pub async fn run(mut self, mut connection: Connection<Secured<N::Stream>>) {
        let cause = loop {
            let cause = Box::pin(connection.run(&self.events, &self.cancel)).await;
            let reconnect = self.shared.options.reconnect.clone();
            let Some(reconnect) = reconnect.filter(|_| cause.retry() != Retry::Never) else { break cause };
            self.shared.set(State::Reconnecting);
            tracing::info!(%cause, "connection lost, dialling again");
            match self.again(cause, &reconnect).await {
                Ok(next) => connection = next,
                Err(cause) => break cause,
            }
        };
        tracing::debug!(%cause, "client closed");
        self.shared.set(State::Closed(cause.clone()));
        if let Some(last) = self.events.offer(Event::Closed(cause)) {
            tokio::select! {
                biased;
                () = self.events.put(last) => {}
                () = self.cancel.cancelled() => {}
            }
        }
        self.shared.ended.cancel();
    }

    async fn again(
        &mut self,
        lost: Cause,
        reconnect: &Reconnect,
    ) -> Result<Connection<Secured<N::Stream>>, Cause> {
        let cancel = self.cancel.clone();
        let redial = async {
            self.events.put(Event::Lost(lost.clone())).await;
            self.redial(lost, reconnect).await
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Cause::ByUs),
            connection = redial => connection,
        }
    }

    async fn redial(
        &mut self,
        lost: Cause,
        reconnect: &Reconnect,
    ) -> Result<Connection<Secured<N::Stream>>, Cause> {
        let seed = hash::bytes(self.shared.options.account.as_bytes());
        let mut backoff = Backoff::new(reconnect.first_wait, reconnect.wait_max, seed);
        let mut tries = 0u32;
        loop {
            self.next_addr();
            tries = tries.saturating_add(1);
            match self.dial().await {
                Ok(connection) => {
                    self.shared.counters.reconnects.fetch_add(1, Ordering::Relaxed);
                    let addr = self.shared.options.addrs[self.addr].clone();
                    self.events.put(Event::Reconnected { addr, tries }).await;
                    return Ok(connection);
                }
                Err(error) if is_final(&error) => return Err(last_cause(error)),
                Err(error) if tries == reconnect.tries_max => {
                    tracing::debug!(%error, tries, "given up");
                    return Err(lost);
                }
                Err(error) => {
                    let wait = backoff.wait();
                    tracing::debug!(%error, ?wait, "dial failed");
                    sleep(wait).await;
                }
            }
        }
    }

    fn next_addr(&mut self) {
        self.addr = (self.addr + 1) % self.shared.options.addrs.len();
    }

    /// One dial with handshake and login, and the client's requests go there from then on.
    async fn dial(&self) -> Result<Connection<Secured<N::Stream>>, Error> {
        let options = &self.shared.options;
        let addr = &options.addrs[self.addr];
        let give_up = Instant::now() + options.connect_timeout;
        let stream = match timeout_at(give_up, self.io.connect(addr)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                return Err(Error::Unreachable { addr: addr.clone(), reason: error.to_string() });
            }
            Err(_) => {
                return Err(Error::ConnectTimeout { addr: addr.clone(), within: options.connect_timeout });
            }
        };
        let stream = self.secure(stream, addr, give_up).await?;
        let connection =
            Connection::open(stream, addr, options, self.shared.counters.clone(), give_up).await?;
        self.shared.set(State::Open(connection.link.clone(), addr.clone()));
        Ok(connection)
    }

    /// Inside TLS, if the options say so.
    async fn secure(
        &self,
        stream: N::Stream,
        addr: &str,
        give_up: Instant,
    ) -> Result<Secured<N::Stream>, Error> {
        let Some(tls) = &self.shared.options.tls else { return Ok(Secured::Plain(stream)) };
        let left = give_up.saturating_duration_since(Instant::now());
        tls.connect(stream, left).await.map_err(|error| match error.cause {
            net::tls::Cause::Deadline => {
                Error::ConnectTimeout { addr: addr.to_owned(), within: self.shared.options.connect_timeout }
            }
            _ => Error::Unproven { addr: addr.to_owned(), reason: error.to_string() },
        })
    }
}

/// Another address or another try gives the same answer.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Refused { .. } => error.retry() == Retry::Never,
        Error::Closed(cause) => cause.retry() == Retry::Never,
        Error::BadOptions(_) => true,
        _ => false,
    }
}

/// How a refused login ends a client that was connected before.
fn last_cause(error: Error) -> Cause {
    match error {
        Error::Closed(cause) => cause,
        other => Cause::Broken(other.to_string()),
    }
}
