//! Connections, one after another: dialled, served, and what is heard over them.

use std::rc::Rc;
use std::time::Duration;

use base::Generation;
use net::dial::Backoff;
use net::hello::{self, HelloError, Role};
use net::inbox::SCRATCH_BYTES;
use net::link::{self, Closed, Handler, Link};
use net::tls::HANDSHAKE_TIMEOUT;
use net::{NetIo, Peer, Secured};
use tokio_util::sync::CancellationToken;
use wire::code;
use wire::node::Frame;

use super::keeper::{Conn, Keeper};
use super::{Place, words};
use crate::arbiter::Heard;
use crate::arbiter::session::Event;

/// The waits between dials: an arbiter that restarts is found again well within a lease.
const DIAL_FIRST: Duration = Duration::from_millis(50);
const DIAL_MAX: Duration = Duration::from_secs(1);
/// What may be heard before the login is answered: at most what an arbiter says to a session that comes back.
const EARLY_WORDS_MAX: usize = 1024 * 1024;

impl Keeper {
    /// Keeps a connection, for ever.
    pub async fn connections<N: NetIo>(self: &Rc<Self>, net: N, mut place: Place) {
        let seed = base::hash::hash32(self.ours.node.as_str()) as u64;
        let mut backoff = Backoff::new(DIAL_FIRST, DIAL_MAX, seed);
        for turn in 0.. {
            let address = address(&mut place, turn).await;
            match self.dial(&net, &address).await {
                Ok((stream, peer)) => {
                    if self.serve(stream, peer, Generation(turn as u64)).await {
                        backoff.reset();
                    }
                }
                Err(error) => {
                    let cause = error.label();
                    metrics::counter!("linkstead_tables_arbiter_dials_failed_total", "cause" => cause)
                        .increment(1);
                    tracing::warn!(%address, %error, "no connection to the arbiter");
                }
            }
            let wait = backoff.wait().max(self.stay_away.take().into());
            tokio::time::sleep(wait).await;
        }
    }

    async fn dial<N: NetIo>(&self, net: &N, address: &str) -> Result<(Secured<N::Stream>, Peer), HelloError> {
        self.security.may_dial(address).map_err(HelloError::Tls)?;
        let stream = net.connect(address).await?;
        let secured = self.security.dial(stream, address, HANDSHAKE_TIMEOUT).await;
        let (mut stream, proof) = secured.map_err(HelloError::Tls)?;
        let peer = hello::offer(&mut stream, &proof, &self.ours, &[Role::Arbiter]).await?;
        Ok((stream, peer))
    }

    /// The life of one connection. Whether the arbiter has let us in over it.
    async fn serve<S>(self: &Rc<Self>, stream: S, peer: Peer, generation: Generation) -> bool
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let (mut read, write) = tokio::io::split(stream);
        let conn = Conn { link: Link::new(peer, generation, write), cut: CancellationToken::new() };
        let (link, cut) = (conn.link.clone(), conn.cut.clone());
        self.conn.replace(Some(conn));
        self.heard.borrow_mut().clear();
        self.step(Event::Connected);
        let mut scratch = vec![0; SCRATCH_BYTES];
        let mut inbound = Inbound { keeper: self.clone(), let_in: false };
        let closed = tokio::select! {
            biased;
            () = cut.cancelled() => None,
            closed = link::serve(&link, &mut read, &mut scratch, &mut inbound) => Some(closed),
        };
        link.calls.close();
        link.outbox.abandon();
        let let_in = inbound.let_in || self.shared.inside.read().is_some();
        self.outside();
        self.conn.replace(None);
        if let Some(closed) = closed {
            tracing::info!(arbiter = %link.peer.node, %closed, "the connection to the arbiter is over");
            self.step(match &closed {
                Closed::Goodbye(refusal) => Event::Refused { code: refusal.code },
                _ => Event::Closed,
            });
        }
        let_in
    }

    /// Hands over what was heard, once the login over this connection is answered.
    pub fn deliver(self: &Rc<Self>) {
        if self.shared.inside.read().is_none() {
            return;
        }
        let mut heard = self.heard.take();
        if heard.is_empty() {
            return;
        }
        let answered = heard.iter().filter(|word| matches!(word, Heard::Reasserted { .. })).count();
        self.hear.heard(&mut heard);
        heard.clear();
        self.heard.replace(heard);
        if answered > 0 && self.unanswered.get() > 0 {
            self.unanswered.set(self.unanswered.get().saturating_sub(answered));
            if self.unanswered.get() == 0 {
                self.step(Event::Reasserted);
            }
        }
        if let Some(conn) = &*self.conn.borrow() {
            conn.link.outbox.flush();
        }
    }
}

/// Where to dial next.
async fn address(place: &mut Place, turn: usize) -> String {
    match place {
        Place::Listed(list) if !list.is_empty() => list[turn % list.len()].clone(),
        Place::Listed(_) => std::future::pending().await,
        Place::Watched(watched) => match watched.wait_for(Option::is_some).await {
            Ok(address) => address.clone().unwrap_or_default(),
            // Nobody will ever say.
            Err(_) => std::future::pending().await,
        },
    }
}

struct Inbound {
    keeper: Rc<Keeper>,
    let_in: bool,
}

impl Handler for Inbound {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        let mut heard = self.keeper.heard.borrow_mut();
        if heard.len() >= EARLY_WORDS_MAX {
            let text = "more is said than a session can hear at once".to_owned();
            return Err(Closed::Refused { code: &code::LIMIT, text });
        }
        words::read(&frame, &mut heard)
    }

    fn batch_end(&mut self) {
        self.let_in |= self.keeper.shared.inside.read().is_some();
        self.keeper.deliver();
    }

    fn stray_reply(&mut self) {
        self.keeper.shared.dropped("late", 1);
    }
}
