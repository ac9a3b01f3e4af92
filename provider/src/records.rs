//! `[provider.records]`: where this provider keeps its records, and how its database begins and ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use node::config::{BadSetting, Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tables::arbiter::client::{self, Client, Place};
use tables::backend::{self, LocalKind};
use tables::{Backend, Db, OpenError, Settings};

use crate::discovery;
use crate::hub::Hub;
use crate::start::StartError;
use meters::Meters;

mod meters;

/// Where records are kept, and who says who may hold them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordsConfig {
    /// Where records are kept: `memory` (lost with the process), `sled` or `redb` (on this machine's disk, for the providers
    /// of one process).
    pub backend: BackendKind,
    /// The folder of `sled` or `redb`.
    pub data_dir: PathBuf,
    /// Who says which provider may hold a record: `embedded` (this process itself, for a provider that is alone with its
    /// storage) or `directory` (the arbiter that the directory lists).
    pub arbiter: Arbiter,
    /// What records may take of memory, about, before those that are used least leave it.
    pub cache_max: Size,
    /// How long a commit may wait to be written, unless somebody waits for it; at most 50 ms.
    pub flush_interval: Time,
}

/// See [`RecordsConfig::backend`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackendKind {
    Memory,
    Sled,
    Redb,
}

/// See [`RecordsConfig::arbiter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arbiter {
    Embedded,
    Directory,
}

impl Default for RecordsConfig {
    fn default() -> Self {
        Self {
            backend: BackendKind::Memory,
            data_dir: PathBuf::new(),
            arbiter: Arbiter::Embedded,
            cache_max: Size(256 * 1024 * 1024),
            flush_interval: Time::millis(20),
        }
    }
}

impl RecordsConfig {
    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        let bad = |key: &str, why: &str| Err(BadSetting::new("provider", key, why));
        if self.backend != BackendKind::Memory && self.data_dir.as_os_str().is_empty() {
            return bad("records.data_dir", "the records need a folder");
        }
        if self.flush_interval.span() > base::Span::millis(50) {
            return bad("records.flush_interval", "at most 50ms: it is what a crash may cost");
        }
        if self.cache_max.0 < 1024 * 1024 {
            return bad("records.cache_max", "at least 1MiB");
        }
        Ok(())
    }
}

impl BackendKind {
    fn kind(self) -> LocalKind {
        match self {
            Self::Memory => LocalKind::Memory,
            Self::Sled => LocalKind::Sled,
            Self::Redb => LocalKind::Redb,
        }
    }
}

/// A provider's database and its way to the arbiter.
pub(crate) struct Records {
    db: Db,
    client: Option<Arc<Client>>,
    meters: Meters,
}

impl Records {
    /// Begins: opens the storage, unless the process has one open already, and logs in at the arbiter.
    pub fn begin(hub: &Hub, shared: Option<Arc<dyn Backend>>) -> Result<Self, StartError> {
        let (config, identity) = (&hub.config.records, &hub.identity);
        let backend = match shared {
            Some(backend) => backend,
            None => open(config)?,
        };
        let settings = Settings {
            node: identity.node.clone(),
            cache_bytes_max: usize::try_from(config.cache_max.0).unwrap_or(usize::MAX),
            flush_interval: Duration::from(config.flush_interval.span()),
        };
        if config.arbiter == Arbiter::Embedded {
            let db = Db::embedded(settings, backend, identity.epoch).map_err(no_thread)?;
            return Ok(Self { db, client: None, meters: Meters::new() });
        }
        let Some(directory) = &hub.directory else {
            let why = "this provider has no directory that could list an arbiter";
            return Err(BadSetting::new("provider", "records.arbiter", why).into());
        };
        let storages = backend.id().map(|id| (backend.name().to_owned(), id)).into_iter().collect();
        let client = Arc::new(Client::new(client::Env {
            cluster: identity.cluster.clone(),
            node: identity.node.clone(),
            epoch: identity.epoch,
            security: hub.security.clone(),
            clock: hub.clock,
            storages,
            place: Place::Watched(discovery::arbiter(directory)),
        }));
        let opening = Db::with(settings, backend, client.clone(), hub.clock).map_err(no_thread)?;
        client.start(opening.hear()).map_err(StartError::from)?;
        Ok(Self { db: opening.done(), client: Some(client), meters: Meters::new() })
    }

    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Writes what is committed and gives back what is held.
    pub async fn end(&self) {
        self.db.stop().await;
        if let Some(client) = &self.client {
            client.leave().await;
        }
    }

    /// Tells the metrics how it stands. One caller, now and then.
    pub fn look(&self) {
        self.meters.look(&self.db.status());
    }

    /// What `/status` shows.
    pub fn json(&self) -> serde_json::Value {
        let status = self.db.status();
        let arbiter = self.client.as_ref().map(|client| {
            let status = client.status();
            serde_json::json!({
                "connected": status.connected,
                "fence": status.fence.map(|fence| fence.to_string()),
                "lease_left_ms": status.left.as_millis(),
                "words_dropped": status.words_dropped,
            })
        });
        serde_json::json!({
            "backend": status.storage,
            "arbiter": arbiter,
            "records": status.records,
            "bytes": status.bytes,
            "leased": status.leased,
            "unwritten": status.unwritten,
            "flush_lag_ms": status.flush_lag.as_millis(),
            "write_errors": status.write_errors,
            "failing": status.failing,
            "asked": status.asked,
            "reduced": status.reduced,
            "loads": status.loads,
            "load_errors": status.load_errors,
            "evicted": status.evicted,
            "losses": status.losses,
            "lost_commits": status.lost,
            "refused_batches": status.refused,
        })
    }
}

fn no_thread(error: OpenError) -> StartError {
    StartError::Threads(error.to_string())
}

/// Opens the storage of this process's records.
///
/// Errors: the setting that can't be used, and why.
pub fn open(config: &RecordsConfig) -> Result<Arc<dyn Backend>, StartError> {
    if config.backend == BackendKind::Memory {
        tracing::warn!("records are kept in memory and are lost with this process");
    }
    let bad = |error: backend::LocalError| BadSetting::new("provider", "records.data_dir", error.to_string());
    Ok(backend::open(config.backend.kind(), &config.data_dir).map_err(bad)?)
}
