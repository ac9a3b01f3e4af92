//! What an operator may ask of a linkd.

use std::sync::Arc;

use node::admin::{Kick, Operate, OperateError, Target, topology_json};
use node::{Directory, Shutdown};
use serde_json::Value;

use crate::router::Who;
use crate::{Linkd, status};

/// A linkd as its ops port shows it.
pub struct Operator {
    pub linkd: Arc<Linkd>,
    pub directory: Directory,
    pub shutdown: Shutdown,
}

impl Operate for Operator {
    fn status(&self) -> Value {
        let mut status = self.linkd.status();
        status["lifecycle"] = node::ops::lifecycle_json(self.shutdown.statistics());
        status
    }

    async fn topology(&self) -> Value {
        topology_json(&self.directory.nodes().await)
    }

    async fn kick(&self, kick: Kick) -> Result<u32, OperateError> {
        let who = who(kick.target);
        // Codes are few and `&'static` wherever they come from; this one was looked up in the registry by number.
        let code = wire::Code::find(kick.code.number).unwrap_or(&wire::code::KICKED);
        let kicked = self.linkd.kick(who, code, &kick.text).await;
        Ok(u32::try_from(kicked).unwrap_or(u32::MAX))
    }

    async fn lookup(&self, target: Target) -> Result<Value, OperateError> {
        let found = self.linkd.lookup(who(target)).await;
        Ok(found.iter().map(status::found).collect())
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

fn who(target: Target) -> Who {
    match target {
        Target::Account(account) => Who::Account(account),
        Target::LinkSid(sid) => Who::Sid(sid),
    }
}
