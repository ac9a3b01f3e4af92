//! Closing this provider to new players, and opening it again: every linkd is told, and says that it knows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::NodeId;
use wire::link::{self, message};

use crate::conn::Conn;
use crate::error::{Error, Result};
use crate::hub::Hub;

/// Who knows that a provider takes nobody new, or that it does again.
#[derive(Debug, Clone, Default)]
pub struct Acknowledged {
    /// Workers of linkds that do from now on.
    pub workers: usize,
    /// Workers of linkds that have not said so in time.
    pub failed: Vec<(NodeId, Error)>,
}

pub(crate) async fn set(hub: &Arc<Hub>, disabled: bool, timeout: Duration) -> Acknowledged {
    // Before the list is read: a connection that is not on it yet reads this when it is.
    hub.closed.store(disabled, Ordering::SeqCst);
    let mut told = Acknowledged::default();
    let mut asked = Vec::new();
    for conn in hub.conns.announced() {
        let node = conn.link.peer.node.clone();
        asked.push((node, hub.spawn(async move { tell(&conn, timeout).await })));
    }
    for (node, answer) in asked {
        let stopped = || Error::framework(&wire::code::SHUTTING_DOWN, "the provider stopped meanwhile");
        match answer.await.unwrap_or_else(|_| Err(stopped())) {
            Ok(()) => told.workers += 1,
            Err(error) => told.failed.push((node, error)),
        }
    }
    tracing::info!(disabled, workers = told.workers, failed = told.failed.len(), "linkds were told");
    told
}

/// Tells one linkd what holds now, until it knows. One call at a time, so that an older word never comes last.
pub(crate) async fn tell(conn: &Arc<Conn>, timeout: Duration) -> Result<()> {
    let telling = async {
        let mut told = conn.told_disabled.lock().await;
        loop {
            let disabled = conn.hub.is_disabled();
            if *told == Some(disabled) {
                return Ok(());
            }
            // Unknown until it is answered.
            *told = None;
            conn.link.call::<()>(link::DISABLE, &message::Disable { disabled }, timeout).await?;
            *told = Some(disabled);
        }
    };
    let late =
        |_| Err(Error::framework(&wire::code::TIMEOUT, format!("{} does not answer", conn.link.peer.node)));
    tokio::time::timeout(timeout, telling).await.unwrap_or_else(late)
}
