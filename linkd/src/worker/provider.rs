//! A provider's connection to one worker.

use std::rc::Rc;

use base::{AppVersion, Generation, Mono};
use net::hello::{self, HELLO_TIMEOUT, HelloError, Role};
use net::link::{self, Closed, Handler, Link};
use net::tls::HANDSHAKE_TIMEOUT;
use net::{Peer, Secured};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use wire::code;
use wire::frame::{self, BadFrame, Decoded, PAYLOAD_BYTES_CEILING};
use wire::link::{
    ANNOUNCE, BIND, BROADCAST, CHECK, DISABLE, KICK, LOAD, SEND, SUBSCRIBE, UNBIND, USER_STATE, UserState,
    broadcast_version,
};
use wire::node::{Frame, Kind};
use wire::payload::{self, Family, Head};

use super::Guest;
use super::state::Worker;
use crate::acceptor::provider_refused;
use crate::router::{Asked, Event, Loss, Pushed, Request};

/// Takes a connection in and starts its task: it proves who it is, and is a provider from then on.
pub fn open<S>(worker: &Rc<Worker>, stream: S, guest: Guest)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let worker = worker.clone();
    tokio::task::spawn_local(async move {
        let (addr, conn, log) = (guest.addr, guest.conn, guest.place.log());
        // One that does not even read why it is refused.
        let greeting = tokio::time::timeout(HANDSHAKE_TIMEOUT + HELLO_TIMEOUT, greet(stream, guest));
        let (stream, peer) = match greeting.await.unwrap_or(Err(HelloError::Timeout)) {
            Ok(greeted) => greeted,
            Err(error) => {
                provider_refused(error.label());
                if let Some(not_logged) = log.turn() {
                    tracing::warn!(%addr, %error, not_logged, "a provider was not let in");
                }
                return;
            }
        };
        let (read, write) = tokio::io::split(stream);
        serve(worker, Link::new(peer, conn, write), read).await;
    });
}

/// TLS and hello. The place among the strangers is free when it ends.
async fn greet<S>(stream: S, guest: Guest) -> Result<(Secured<S>, Peer), HelloError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Guest { addr, wanted, workers, ours, security, directory, place: _place, .. } = guest;
    let secured = security.accept(stream, addr, HANDSHAKE_TIMEOUT).await;
    let (mut stream, proof) = secured.map_err(HelloError::Tls)?;
    let peer = hello::accept_if(&mut stream, &proof, &ours, &[Role::Provider], |peer| {
        if peer.worker != wanted {
            return Err(format!("the preface asks for worker {wanted} and the hello for {}", peer.worker));
        }
        match usize::try_from(wanted) {
            Ok(index) if index < workers => Ok(()),
            _ => Err(format!("there is no worker {wanted}; this linkd has 0 to {}", workers - 1)),
        }
    });
    let peer = peer.await?;
    directory.met(peer.epoch);
    Ok((stream, peer))
}

async fn serve<R: AsyncRead + Unpin>(worker: Rc<Worker>, link: Link, mut read: R) {
    let (node, epoch, conn) = (link.peer.node.clone(), link.peer.epoch, link.generation);
    let now = worker.now();
    worker.with(|state| {
        state.step(now, Event::ProviderOpened { conn, node: node.clone(), epoch }, &[]);
        match state.router.reference(conn) {
            Some(at) => state.add_provider(at, link.clone()),
            None => link.goodbye(&code::STALE_EPOCH, format!("{node} was already here with a newer epoch")),
        }
        state.flush();
    });
    tracing::info!(%node, %epoch, worker = link.peer.worker, "provider connected");
    let mut scratch = worker.scratch.clone();
    let mut inbound = Inbound { worker: worker.clone(), conn, batch: None };
    let closed = link::serve(&link, &mut read, &mut scratch, &mut inbound).await;
    tracing::info!(%node, %closed, "provider gone");
    let now = worker.now();
    worker.with(|state| {
        state.remove_provider(conn);
        state.step(now, Event::ProviderClosed { conn }, &[]);
        state.flush();
    });
}

struct Inbound {
    worker: Rc<Worker>,
    conn: Generation,
    /// When this batch began, which is all the time that its frames need.
    batch: Option<Mono>,
}

