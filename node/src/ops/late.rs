//! A role that operators can ask before it serves: until the directory has let the node in, the ops port answers that it
//! waits, and can stop it.

use std::sync::{Arc, OnceLock};

use base::NodeId;
use net::hello::Role;
use serde_json::{Value, json};

use super::lifecycle_json;
use crate::admin::Operate;
use crate::shutdown::Shutdown;

/// What operators reach through the ops port: a role, from the moment that there is one.
pub struct Late<O> {
    serving: OnceLock<Arc<O>>,
    /// `None`: it serves from the beginning.
    waiting: Option<Waiting>,
}

/// A node that waits for the directory.
struct Waiting {
    node: NodeId,
    role: Role,
    shutdown: Shutdown,
}

impl<O: Operate> Late<O> {
    /// Nothing serves yet.
    pub fn new(node: NodeId, role: Role, shutdown: Shutdown) -> Self {
        Self { serving: OnceLock::new(), waiting: Some(Waiting { node, role, shutdown }) }
    }

    /// It serves already.
    pub fn there(operate: Arc<O>) -> Self {
        Self { serving: OnceLock::from(operate), waiting: None }
    }

    /// From now on operators reach the role. Only the first one counts.
    pub fn serve(&self, operate: O) {
        let _ = self.serving.set(Arc::new(operate));
    }

    /// The role, once it serves.
    pub fn get(&self) -> Option<&O> {
        self.serving.get().map(Arc::as_ref)
    }

    /// What the role says of itself, or that it waits.
    pub fn status(&self) -> Value {
        match (self.get(), &self.waiting) {
            (Some(role), _) => role.status(),
            (None, Some(Waiting { node, role, shutdown })) => json!({
                "role": role.as_str(),
                "node": node.as_str(),
                "waiting_for": "directory",
                "lifecycle": lifecycle_json(shutdown.statistics()),
            }),
            (None, None) => Value::Null,
        }
    }

    /// As [`Operate::stop`]; what only waits ends at once.
    pub fn stop(&self, now: bool) -> bool {
        match (self.get(), &self.waiting) {
            (Some(role), _) => role.stop(now),
            (None, Some(Waiting { shutdown, .. })) => {
                let already = !shutdown.statistics().ready;
                shutdown.stop();
                already
            }
            (None, None) => false,
        }
    }
}
