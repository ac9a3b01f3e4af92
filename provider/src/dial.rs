//! The life of one connection to a linkd: preface, TLS, hello, introduction, requests, goodbye, and then again.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use net::calls::CallError;
use net::dial::Backoff;
use net::hello::{self, HelloError};
use net::inbox::SharedScratch;
use net::link::{Closed, Link};
use net::tls::{HANDSHAKE_TIMEOUT, Secured};
use net::{NetIo, Peer, preface};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use wire::Code;
use wire::link::{self, message};
use wire::node::Kind;

use crate::conn::Conn;
use crate::disable;
use crate::hub::Hub;
use crate::intake::Intake;
use crate::linkds::Key;
use crate::room::Gate;
use crate::table::Table;

/// How long each step of an introduction may take.
const STEP: Duration = Duration::from_secs(5);
/// The waits after a refused step.
const REFUSED_FIRST: Duration = Duration::from_millis(250);
const REFUSED_MAX: Duration = Duration::from_secs(8);
/// How long a linkd has to close after our goodbye.
const FAREWELL: Duration = Duration::from_secs(1);

/// A linkd's worker and where it listens.
pub(crate) struct Target {
    pub key: Key,
    pub address: String,
    /// Cancelled: dial no more. A connection that lives is left alone.
    pub redial: CancellationToken,
}

/// Keeps a connection until the target is forgotten and its last connection is over.
pub(crate) async fn keep<N: NetIo>(
    net: N,
    target: Target,
    hub: Arc<Hub>,
    table: Arc<Table>,
    scratch: SharedScratch,
    backoff: Backoff,
) {
    let (address, redial) = (target.address.clone(), target.redial.clone());
    if let Err(error) = hub.security.may_dial(&address) {
        tracing::error!(linkd = %target.key.node, %address, %error, "this linkd is never dialled");
        return redial.cancelled().await;
    }
    let target = &target;
    net::dial::keep(net, address, backoff, redial, |stream, _| {
        let (hub, table, scratch) = (hub.clone(), table.clone(), scratch.clone());
        async move { connection::<N>(stream, target, hub, table, scratch).await }
    })
    .await;
}

async fn connection<N: NetIo>(
    stream: N::Stream,
    target: &Target,
    hub: Arc<Hub>,
    table: Arc<Table>,
    mut scratch: SharedScratch,
) {
    let Key { node, epoch, worker } = &target.key;
    let offered = introduce_ourselves(stream, target, &hub).await;
    let (stream, peer) = match offered {
        Ok((stream, peer)) if peer.node == *node && peer.epoch == *epoch => (stream, peer),
        Ok((_, peer)) => {
            let address = &target.address;
            tracing::warn!(%address, %node, %epoch, is = %peer.node, its_epoch = %peer.epoch, "another node answers");
            return;
        }
        Err(error) => {
            tracing::warn!(linkd = %node, address = %target.address, %error, "no connection to the linkd");
            return;
        }
    };
    let (read, write) = tokio::io::split(stream);
    let link = Link::new(peer, hub.next_generation(), write);
    let conn = Conn::new(link.clone(), *worker, hub.clone(), table);
    let introduction = tokio::task::spawn_local(introduce(conn.clone()));
    hub.conns.insert(conn.clone());
    hub.meters.links.increment(1.0);
    let mut read = Gate::new(read, link.outbox.clone(), hub.clone());
    let mut intake = Intake::new(conn.clone());
    let closed = tokio::select! {
        biased;
        closed = net::link::run(&link, &mut read, &mut scratch, &mut intake) => closed,
        closed = writing(&conn) => closed,
        closed = until_goodbye(&conn, &target.redial) => closed,
    };
    introduction.abort();
    hub.conns.remove(&conn);
    link.calls.close();
    conn.close();
    hub.meters.links.decrement(1.0);
    if matches!(&closed, Closed::Goodbye(refusal) if refusal.code == wire::code::STALE_EPOCH.number) {
        hub.outlived.cancel();
    }
    tracing::info!(linkd = %node, %worker, why = %closed, "the connection to the linkd is over");
}

