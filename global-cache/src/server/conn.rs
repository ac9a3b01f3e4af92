//! A provider's connection: it proves who it is, logs in, and asks.

use std::net::SocketAddr;
use std::rc::Rc;

use base::{Generation, RequestId, Span};
use net::hello::{self, HELLO_TIMEOUT, HelloError, Ours, Role};
use net::link::{self, Closed, Handler, Link};
use net::strangers::Strangers;
use net::tls::HANDSHAKE_TIMEOUT;
use net::{Peer, Secured, Security};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use wire::cache::{self, Reduced, Refused, message};
use wire::code;
use wire::node::Frame;

use super::hub::Hub;
use crate::arbiter::{Ask, Event, Key, Mode, Seq, SessionId, Storage};

/// Who is let in, and how.
#[derive(Debug, Clone)]
pub(super) struct Door {
    pub ours: Ours,
    pub security: Security,
    pub strangers: Strangers,
}

/// Bytes that one read may bring.
const SCRATCH_BYTES: usize = 64 * 1024;
/// After so many asks of one message what was said is sent, so that the provider goes on meanwhile.
const EARLY_ASKS: usize = 256;

/// Takes a connection in and starts its task.
pub(super) fn open<S>(hub: &Rc<Hub>, door: &Door, stream: S, addr: SocketAddr)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let place = match door.strangers.enter(addr.ip()) {
        Ok(place) => place,
        Err(full) => {
            turned_away(full.label());
            return tracing::debug!(%addr, %full, "a connection was closed before its handshake");
        }
    };
    let (hub, door) = (hub.clone(), door.clone());
    tokio::task::spawn_local(async move {
        let log = door.strangers.log();
        let greeting = tokio::time::timeout(HANDSHAKE_TIMEOUT + HELLO_TIMEOUT, greet(stream, addr, &door));
        let (stream, peer) = match greeting.await.unwrap_or(Err(HelloError::Timeout)) {
            Ok(greeted) => greeted,
            Err(error) => {
                turned_away(error.label());
                // Who comes and goes without a word only wants to know whether somebody listens, as the directory does.
                if error.label() == "broken" {
                    tracing::debug!(%addr, %error, "a connection ended before its hello");
                } else if let Some(not_logged) = log.turn() {
                    tracing::warn!(%addr, %error, not_logged, "a provider was not let in");
                }
                return;
            }
        };
        drop(place);
        let (read, write) = tokio::io::split(stream);
        let generation = hub.generation();
        serve(hub, Link::new(peer, generation, write), read).await;
    });
}

fn turned_away(cause: &'static str) {
    metrics::counter!("linkstead_arbiter_turned_away_total", "cause" => cause).increment(1);
}

async fn greet<S>(stream: S, addr: SocketAddr, door: &Door) -> Result<(Secured<S>, Peer), HelloError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let secured = door.security.accept(stream, addr, HANDSHAKE_TIMEOUT).await;
    let (mut stream, proof) = secured.map_err(HelloError::Tls)?;
    let peer = hello::accept(&mut stream, &proof, &door.ours, &[Role::Provider]).await?;
    Ok((stream, peer))
}

async fn serve<R: AsyncRead + Unpin>(hub: Rc<Hub>, link: Link, mut read: R) {
    let (node, conn) = (link.peer.node.clone(), link.generation);
    hub.opened(link.clone());
    let mut scratch = vec![0; SCRATCH_BYTES];
    let mut inbound = Inbound { hub: hub.clone(), conn, link: link.clone(), asked: Vec::new() };
    let closed = link::serve(&link, &mut read, &mut scratch, &mut inbound).await;
    tracing::info!(%node, %closed, "a provider's connection to the arbiter is over");
    // Its session stays: the node may come back to it until its lease is over.
    hub.closed(conn);
}

struct Inbound {
    hub: Rc<Hub>,
    conn: Generation,
    link: Link,
    /// The records of the present ACQUIRE.
    asked: Vec<Key>,
}

impl Inbound {
    fn session(&self) -> Result<SessionId, Closed> {
        let text = || "log in first".to_owned();
        self.hub
            .session(self.conn)
            .ok_or_else(|| Closed::Refused { code: &code::NOT_LOGGED_IN, text: text() })
    }

