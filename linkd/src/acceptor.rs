//! The listeners: strangers are let in by the door, providers by their preface, and both are handed to a worker, where
//! a provider proves who it is.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::NodeId;
use bytes::BytesMut;
use net::hello::{Ours, Role};
use net::io::is_transient;
use net::strangers::{Place, Strangers};
use net::{NetIo, Security, preface};
use node::Directory;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use wire::code::Code;
use wire::report;

use crate::admission::{Admission, Door, Turned};
use crate::config;
use crate::crew::Crew;
use crate::worker::{Guest, Letter, Transport};

/// How long accepting rests when the system has no room for another connection.
const REST: Duration = Duration::from_millis(50);
/// Refusals being written at once; beyond that a connection is closed without a word.
const REFUSALS_MAX: usize = 256;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// One of the ports that clients knock at.
#[derive(Debug, Clone)]
pub struct Port {
    pub transport: Transport,
    /// The balancers that each connection must come from; `None`: clients come by themselves.
    pub balancers: Option<Arc<[config::Net]>>,
    /// Nothing can be said to a stranger before TLS stands, so who is refused is closed.
    pub tls: bool,
}

impl Port {
    fn admit(&self, door: &Door, addr: SocketAddr) -> Result<Admission, Turned> {
        match &self.balancers {
            None => door.admit(addr.ip()),
            Some(nets) if nets.iter().any(|net| net.contains(addr.ip())) => door.admit_unknown(),
            Some(_) => Err(Turned::ProxyUntrusted),
        }
    }
}

/// Accepts clients until the listener is dropped with its task.
pub async fn clients<N: NetIo>(io: N, listener: N::Listener, port: Port, door: Door, crew: Arc<Crew<N>>) {
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    loop {
        let Some((stream, addr)) = accept(&io, &listener).await else { continue };
        let admission = match port.admit(&door, addr) {
            Ok(admission) => admission,
            Err(why) => {
                door.turned_away(why);
                match why.code() {
                    Some(code) if !port.tls => refuse::<N>(&refusals, stream, port.transport, code),
                    _ => {}
                }
                continue;
            }
        };
        let worker = crew.least_loaded();
        let stream = match io.detach(stream) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%addr, %error, "a client was gone before it was taken in");
                door.turned_away(Turned::Left);
                continue;
            }
        };
        let transport = port.transport;
        if worker.mailbox.post(Letter::Client { stream, addr, admission, transport }).is_err() {
            // The stream went back with the letter and closes here; the client sees a reset and comes again.
            door.turned_away(Turned::Handover);
        }
    }
}

/// What every provider's connection needs to become one.
#[derive(Debug, Clone)]
pub struct Greeting {
    pub cluster: String,
    pub node: NodeId,
    pub directory: Directory,
    pub security: Security,
    pub strangers: Strangers,
}

/// Accepts providers until the listener is dropped with its task. Each says in clear which worker it wants, and proves
/// to that worker who it is: a connection can't change runtimes once TLS is around it.
pub async fn providers<N: NetIo>(io: N, listener: N::Listener, greeting: Greeting, crew: Arc<Crew<N>>) {
    loop {
        let Some((stream, addr)) = accept(&io, &listener).await else { continue };
        match greeting.strangers.enter(addr.ip()) {
            Ok(place) => {
                let (io, crew, greeting) = (io.clone(), crew.clone(), greeting.clone());
                tokio::spawn(hand_over(io, stream, addr, place, greeting, crew));
            }
            Err(full) => provider_refused(full.label()),
        }
    }
}

/// Counts a connection of the provider port that came to nothing.
pub fn provider_refused(cause: &'static str) {
    metrics::counter!("linkstead_linkd_providers_refused_total", "cause" => cause).increment(1);
}

