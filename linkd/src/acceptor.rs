//! The listeners: strangers are let in by the door, providers by their hello, and both are handed to a worker.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::Generation;
use bytes::BytesMut;
use net::hello::{self, Ours, Role};
use net::{NetIo, io::is_transient};
use node::Directory;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use wire::code::Code;
use wire::report;

use crate::admission::Door;
use crate::gateway::Crew;
use crate::worker::Letter;

/// How long accepting rests when the system has no room for another connection.
const REST: Duration = Duration::from_millis(50);
/// Refusals being written at once; beyond that a connection is closed without a word.
const REFUSALS_MAX: usize = 256;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Hellos being waited for at once.
const HELLOS_MAX: usize = 1_024;

/// Accepts clients until the listener is dropped with its task.
pub async fn clients<N: NetIo>(io: N, listener: N::Listener, door: Door, crew: Arc<Crew<N>>) {
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    loop {
        let Some((stream, addr)) = accept(&io, &listener).await else { continue };
        let admission = match door.admit(addr.ip()) {
            Ok(admission) => admission,
            Err(code) => {
                refuse::<N>(&refusals, stream, code);
                continue;
            }
        };
        let worker = crew.least_loaded();
        let stream = match io.detach(stream) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%addr, %error, "a client was gone before it was taken in");
                continue;
            }
        };
        if worker.mailbox.post(Letter::Client { stream, addr, admission }).is_err() {
            // The stream went back with the letter and closes here; the client sees a reset and comes again.
            metrics::counter!("linkstead_linkd_handover_refused_total").increment(1);
        }
    }
}

/// Accepts providers until the listener is dropped with its task.
pub async fn providers<N: NetIo>(
    io: N,
    listener: N::Listener,
    ours: Ours,
    directory: Directory,
    crew: Arc<Crew<N>>,
) {
    let hellos = Arc::new(Semaphore::new(HELLOS_MAX));
    loop {
        let Some((stream, addr)) = accept(&io, &listener).await else { continue };
        let Ok(permit) = hellos.clone().try_acquire_owned() else {
            metrics::counter!("linkstead_linkd_hello_refused_total").increment(1);
            continue;
        };
        let ours = Ours { epoch: directory.current_epoch(), ..ours.clone() };
        let (io, crew) = (io.clone(), crew.clone());
        tokio::spawn(async move {
            let _permit = permit;
            greet(io, stream, addr, &ours, &crew).await;
        });
    }
}

async fn greet<N: NetIo>(io: N, mut stream: N::Stream, addr: SocketAddr, ours: &Ours, crew: &Crew<N>) {
    let peer = match hello::accept(&mut stream, &hello::Proof::Loopback(addr), ours, &[Role::Provider]).await
    {
        Ok(peer) => peer,
        Err(error) => {
            metrics::counter!("linkstead_linkd_hello_refused_total").increment(1);
            tracing::warn!(%addr, %error, "a provider was not let in");
            return;
        }
    };
    let Some(worker) = crew.workers.get(peer.worker as usize) else {
        tracing::warn!(node = %peer.node, worker = peer.worker, "a provider asked for a worker that doesn't exist");
        return;
    };
    let conn: Generation = crew.generation();
    let posted = io.detach(stream).map(|stream| worker.mailbox.post(Letter::Provider { stream, peer, conn }));
    if !matches!(posted, Ok(Ok(()))) {
        metrics::counter!("linkstead_linkd_handover_refused_total").increment(1);
    }
}

/// The next connection. `None`: not now; an error that lasts is logged and retried after a rest.
async fn accept<N: NetIo>(io: &N, listener: &N::Listener) -> Option<(N::Stream, SocketAddr)> {
    match io.accept(listener).await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            metrics::counter!("linkstead_linkd_accept_errors_total").increment(1);
            if !is_transient(&error) {
                tracing::error!(%error, "accepting fails");
            }
            tokio::time::sleep(REST).await;
            None
        }
    }
}

/// Tells a stranger why not, if the system has time for it.
fn refuse<N: NetIo>(refusals: &Arc<Semaphore>, mut stream: N::Stream, code: &'static Code) {
    metrics::counter!("linkstead_linkd_clients_refused_total", "code" => code.name).increment(1);
    let Ok(permit) = refusals.clone().try_acquire_owned() else { return };
    tokio::spawn(async move {
        let _permit = permit;
        let mut out = BytesMut::new();
        report::encode(&mut out, report::From::Link, code.number, code.name);
        let told = async {
            stream.write_all(&out).await?;
            stream.shutdown().await
        };
        // A stranger that doesn't read is closed all the same.
        let _ = tokio::time::timeout(REFUSAL_TIMEOUT, told).await;
    });
}