    fn login(&self, frame: Frame<'_>) -> Result<(), Closed> {
        let login = message::Login::decode(frame.body).map_err(|error| unreadable(&error))?;
        let storage = |storage: message::Storage| {
            let id = storage.id.as_ref().try_into().map(u128::from_be_bytes);
            let id = id.map_err(|_| unreadable(&"a storage's id has 16 bytes"))?;
            Ok(Storage { backend: storage.backend, id })
        };
        let long = |storage: &message::Storage| storage.backend.len() > cache::BACKEND_BYTES_MAX;
        if login.storages.len() > cache::STORAGES_MAX || login.storages.iter().any(long) {
            let (most, bytes) = (cache::STORAGES_MAX, cache::BACKEND_BYTES_MAX);
            let text = format!("a provider has at most {most} storages, with names of at most {bytes} bytes");
            return Err(refused(&code::LIMIT, &text));
        }
        let storages: Result<Vec<_>, Closed> = login.storages.into_iter().map(storage).collect();
        let (node, epoch) = (self.link.peer.node.clone(), self.link.peer.epoch);
        let (conn, storages) = (self.conn, storages?);
        self.hub.ask(self.conn, frame.meta.call, Event::Login { conn, node, epoch, storages });
        Ok(())
    }
}

impl Handler for Inbound {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        let hub = &self.hub;
        match frame.meta.kind {
            cache::LOGIN => self.login(frame)?,
            cache::RENEW => hub.ask(self.conn, frame.meta.call, Event::Renew { session: self.session()? }),
            cache::BYE => hub.ask(self.conn, frame.meta.call, Event::Bye { session: self.session()? }),
            cache::ACQUIRE => {
                let (session, now) = (self.session()?, hub.now());
                self.asked.clear();
                let asked = &mut self.asked;
                // Whether the body is bad is for the second look at it.
                let _ = cache::asks(frame.body, |ask| asked.push(Key(cache::record(ask.key))));
                hub.expect(asked);
                let mut next = 0;
                let asks = cache::asks(frame.body, |ask| {
                    let (key, raw) = (asked[next], ask.key);
                    next += 1;
                    let have = Some(ask.have).filter(|seq| *seq > 0).map(Seq);
                    // What is no mode is refused by the core, by its request.
                    let want = Mode::of_byte(ask.want).unwrap_or(Mode::Invalid);
                    let ask = Ask { request: RequestId(ask.request.0), key, want, have };
                    hub.acquire(now, session, ask, raw);
                    if next.is_multiple_of(EARLY_ASKS) {
                        hub.flush();
                    }
                });
                asks.map_err(|error| match error {
                    cache::BadBody::Key(_) => refused(&code::KEY_INVALID, &error),
                    _ => unreadable(&error),
                })?;
            }
            cache::REDUCED => {
                let Reduced { record, seq, to, flushed } =
                    Reduced::decode(frame.head).map_err(|error| unreadable(&error))?;
                let to = Mode::of_byte(to).ok_or_else(|| unreadable(&format!("mode {to}")))?;
                let (session, key, seq) = (self.session()?, Key(record), Seq(seq));
                hub.step(Event::Reduced { session, key, seq, to, flushed });
            }
            cache::REFUSED => {
                let Refused { record, seq, until_ms } =
                    Refused::decode(frame.head).map_err(|error| unreadable(&error))?;
                let (session, until) = (self.session()?, Span::millis(until_ms.into()));
                hub.step(Event::Refused { session, key: Key(record), seq: Seq(seq), until });
            }
            cache::REASSERT => {
                let session = self.session()?;
                let held = cache::held(frame.body, |held| {
                    let mode = Mode::of_byte(held.mode).unwrap_or(Mode::Invalid);
                    hub.step(Event::Reassert { session, key: Key(held.record), mode });
                });
                held.map_err(|error| unreadable(&error))?;
            }
            kind => return Err(unreadable(&format!("kind {}", kind.0))),
        }
        Ok(())
    }

    fn batch_end(&mut self) {
        self.hub.flush();
    }
}

fn refused(code: &'static code::Code, error: &impl std::fmt::Display) -> Closed {
    Closed::Refused { code, text: error.to_string() }
}

fn unreadable(error: &impl std::fmt::Display) -> Closed {
    refused(&code::BAD_MESSAGE, error)
}
