//! The way in: what stands between an accepted connection and its session, in this order: the balancer's PROXY line,
//! TLS, the WebSocket upgrade. All of it has one deadline, and nobody who fails it costs more than a counter.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use net::proxy::{self, BadHeader};
use net::{Secured, ws};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Transport;
use super::client::{self, Arrival};
use super::state::Worker;
use crate::acceptor;
use crate::admission::{Admission, Turned};

/// How long a refusal may take to leave.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A stream that a session can live on.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// Takes a connection as it was accepted.
pub fn enter<S: Stream>(
    worker: &Rc<Worker>,
    stream: S,
    addr: SocketAddr,
    admission: Admission,
    transport: Transport,
) {
    let arrival = Arrival { addr, admission, transport, since: worker.now(), pulse: None };
    if transport == Transport::Tcp && !worker.settings.layers.proxy && worker.settings.tls.is_none() {
        return client::open(worker, stream, arrival);
    }
    let (worker, door) = (worker.clone(), arrival.admission.door());
    tokio::task::spawn_local(async move {
        let _entering = worker.entering();
        let climbing = climb(&worker, stream, arrival);
        let turned = tokio::select! {
            biased;
            () = worker.closing.cancelled() => Some(Turned::Stopping),
            climbed = tokio::time::timeout(worker.settings.layers.handshake_timeout, climbing) => match climbed {
                Ok(climbed) => climbed.err(),
                Err(_) => Some(Turned::HandshakeTimeout),
            }
        };
        if let Some(why) = turned {
            tracing::debug!(%addr, why = why.as_str(), "a client did not come in");
            door.turned_away(why);
        }
    });
}

async fn climb<S: Stream>(worker: &Rc<Worker>, mut stream: S, mut arrival: Arrival) -> Result<(), Turned> {
    let layers = &worker.settings.layers;
    if layers.proxy {
        let named = proxy::read(&mut stream).await.map_err(|error| proxy_failed(&error))?;
        if let Some(client) = named.filter(|_| !base::planted::is("proxy_address_ignored")) {
            arrival.addr = client;
        }
        if let Err(why) = arrival.admission.comes_from(arrival.addr.ip()) {
            // Nothing can be said in clear where TLS is expected.
            if let Some(code) = why.code().filter(|_| worker.settings.tls.is_none()) {
                let told = acceptor::tell(&mut stream, arrival.transport, code);
                let _ = tokio::time::timeout(LAST_WORDS, told).await;
            }
            return Err(why);
        }
    }
    let addr = arrival.addr;
    let stream = match &worker.settings.tls {
        None => Secured::Plain(stream),
        Some(tls) => tls.accept(stream, layers.handshake_timeout).await.map_err(|error| {
            metrics::counter!("linkstead_linkd_tls_refused_total", "cause" => error.cause.label())
                .increment(1);
            tracing::debug!(%addr, %error, "no TLS");
            Turned::Tls
        })?,
    };
    match arrival.transport {
        Transport::Tcp => client::open(worker, stream, arrival),
        Transport::WebSocket => {
            let accepted = ws::accept(stream, &layers.origins, layers.message_bytes_max).await;
            let stream = accepted.map_err(|refused| match refused {
                ws::Refused::Io(_) => Turned::Left,
                refused => {
                    tracing::debug!(%addr, %refused, "no WebSocket");
                    Turned::Upgrade
                }
            })?;
            arrival.pulse = Some(stream.pulse());
            client::open(worker, stream, arrival);
        }
    }
    Ok(())
}

fn proxy_failed(error: &BadHeader) -> Turned {
    match error {
        BadHeader::Io(_) => Turned::Left,
        BadHeader::Missing => Turned::ProxyMissing,
        BadHeader::Unreadable(_) => Turned::ProxyUnreadable,
    }
}
