//! What the directory answers an operator.

use std::sync::Arc;
use std::time::Duration;

use node::Shutdown;
use node::admin::{Operate, topology_json};
use node::ops::lifecycle_json;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::Parts;
use super::session::Input;
use crate::config::StoreKind;
use crate::directory::Status;

/// How long an operator waits for the core's loop.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Operator {
    node: String,
    cluster: String,
    store: StoreKind,
    shutdown: Shutdown,
    status: Arc<Mutex<Status>>,
    inputs: mpsc::Sender<Input>,
}

impl Operator {
    pub fn new(
        parts: &Parts,
        store: StoreKind,
        status: Arc<Mutex<Status>>,
        inputs: mpsc::Sender<Input>,
    ) -> Self {
        let (node, cluster) = (parts.node.as_str().to_owned(), parts.cluster.clone());
        Self { node, cluster, store, shutdown: parts.shutdown.clone(), status, inputs }
    }
}

impl Operate for Operator {
    fn status(&self) -> Value {
        let status = *self.status.lock();
        json!({
            "role": "directory",
            "node": self.node,
            "cluster": self.cluster,
            "store": self.store.as_str(),
            "revision": status.revision,
            "warming": status.warming,
            "nodes": status.nodes,
            "sessions": status.sessions,
            "services": status.services,
            "claims": status.claims,
            "unreachable": status.unreachable,
            "left_behind": status.left,
            "epoch_max": status.epoch_max.to_string(),
            "lifecycle": lifecycle_json(self.shutdown.statistics()),
        })
    }

    async fn topology(&self) -> Value {
        let (reply, nodes) = oneshot::channel();
        let asked = async {
            self.inputs.send(Input::Nodes { reply }).await.ok()?;
            nodes.await.ok()
        };
        let nodes = tokio::time::timeout(PATIENCE, asked).await.ok().flatten();
        topology_json(&nodes.unwrap_or_default())
    }

    fn stop(&self, now: bool) -> bool {
        let already = !self.shutdown.statistics().ready;
        if now {
            self.shutdown.hurry()
        } else {
            self.shutdown.stop()
        }
        already
    }
}
