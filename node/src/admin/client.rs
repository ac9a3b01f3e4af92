//! An operator's side: dials a node's ops port and asks.

use std::time::Duration;

use serde_json::Value;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use wire::admin as msg;

use super::{Drained, Kick, Target};
use crate::directory;
use crate::stub::admin::admin_client::AdminClient;

/// How long an operator's call may take.
const DEADLINE: Duration = Duration::from_secs(5);

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

    /// Closes a provider to new players, or opens it again.
    pub async fn drain(&mut self, closed: bool) -> Result<Drained, AdminError> {
        let reply = self.stub.drain(request(msg::DrainRequest { closed })).await;
        let msg::DrainReply { acknowledged, failed } =
            reply.map_err(|status| self.refused(&status))?.into_inner();
        let failed = failed.into_iter().map(|msg::DrainFailure { node, why }| (node, why)).collect();
        Ok(Drained { acknowledged, failed })
    }

    /// The sessions of a linkd that are meant, an array of objects.
    pub async fn lookup(&mut self, target: Target) -> Result<Value, AdminError> {
        let target = match target {
            Target::Account(account) => msg::lookup_request::Target::Account(account.as_str().to_owned()),
            Target::LinkSid(sid) => msg::lookup_request::Target::LinkSid(sid.0),
        };
        let reply = self.stub.lookup(request(msg::LookupRequest { target: Some(target) })).await;
        let json = reply.map_err(|status| self.refused(&status))?.into_inner().json;
        self.read(&json)
    }

    /// The records of an arbiter that are waited for most, an array of objects.
    pub async fn locks(&mut self, count: u32) -> Result<Value, AdminError> {
        let reply = self.stub.locks(request(msg::LocksRequest { count })).await;
        let json = reply.map_err(|status| self.refused(&status))?.into_inner().json;
        self.read(&json)
    }

    /// Who holds a record of an arbiter and who waits for it. `key`: the table's id in 4 bytes, and the record's key.
    pub async fn record(&mut self, key: Vec<u8>) -> Result<Value, AdminError> {
        let reply = self.stub.record(request(msg::RecordRequest { key: key.into() })).await;
        let json = reply.map_err(|status| self.refused(&status))?.into_inner().json;
        self.read(&json)
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
