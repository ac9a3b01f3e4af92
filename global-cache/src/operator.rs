//! What an operator may ask of an arbiter.

use std::sync::Arc;

use base::NodeId;
use node::admin::{Operate, OperateError, topology_json};
use node::ops::lifecycle_json;
use node::{Directory, Shutdown};
use serde_json::{Value, json};

use crate::server::{NoAnswer, Server};
use crate::show;

/// An arbiter as its ops port shows it.
#[derive(Debug)]
pub struct Operator {
    pub node: NodeId,
    pub server: Arc<Server>,
    pub directory: Directory,
    pub shutdown: Shutdown,
}

impl Operate for Operator {
    fn status(&self) -> Value {
        let (status, counts) = (self.server.status(), self.server.status().counts);
        json!({
            "node": self.node.as_str(),
            "role": "arbiter",
            "epoch": self.server.epoch.to_string(),
            "addr": self.server.addr.to_string(),
            "sessions": status.sessions,
            "records": status.keys,
            "waited_for": status.waited_for,
            "warming": status.warming,
            "opens_after_ms": self.server.opens_after().as_millis(),
            "counts": {
                "granted": counts.granted,
                "denied": counts.denied,
                "reduces": counts.reduces,
                "late": counts.late,
                "evicted": counts.evicted,
            },
            "lifecycle": lifecycle_json(self.shutdown.statistics()),
        })
    }

    async fn topology(&self) -> Value {
        topology_json(&self.directory.nodes().await)
    }

    async fn locks(&self, count: usize) -> Result<Value, OperateError> {
        let locks = self.server.locks(count).await.map_err(busy)?;
        Ok(locks.iter().map(show::lock).collect())
    }

    async fn record(&self, key: Vec<u8>) -> Result<Value, OperateError> {
        let record = self.server.record(key.clone()).await.map_err(busy)?;
        Ok(show::record(&key, &record))
    }

    fn stop(&self, now: bool) -> bool {
        let already = !self.shutdown.statistics().ready;
        self.shutdown.stop();
        if now {
            self.shutdown.hurry();
        }
        already
    }
}

fn busy(error: NoAnswer) -> OperateError {
    OperateError::Busy(error.to_string())
}