/// Which worker we want, then who we are: inside TLS from the second word on.
async fn introduce_ourselves<S>(
    mut stream: S,
    target: &Target,
    hub: &Hub,
) -> Result<(Secured<S>, Peer), HelloError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let worker = target.key.worker;
    preface::send(&mut stream, worker.into()).await?;
    let secured = hub.security.dial(stream, &target.address, HANDSHAKE_TIMEOUT).await;
    let (mut stream, proof) = secured.map_err(HelloError::Tls)?;
    let peer = hello::offer(&mut stream, &proof, &hub.ours(worker), &[hello::Role::Linkd]).await?;
    if let Some(directory) = &hub.directory {
        directory.met(peer.epoch);
    }
    Ok((stream, peer))
}

/// Writes what waits. Ends only when that fails: an orderly close is seen by the reader.
async fn writing(conn: &Arc<Conn>) -> Closed {
    match net::outbox::drive(conn.link.outbox.clone()).await {
        Err(error) => Closed::Broken(error),
        Ok(()) => std::future::pending().await,
    }
}

/// Says goodbye when this provider stops, and ends when the linkd had time to close.
async fn until_goodbye(conn: &Arc<Conn>, redial: &CancellationToken) -> Closed {
    let goodbye = conn.hub.goodbye.clone();
    tokio::select! {
        biased;
        () = goodbye.cancelled() => {}
        () = redial.cancelled(), if base::planted::is("directory_removal_cuts") => {}
    }
    conn.link.goodbye(&wire::code::SHUTTING_DOWN, "the provider stops");
    tokio::time::sleep(FAREWELL).await;
    Closed::ByPeer
}

/// Announce, then Bind, then Subscribe, each answered before the next. Until all are done nothing is routed here.
async fn introduce(conn: Arc<Conn>) {
    let hub = conn.hub.clone();
    let described = conn.table().modules.iter().map(|module| hub.describe(module));
    let (dynamic, fixed): (Vec<_>, Vec<_>) = described.partition(|module| module.dynamic);
    let mut backoff = Backoff::new(REFUSED_FIRST, REFUSED_MAX, conn.link.generation.0);
    let bind = message::Bind { modules: fixed, link_sids: Vec::new() };
    if base::planted::is("bind_before_announce") {
        insist(&conn, &mut backoff, "Bind", link::BIND, || bind.clone()).await;
    }
    let announced = Cell::new(false);
    let announce = || {
        announced.set(hub.is_disabled());
        hub.announce(announced.get())
    };
    if !insist(&conn, &mut backoff, "Announce", link::ANNOUNCE, announce).await {
        return;
    }
    *conn.told_disabled.lock().await = Some(announced.get());
    conn.set_announced();
    // What has changed meanwhile has passed this connection over.
    if let Err(error) = disable::tell(&conn, STEP).await {
        tracing::error!(linkd = %conn.link.peer.node, %error, "not told whether to choose this provider; dialling anew");
        conn.link.outbox.close();
        return;
    }
    if !insist(&conn, &mut backoff, "Bind", link::BIND, || bind.clone()).await {
        return;
    }
    let subscribe = message::Subscribe { modules: dynamic };
    if !subscribe.modules.is_empty()
        && !insist(&conn, &mut backoff, "Subscribe", link::SUBSCRIBE, || subscribe.clone()).await
    {
        return;
    }
    let report = *hub.report.borrow();
    conn.report(&report);
    conn.set_introduced();
    tracing::info!(linkd = %conn.link.peer.node, worker = conn.key().worker, "introduced to the linkd");
}

/// Calls until it is accepted. False: the connection is over, or can't be trusted to be in step.
async fn insist<M: prost::Message>(
    conn: &Arc<Conn>,
    backoff: &mut Backoff,
    what: &str,
    kind: Kind,
    message: impl Fn() -> M,
) -> bool {
    loop {
        let linkd = &conn.link.peer.node;
        match conn.link.call::<()>(kind, &message(), STEP).await {
            Ok(()) => return true,
            Err(CallError::Refused(refusal)) => {
                let code = Code::find(refusal.code).map_or("UNKNOWN", |code| code.name);
                let number = refusal.code;
                tracing::error!(%linkd, step = what, code, number, "refused by the linkd: {}", refusal.text);
            }
            Err(CallError::Busy) => tracing::warn!(%linkd, step = what, "too much waits for the linkd"),
            Err(CallError::Broken) => return false,
            Err(error) => {
                tracing::error!(%linkd, step = what, %error, "not answered; dialling anew");
                conn.link.outbox.close();
                return false;
            }
        }
        tokio::time::sleep(backoff.wait()).await;
    }
}