async fn hand_over<N: NetIo>(
    io: N,
    mut stream: N::Stream,
    addr: SocketAddr,
    place: Place,
    greeting: Greeting,
    crew: Arc<Crew<N>>,
) {
    let wanted = match preface::read(&mut stream).await {
        Ok(wanted) => wanted,
        Err(error) => {
            provider_refused(error.label());
            tracing::debug!(%addr, %error, "a connection to the provider port was closed");
            return;
        }
    };
    // Nobody's worker is the first's: it says so after the hello.
    let index = usize::try_from(wanted).unwrap_or(usize::MAX);
    let at = if index < crew.workers.len() { index } else { 0 };
    let worker = &crew.workers[at];
    let ours = Ours {
        cluster: greeting.cluster,
        node: greeting.node,
        role: Role::Linkd,
        epoch: greeting.directory.current_epoch(),
        worker: at as u32,
    };
    let (conn, workers) = (crew.generation(), crew.workers.len());
    let Greeting { security, directory, .. } = greeting;
    let guest = Box::new(Guest { addr, wanted, workers, conn, ours, security, directory, place });
    let posted = io.detach(stream).map(|stream| worker.mailbox.post(Letter::Provider { stream, guest }));
    if !matches!(posted, Ok(Ok(()))) {
        provider_refused("handover");
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
fn refuse<N: NetIo>(
    refusals: &Arc<Semaphore>,
    mut stream: N::Stream,
    transport: Transport,
    code: &'static Code,
) {
    let Ok(permit) = refusals.clone().try_acquire_owned() else { return };
    tokio::spawn(async move {
        let _permit = permit;
        // A stranger that doesn't read is closed all the same.
        let _ = tokio::time::timeout(REFUSAL_TIMEOUT, tell(&mut stream, transport, code)).await;
    });
}

/// Says why not, in the words of the transport, and closes.
pub(crate) async fn tell(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    transport: Transport,
    code: &Code,
) -> io::Result<()> {
    match transport {
        Transport::Tcp => {
            let mut out = BytesMut::new();
            report::encode(&mut out, report::From::Link, code.number, code.name);
            stream.write_all(&out).await?;
            stream.shutdown().await
        }
        Transport::WebSocket => {
            // Closing over an unread request would take the answer with it.
            let _request = stream.read(&mut [0; 2_048]).await?;
            net::ws::upgrade::refuse(stream, "503 Service Unavailable", code.name).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::io::DuplexStream;

    /// A network without file descriptors for a while.
    #[derive(Clone, Default)]
    struct Exhausted(Arc<AtomicU32>);

    const OUT_OF_FILES: i32 = 24;

    impl NetIo for Exhausted {
        type Stream = DuplexStream;
        type Listener = ();
        type Detached = DuplexStream;

        async fn bind(&self, _: SocketAddr) -> io::Result<()> {
            Ok(())
        }

        fn local_addr(&self, (): &()) -> io::Result<SocketAddr> {
            Err(io::ErrorKind::Unsupported.into())
        }

        async fn accept(&self, (): &()) -> io::Result<(DuplexStream, SocketAddr)> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0..100 => Err(io::Error::from_raw_os_error(OUT_OF_FILES)),
                _ => Ok((tokio::io::duplex(1).0, ([127, 0, 0, 1], 1).into())),
            }
        }

        async fn connect(&self, _: &str) -> io::Result<DuplexStream> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn detach(&self, stream: DuplexStream) -> io::Result<DuplexStream> {
            Ok(stream)
        }

        fn attach(&self, stream: DuplexStream) -> io::Result<DuplexStream> {
            Ok(stream)
        }
    }

    /// Holds: BI-012.
    #[tokio::test(start_paused = true)]
    async fn without_file_descriptors_accepting_rests_and_goes_on() {
        let (io, started) = (Exhausted::default(), tokio::time::Instant::now());
        while accept(&io, &()).await.is_none() {}
        let (asked, rested) = (io.0.load(Ordering::Relaxed), started.elapsed());
        assert_eq!(asked, 101);
        assert!(rested >= REST * 100, "{asked} tries in {rested:?}");
    }
}
