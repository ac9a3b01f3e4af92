//! What an operator asks of a node over tonic: status, topology, kick, stop. It is served on the ops port and taken from
//! loopback only, since nobody proves who they are yet.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ConnectInfo;
use base::{Account, LinkSid};
use serde_json::Value;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use wire::admin as msg;

use crate::directory::{self, NodeInfo};
use crate::listen::Caller;
use crate::ops::Late;
use crate::stub::admin::admin_client::AdminClient;
use crate::stub::admin::admin_server::{Admin, AdminServer};

/// How long an operator's call may take.
const DEADLINE: Duration = Duration::from_secs(5);

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

/// Why a node could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperateError {
    /// The operator asked the wrong node.
    #[error("this role has no client sessions; ask a linkd")]
    NotThisRole,
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

    /// Begins the stop, with `now` without its waits; says whether it had begun already.
    fn stop(&self, now: bool) -> bool;
}

/// The list of nodes in the form that [`Operate::topology`] promises.
pub fn topology_json(nodes: &[NodeInfo]) -> Value {
    let service = |service: &directory::Service| {
        serde_json::json!({
            "name": service.name,
            "version": service.version,
            "address": service.address,
            "region": service.region,
            "extra": service.extra,
        })
    };
    let node = |node: &NodeInfo| {
        serde_json::json!({
            "node": node.node.as_str(),
            "role": node.role,
            "epoch": node.epoch.0,
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
        let kicked = self.serving()?.kick(kick).await.map_err(|error| match error {
            OperateError::NotThisRole => Status::failed_precondition(error.to_string()),
            OperateError::Busy(_) => Status::unavailable(error.to_string()),
        })?;
        Ok(Response::new(msg::KickReply { kicked }))
    }

    async fn stop(&self, request: Request<msg::StopRequest>) -> Result<Response<msg::StopReply>, Status> {
        from_loopback(&request)?;
        let already = self.role.stop(request.into_inner().now);
        Ok(Response::new(msg::StopReply { already }))
    }
}

fn kick(request: msg::KickRequest) -> Result<Kick, String> {
    let target = match request.target {
        Some(msg::kick_request::Target::Account(account)) => {
            Target::Account(Account::new(&account).map_err(|error| error.to_string())?)
        }
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

/// Why a call to a node failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// Nothing was done; the node is down or its ops address is wrong.
    #[error("node at {addr} can't be reached: {why}")]
    Unreachable { addr: String, why: String },
    /// The node has answered with a refusal, or did not answer in time.
    #[error("node at {addr} refuses: {why}")]
    Refused { addr: String, why: String },
    #[error("node at {addr} answers something that can't be read: {why}; is it of another version?")]
    BadAnswer { addr: String, why: String },
}

/// An operator's connection to one node.
#[derive(Debug, Clone)]
pub struct Client {
    addr: String,
    stub: AdminClient<Channel>,
}

impl Client {
    /// Dials a node's ops address, `host:port`.
    pub async fn connect(addr: &str) -> Result<Self, AdminError> {
        let unreachable = |why: String| AdminError::Unreachable { addr: addr.to_owned(), why };
        let channel =
            directory::channel(addr).await.map_err(|error| unreachable(directory::chain(&error)))?;
        Ok(Self { addr: addr.to_owned(), stub: AdminClient::new(channel) })
    }

    pub async fn status(&mut self) -> Result<Value, AdminError> {
        let reply = self.stub.status(request(msg::StatusRequest {})).await;
        let json = reply.map_err(|status| self.refused(&status))?.into_inner().json;
        self.read(&json)
    }

    pub async fn topology(&mut self) -> Result<Value, AdminError> {
        let reply = self.stub.topology(request(msg::TopologyRequest {})).await;
        let json = reply.map_err(|status| self.refused(&status))?.into_inner().json;
        self.read(&json)
    }

    /// Ends sessions of a linkd and returns how many.
    pub async fn kick(&mut self, kick: Kick) -> Result<u32, AdminError> {
        let target = match kick.target {
            Target::Account(account) => msg::kick_request::Target::Account(account.as_str().to_owned()),
            Target::LinkSid(link_sid) => msg::kick_request::Target::LinkSid(link_sid.0),
        };
        let kick = msg::KickRequest { target: Some(target), code: kick.code.number, text: kick.text };
        let reply = self.stub.kick(request(kick)).await;
        Ok(reply.map_err(|status| self.refused(&status))?.into_inner().kicked)
    }

    /// Begins the node's stop; true when it had begun already.
    pub async fn stop(&mut self, now: bool) -> Result<bool, AdminError> {
        let reply = self.stub.stop(request(msg::StopRequest { now })).await;
        Ok(reply.map_err(|status| self.refused(&status))?.into_inner().already)
    }

    fn refused(&self, status: &Status) -> AdminError {
        let (addr, why) = (self.addr.clone(), status.message().to_owned());
        match status.code() {
            Code::Unavailable => AdminError::Unreachable { addr, why },
            _ => AdminError::Refused { addr, why },
        }
    }

    fn read(&self, json: &str) -> Result<Value, AdminError> {
        let bad = |error: serde_json::Error| AdminError::BadAnswer {
            addr: self.addr.clone(),
            why: error.to_string(),
        };
        serde_json::from_str(json).map_err(bad)
    }
}

fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    request
}