impl Handler for Inbound {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Closed> {
        let (conn, now) = (self.conn, *self.batch.get_or_insert_with(|| self.worker.now()));
        match frame.meta.kind {
            SEND => {
                let Some(pushed) = self.pushed(frame)? else { return Ok(()) };
                let event = Event::Send { conn, call: frame.meta.call, head: frame.head, pushed };
                self.worker.with(|state| state.step(now, event, frame.body));
            }
            BROADCAST => {
                let version = AppVersion(broadcast_version(frame.head).map_err(bad)?);
                let Some(pushed) = self.pushed(frame)? else { return Ok(()) };
                let event = Event::Broadcast { conn, call: frame.meta.call, version, pushed };
                self.worker.with(|state| state.step(now, event, frame.body));
            }
            USER_STATE => {
                let UserState { link_sid: sid, role } = UserState::decode(frame.head).map_err(bad)?;
                self.worker.with(|state| state.step(now, Event::UserState { conn, sid, role }, &[]));
            }
            LOAD => {
                let load = decode(frame)?;
                self.worker.with(|state| state.step(now, Event::Loaded { conn, load }, &[]));
            }
            kind => {
                let (call, request) = (frame.meta.call, request(kind, frame)?);
                self.worker.with(|state| state.step(now, Event::ProviderCall { conn, call, request }, &[]));
            }
        }
        Ok(())
    }

    fn stray_reply(&mut self) {
        self.worker.with(|state| state.counters.dropped(Loss::StrayReply));
    }

    fn batch_end(&mut self) {
        self.batch = None;
        self.worker.with(|state| state.flush());
    }
}

impl Inbound {
    /// What a Send or Broadcast carries: exactly one frame. `None`: one that no client may receive, which was refused.
    fn pushed(&self, frame: Frame<'_>) -> Result<Option<Pushed>, Closed> {
        match frame::decode(frame.body, PAYLOAD_BYTES_CEILING) {
            Ok(Decoded::Frame(whole)) if whole.whole.len() == frame.body.len() => {
                let reply = match payload::decode(whole.payload) {
                    Ok((Head { family: Family::Response, session, .. }, _)) => {
                        Some(Asked { type_id: whole.type_id, session })
                    }
                    _ => None,
                };
                Ok(Some(Pushed { level: frame.meta.level, bytes: frame.body.len(), reply }))
            }
            Ok(_) => Err(bad("a Send's body is not exactly one frame")),
            Err(BadFrame::TooLarge { announced, limit }) => {
                let node = self.worker.with(|state| {
                    state.counters.dropped(Loss::TooLarge);
                    let provider = state.providers.iter().flatten().find(|p| p.conn == self.conn)?;
                    if frame.meta.call != 0 {
                        let text = format!("a client's frame of {announced} bytes, at most {limit}");
                        // A provider that doesn't read its answers is given up elsewhere.
                        let _ = provider.link.refuse(frame.meta.call, &code::LIMIT, text);
                    }
                    Some(provider.link.peer.node.clone())
                });
                tracing::warn!(?node, announced, limit, "a frame is larger than any client takes");
                Ok(None)
            }
            Err(error) => Err(bad(error)),
        }
    }
}

fn request(kind: Kind, frame: Frame<'_>) -> Result<Request, Closed> {
    Ok(match kind {
        ANNOUNCE => Request::Announce(decode(frame)?),
        BIND => Request::Bind(decode(frame)?),
        SUBSCRIBE => Request::Subscribe(decode(frame)?),
        UNBIND => Request::UnBind(decode(frame)?),
        DISABLE => Request::Disable(decode(frame)?),
        KICK => Request::Kick(decode(frame)?),
        CHECK => Request::Check(decode(frame)?),
        Kind(other) => return Err(bad(format!("kind {other} is not a provider's to send"))),
    })
}

fn decode<M: Message + Default>(frame: Frame<'_>) -> Result<M, Closed> {
    M::decode(frame.body).map_err(bad)
}

fn bad(why: impl ToString) -> Closed {
    Closed::Refused { code: &code::BAD_MESSAGE, text: why.to_string() }
}
