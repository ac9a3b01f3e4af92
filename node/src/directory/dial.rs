//! The session task: dials a directory, runs a session, waits, and tries the next. Tonic is only an adapter here; its
//! streams come from `net`.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use net::NetIo;
use net::hello::{Proof, Role};
use net::tls::{Cause, HANDSHAKE_TIMEOUT, TlsError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint, Uri};
use wire::directory as msg;

use super::error::JoinError;
use super::session::{End, session};
use super::{Directory, Join, Shared};
use crate::stub::directory::directory_client::DirectoryClient;

/// Messages on their way to the directory. When it is full the session waits, at most as long as its lease.
const OUTBOX_MESSAGES_MAX: usize = 64;
/// A snapshot page or delta is far below this.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long a directory may take from the dial to the beginning of its stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// A session that lived this long begins the waits anew.
const HELD: Duration = Duration::from_secs(1);
/// A reason that stays the same is logged again only after this.
const SAID_AGAIN: Duration = Duration::from_secs(30);

/// Dials `addr` (`host:port`) through `net` for a tonic client, in clear: for the ops port, which is loopback's.
pub async fn channel(addr: &str) -> Result<Channel, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("http://{addr}"))?;
    let addr = addr.to_owned();
    let connector = tower::service_fn(move |_: Uri| {
        let addr = addr.clone();
        async move { net::Tcp::dial(&addr).await.map(TokioIo::new) }
    });
    endpoint.connect_with_connector(connector).await
}

/// Dials a directory, which must prove that it is one of this cluster.
async fn directory_channel<N: NetIo>(
    net: &N,
    join: &Join,
    addr: &str,
) -> Result<Channel, tonic::transport::Error> {
    // TLS is shaken in the connector: tonic sees a plain stream either way.
    let endpoint = Endpoint::from_shared(format!("http://{addr}"))?;
    let (addr, security, cluster) = (addr.to_owned(), join.security.clone(), join.cluster.clone());
    let net = net.clone();
    let connector = tower::service_fn(move |_: Uri| {
        let net = net.clone();
        let (addr, security, cluster) = (addr.clone(), security.clone(), cluster.clone());
        async move {
            security.may_dial(&addr)?;
            let stream = net.connect(&addr).await?;
            let (stream, proof) = security.dial(stream, &addr, HANDSHAKE_TIMEOUT).await?;
            judge(&proof, &cluster, &addr)?;
            Ok::<_, TlsError>(TokioIo::new(stream))
        }
    });
    endpoint.connect_with_connector(connector).await
}

fn judge(proof: &Proof, cluster: &str, addr: &str) -> Result<(), TlsError> {
    match proof {
        Proof::Certificate(is) if is.role != Role::Directory || is.cluster != cluster => {
            let why = format!("{addr} is {is}, and no directory of cluster {cluster:?}");
            Err(TlsError::new(Cause::Identity, why))
        }
        _ => Ok(()),
    }
}

/// Keeps a session until `cancel`, leave, or a refusal that no waiting can change.
pub(super) async fn keep<N: NetIo>(net: N, directory: Directory, cancel: CancellationToken) {
    let shared = &directory.shared;
    let _ended = shared.ended.clone().drop_guard();
    let mut backoff = shared.join.reconnect.clone();
    let mut complaints = Complaints::default();
    if shared.join.directory.is_empty() {
        refuse(shared, JoinError::NoDirectory { node: shared.join.node.clone() });
        return;
    }
    for addr in shared.join.directory.iter().cycle() {
        let started = Instant::now();
        let admitted = shared.state.borrow().admitted;
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            end = once(&net, &directory, addr) => end,
        };
        match end {
            End::Left => return,
            // Once admitted, a node tries on: it serves, whoever else took its name.
            End::Refused(error) if error.is_final() && !shared.epoch.borrow().is_given() => {
                refuse(shared, error);
                return;
            }
            _ if base::planted::is("directory_never_rejoined") => return,
            end => {
                let was_in = shared.state.borrow().admitted > admitted;
                if was_in && started.elapsed() > HELD {
                    backoff.reset();
                    complaints = Complaints::default();
                }
                if complaints.due(addr, &end.to_string(), Instant::now()) {
                    log(shared, addr, &end);
                }
            }
        }
        let wait = backoff.wait();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = shared.leave.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// What keeps this node from a session, by address, and when it was last said: tries go on, the log does not fill.
#[derive(Debug, Default)]
struct Complaints(BTreeMap<String, (String, Instant)>);

impl Complaints {
    /// Whether a reason is to be said now: it is another one, or was last said long ago.
    fn due(&mut self, addr: &str, why: &str, now: Instant) -> bool {
        let before = self.0.get(addr);
        let due = before.is_none_or(|(said, at)| said != why || now.duration_since(*at) >= SAID_AGAIN);
        if due {
            self.0.insert(addr.to_owned(), (why.to_owned(), now));
        }
        due
    }
}

fn log(shared: &Shared, addr: &str, end: &End) {
    let node = &shared.join.node;
    if shared.epoch.borrow().is_given() {
        tracing::warn!(%node, directory = %addr, %end, "no session with the directory; all known stays");
    } else {
        tracing::warn!(%node, directory = %addr, %end, "waiting for the directory, without which this node can't start");
    }
}

fn refuse(shared: &Shared, error: JoinError) {
    tracing::error!(%error, "this node can't join");
    shared.state.send_modify(|state| state.refused = Some(error));
}

async fn once<N: NetIo>(net: &N, directory: &Directory, addr: &str) -> End {
    let opened = tokio::select! {
        biased;
        () = directory.shared.leave.cancelled() => return End::Left,
        opened = tokio::time::timeout(OPEN_TIMEOUT, open(net, &directory.shared.join, addr)) => opened,
    };
    match opened {
        Ok(Ok((to, from))) => session(directory, from, to).await,
        Ok(Err(why)) => End::Closed(why),
        Err(_) => End::Silent(OPEN_TIMEOUT),
    }
}

async fn open<N: NetIo>(
    net: &N,
    join: &Join,
    addr: &str,
) -> Result<(mpsc::Sender<msg::ToDirectory>, Streaming<msg::FromDirectory>), String> {
    let channel = directory_channel(net, join, addr).await.map_err(|error| chain(&error))?;
    let (to, outbox) = mpsc::channel(OUTBOX_MESSAGES_MAX);
    let mut client = DirectoryClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let from = client.session(ReceiverStream::new(outbox)).await.map_err(|status| status.to_string())?;
    Ok((to, from.into_inner()))
}

/// An error with its causes on one line: tonic says only "transport error" by itself.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: Z-66.
    #[tokio::test(start_paused = true)]
    async fn a_reason_is_said_when_it_is_new_and_not_at_every_try() {
        let mut complaints = Complaints::default();
        let began = Instant::now();
        assert!(complaints.due("a:1", "refused", began));
        assert!(complaints.due("b:1", "refused", began), "another directory");
        assert!(!complaints.due("a:1", "refused", began + SAID_AGAIN / 2));
        assert!(complaints.due("a:1", "silent", began + SAID_AGAIN / 2), "another reason");
        assert!(!complaints.due("b:1", "refused", began + SAID_AGAIN - Duration::from_millis(1)));
        assert!(complaints.due("b:1", "refused", began + SAID_AGAIN));
    }
}
