//! A provider that runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use node::Shutdown;
use node::shutdown::StopError;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::conn::Conn;
use crate::disable::{self, Acknowledged};
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::linkds::Key;
use crate::links::Links;
use crate::table::Table;

type Outcome = Option<Result<(), StopError>>;

/// A provider that was started with [`Builder::start`](crate::Builder::start). Dropping it stops it without waits.
pub struct Running {
    hub: Arc<Hub>,
    table: Arc<Table>,
    shutdown: Shutdown,
    wanted: watch::Receiver<BTreeSet<Key>>,
    stopped: watch::Receiver<Outcome>,
    _stop: StopOnDrop,
}

struct StopOnDrop(Shutdown);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.hurry();
    }
}

/// Reads a running provider's numbers, for as long as anybody likes. Cheap to clone.
#[derive(Clone)]
pub struct Status {
    hub: Arc<Hub>,
    table: Arc<Table>,
    shutdown: Shutdown,
}

impl Running {
    pub(crate) fn new(
        hub: Arc<Hub>,
        table: Arc<Table>,
        shutdown: Shutdown,
        wanted: watch::Receiver<BTreeSet<Key>>,
        stopped: watch::Receiver<Outcome>,
    ) -> Self {
        let _stop = StopOnDrop(shutdown.clone());
        Self { hub, table, shutdown, wanted, stopped, _stop }
    }

    /// Waits until at least one linkd is known and every worker of each takes requests for this provider.
    pub async fn ready(&self) {
        let mut changed = self.hub.changed.subscribe();
        while !self.is_ready() {
            // The sender lives in the hub, which lives as long as this.
            let _ = changed.changed().await;
        }
    }

    /// Whether [`ready`](Self::ready) would return at once.
    pub fn is_ready(&self) -> bool {
        self.waits_for().is_none()
    }

    /// What it still waits for, in words for operators; `None` when it is ready.
    pub(crate) fn waits_for(&self) -> Option<String> {
        let wanted = self.wanted.borrow();
        let (introduced, wanted) = (self.hub.conns.introduced(&wanted), wanted.len());
        match wanted {
            0 => Some("no linkd is known to the directory".to_owned()),
            wanted if introduced < wanted => {
                Some(format!("{introduced} of {wanted} workers of linkds take requests for this provider"))
            }
            _ => None,
        }
    }

    /// Changes whenever a connection is introduced or ends, and so whatever [`is_ready`](Self::is_ready) says.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.hub.changed.subscribe()
    }

    /// What `/status` shows.
    pub fn status(&self) -> Value {
        self.reader().status()
    }

    /// Reads the status independently of this handle.
    pub fn reader(&self) -> Status {
        Status { hub: self.hub.clone(), table: self.table.clone(), shutdown: self.shutdown.clone() }
    }

    /// For sending from outside any handler.
    pub fn links(&self) -> Links {
        Links(self.hub.clone())
    }

    /// Its lifecycle, for signals, probes and operators.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Stops in order: linkds choose it for nothing new, requests in flight end, connections say goodbye, the hooks of
    /// ended sessions run, the directory is left. Calling it again waits for the same stop. An error says what was cut
    /// off; the provider has stopped all the same.
    pub async fn stop(&self) -> Result<()> {
        self.shutdown.stop();
        self.stopped().await
    }

    /// Waits for a stop that somebody else begins.
    pub async fn stopped(&self) -> Result<()> {
        let mut stopped = self.stopped.clone();
        let outcome = match stopped.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => return Err(Error::framework(&wire::code::EXCEPTION, "the control thread panicked")),
        };
        if self.hub.outlived.is_cancelled() {
            let text = "another start of this node was admitted since, so this one has stopped";
            return Err(Error::framework(&wire::code::STALE_EPOCH, text));
        }
        let cut_off = |error: StopError| Error::framework(&wire::code::TIMEOUT, error.to_string());
        outcome.unwrap_or(Ok(())).map_err(cut_off)
    }
}

impl Status {
    /// Begins the stop, with `now` without its waits; says whether it had begun already.
    pub fn stop(&self, now: bool) -> bool {
        let already = !self.shutdown.statistics().ready;
        if now {
            self.shutdown.hurry()
        } else {
            self.shutdown.stop()
        }
        already
    }

    /// As [`Links::set_disabled`].
    pub async fn set_disabled(&self, disabled: bool, timeout: Duration) -> Acknowledged {
        disable::set(&self.hub, disabled, timeout).await
    }

    /// What `/status` shows. Waits for nothing.
    pub fn status(&self) -> Value {
        let hub = &self.hub;
        let module = |module: &crate::module::Descriptor| {
            let described = hub.describe(module);
            json!({
                "id": module.id,
                "name": module.name,
                "dynamic": module.dynamic,
                "choice": described.choice,
                "protocols": module.protocols.len(),
            })
        };
        let statistics = self.shutdown.statistics();
        json!({
            "role": "provider",
            "node": hub.identity.node.as_str(),
            "epoch": hub.identity.epoch.to_string(),
            "server_id": hub.identity.server_id.0,
            "app_version": hub.config.version().to_string(),
            "region": hub.config.region,
            "modules": self.table.modules.iter().map(module).collect::<Vec<_>>(),
            "handlers": self.table.len(),
            "links": hub.conns.all().iter().map(link).collect::<Vec<_>>(),
            "online": hub.online.len(),
            "in_flight": hub.in_flight(),
            "overload": hub.gauge.pressure() as u8,
            "disabled": hub.is_disabled(),
            "lifecycle": node::ops::lifecycle_json(statistics),
            "records": hub.records.get().map(|records| records.json()),
            "counts": hub.meters.json(),
        })
    }
}

fn link(conn: &Arc<Conn>) -> Value {
    json!({
        "linkd": conn.link.peer.node.as_str(),
        "epoch": conn.link.peer.epoch.to_string(),
        "worker": conn.key().worker,
        "introduced": conn.is_introduced(),
        "draining": conn.is_draining(),
        "sessions": conn.session_count(),
        "in_flight": conn.in_flight(),
        "queued_bytes": conn.link.outbox.queued(),
    })
}
