//! What an operator asks of a node over tonic: status, topology, kick, drain, lookup, stop,
//! locks, record. It is served on the ops port and taken from loopback only, since nobody proves who they are yet.

use std::future::Future;
use std::sync::Arc;

use axum::extract::ConnectInfo;
use base::{Account, LinkSid};
use serde_json::Value;
use tonic::{Request, Response, Status};
use wire::admin as msg;

use crate::directory::{self, NodeInfo};
use crate::listen::Caller;
use crate::ops::Late;
use crate::stub::admin::admin_server::{Admin, AdminServer};

pub use client::{AdminError, Client};

mod client;

/// Which sessions a kick ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Every session of an account.
    Account(Account),
    /// One session of this linkd.
    LinkSid(LinkSid),
}

/// A kick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kick {
    pub target: Target,
    pub code: wire::Code,
    /// For the client; may be empty.
    pub text: String,
}

/// Who knows that a provider is closed to new players, or open again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drained {
    /// Workers of linkds.
    pub acknowledged: u32,
    /// The linkds that have not said so in time, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// Why a node could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperateError {
    /// The operator asked the wrong node.
    #[error("this role has no client sessions; ask a linkd")]
    NotThisRole,
    /// The operator asked the wrong node.
    #[error("only a provider is closed to new players; this is none")]
    NoProvider,
    /// The operator asked the wrong node.
    #[error("only an arbiter knows who holds records; this is none")]
    NoArbiter,
    /// Nothing was done; try again.
    #[error("too much is under way: {0}; try again")]
    Busy(String),
}

/// What a role does for operators. `status` must not wait for anything.
pub trait Operate: Send + Sync + 'static {
    /// What `/status` shows.
    fn status(&self) -> Value;

    /// Every node this node knows of; see [`topology_json`].
    fn topology(&self) -> impl Future<Output = Value> + Send {
        std::future::ready(Value::Array(Vec::new()))
    }

    /// Ends sessions and says how many.
    fn kick(&self, _kick: Kick) -> impl Future<Output = Result<u32, OperateError>> + Send {
        std::future::ready(Err(OperateError::NotThisRole))
    }

    /// Closes a provider to new players, or opens it again, and says which linkds know.
    fn drain(&self, _closed: bool) -> impl Future<Output = Result<Drained, OperateError>> + Send {
        std::future::ready(Err(OperateError::NoProvider))
    }

    /// The sessions that are meant, an array of objects.
    fn lookup(&self, _target: Target) -> impl Future<Output = Result<Value, OperateError>> + Send {
        std::future::ready(Err(OperateError::NotThisRole))
    }

    /// The records that are waited for most, an array of objects, at most `count`.
    fn locks(&self, _count: usize) -> impl Future<Output = Result<Value, OperateError>> + Send {
        std::future::ready(Err(OperateError::NoArbiter))
    }

    /// Who holds the record with this table and key, and who waits for it.
    fn record(&self, _key: Vec<u8>) -> impl Future<Output = Result<Value, OperateError>> + Send {
        std::future::ready(Err(OperateError::NoArbiter))
    }

    /// Begins the stop, with `now` without its waits; says whether it had begun already.
    fn stop(&self, now: bool) -> bool;
}

/// The list of nodes in the form that [`Operate::topology`] promises.
pub fn topology_json(nodes: &[NodeInfo]) -> Value {
    let service = |service: &directory::Service| {
        serde_json::json!({
            "name": service.name,
            "version": service.version.to_string(),
            "address": service.address,
            "region": service.region,
            "extra": service.extra,
        })
    };
    let node = |node: &NodeInfo| {
        serde_json::json!({
            "node": node.node.as_str(),
            "role": node.role,
            "epoch": node.epoch.to_string(),
            "host": node.host,
            "ops": node.ops_address,
            "services": node.services.iter().map(service).collect::<Vec<_>>(),
        })
    };
    nodes.iter().map(node).collect()
}

pub(crate) fn service<O: Operate>(role: Arc<Late<O>>) -> AdminServer<Server<O>> {
    AdminServer::new(Server { role })
}

pub(crate) struct Server<O> {
    role: Arc<Late<O>>,
}

impl<O: Operate> Server<O> {
    fn serving(&self) -> Result<&O, Status> {
        self.role.get().ok_or_else(|| Status::failed_precondition("this node still waits for the directory"))
    }
}

/// Only loopback is believed as long as nobody proves who they are.
fn from_loopback<T>(request: &Request<T>) -> Result<(), Status> {
    let caller = request.extensions().get::<ConnectInfo<Caller>>();
    match caller.is_some_and(|info| info.0.is_loopback()) {
        true => Ok(()),
        false => Err(Status::permission_denied(wire::code::NOT_LOOPBACK.to_string())),
    }
}

#[tonic::async_trait]
impl<O: Operate> Admin for Server<O> {
    async fn status(
        &self,
        request: Request<msg::StatusRequest>,
    ) -> Result<Response<msg::StatusReply>, Status> {
        from_loopback(&request)?;
        Ok(Response::new(msg::StatusReply { json: self.role.status().to_string() }))
    }

    async fn topology(
        &self,
        request: Request<msg::TopologyRequest>,
    ) -> Result<Response<msg::TopologyReply>, Status> {
        from_loopback(&request)?;
        let json = match self.role.get() {
            Some(role) => role.topology().await.to_string(),
            None => Value::Array(Vec::new()).to_string(),
        };
        Ok(Response::new(msg::TopologyReply { json }))
    }

    async fn kick(&self, request: Request<msg::KickRequest>) -> Result<Response<msg::KickReply>, Status> {
        from_loopback(&request)?;
        let kick = kick(request.into_inner()).map_err(Status::invalid_argument)?;
        let kicked = self.serving()?.kick(kick).await.map_err(refused)?;
        Ok(Response::new(msg::KickReply { kicked }))
    }

    async fn drain(&self, request: Request<msg::DrainRequest>) -> Result<Response<msg::DrainReply>, Status> {
        from_loopback(&request)?;
        let Drained { acknowledged, failed } =
            self.serving()?.drain(request.into_inner().closed).await.map_err(refused)?;
        let failed = failed.into_iter().map(|(node, why)| msg::DrainFailure { node, why }).collect();
        Ok(Response::new(msg::DrainReply { acknowledged, failed }))
    }

    async fn lookup(
        &self,
        request: Request<msg::LookupRequest>,
    ) -> Result<Response<msg::LookupReply>, Status> {
        from_loopback(&request)?;
        let target = match request.into_inner().target {
            Some(msg::lookup_request::Target::Account(account)) => account_of(&account),
            Some(msg::lookup_request::Target::LinkSid(sid)) => Ok(Target::LinkSid(LinkSid(sid))),
            None => Err("a lookup names an account or a session".to_owned()),
        };
        let target = target.map_err(Status::invalid_argument)?;
        let json = self.serving()?.lookup(target).await.map_err(refused)?.to_string();
        Ok(Response::new(msg::LookupReply { json }))
    }

    async fn stop(&self, request: Request<msg::StopRequest>) -> Result<Response<msg::StopReply>, Status> {
        from_loopback(&request)?;
        let already = self.role.stop(request.into_inner().now);
        Ok(Response::new(msg::StopReply { already }))
    }

    async fn locks(&self, request: Request<msg::LocksRequest>) -> Result<Response<msg::LocksReply>, Status> {
        from_loopback(&request)?;
        let count = usize::try_from(request.into_inner().count).unwrap_or(usize::MAX);
        let json = self.serving()?.locks(count).await.map_err(refused)?.to_string();
        Ok(Response::new(msg::LocksReply { json }))
    }

    async fn record(
        &self,
        request: Request<msg::RecordRequest>,
    ) -> Result<Response<msg::RecordReply>, Status> {
        from_loopback(&request)?;
        let key = request.into_inner().key.to_vec();
        if !(1..=wire::cache::KEY_BYTES_MAX).contains(&key.len()) {
            let why = format!("a record's key has 1 to {} bytes", wire::cache::KEY_BYTES_MAX);
            return Err(Status::invalid_argument(why));
        }
        let json = self.serving()?.record(key).await.map_err(refused)?.to_string();
        Ok(Response::new(msg::RecordReply { json }))
    }
}

fn refused(error: OperateError) -> Status {
    match error {
        OperateError::NotThisRole | OperateError::NoProvider | OperateError::NoArbiter => {
            Status::failed_precondition(error.to_string())
        }
        OperateError::Busy(_) => Status::unavailable(error.to_string()),
    }
}

fn account_of(name: &str) -> Result<Target, String> {
    Account::new(name).map(Target::Account).map_err(|error| error.to_string())
}

fn kick(request: msg::KickRequest) -> Result<Kick, String> {
    let target = match request.target {
        Some(msg::kick_request::Target::Account(account)) => account_of(&account)?,
        Some(msg::kick_request::Target::LinkSid(link_sid)) => Target::LinkSid(LinkSid(link_sid)),
        None => return Err("a kick names an account or a session".to_owned()),
    };
    let code = match request.code {
        0 => wire::code::KICKED,
        number => *wire::Code::find(number)
            .ok_or_else(|| format!("{number} is no code; see the registry of codes"))?,
    };
    Ok(Kick { target, code, text: request.text })
}

#[cfg(test)]
mod tests {
    use base::{Epoch, NodeId};

    use super::*;

    /// Readers of JSON round numbers beyond 2^53, so these are texts.
    ///
    /// Holds: C-08.
    #[test]
    fn numbers_of_64_bits_are_listed_exactly() {
        for number in [1, (1 << 53) + 1, u64::MAX] {
            let service = directory::Service { name: "m/7".into(), version: number, ..Default::default() };
            let node = NodeInfo {
                node: NodeId::new("game-1").unwrap(),
                role: "provider".into(),
                epoch: Epoch(number),
                host: String::new(),
                ops_address: String::new(),
                services: vec![service],
            };
            let text = topology_json(&[node]).to_string();
            assert!(text.contains(&format!("\"epoch\":\"{number}\"")), "{text}");
            assert!(text.contains(&format!("\"version\":\"{number}\"")), "{text}");
        }
    }
}
