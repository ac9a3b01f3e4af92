//! A module's protocols as typed constants, so that a client can't send one handler's message to another. The
//! `#[module]` macro writes them.

use std::marker::PhantomData;

use base::{ModuleId, ProtocolId, TypeId};

use crate::Level;

/// A request that is answered: `client.request(Rank::SUBMIT, SubmitScore { .. })`.
#[derive(Debug)]
pub struct Rpc<Request, Reply> {
    pub type_id: TypeId,
    pub name: &'static str,
    types: PhantomData<fn(Request) -> Reply>,
}

impl<Request, Reply> Rpc<Request, Reply> {
    pub const fn new(module: i32, protocol: i32, name: &'static str) -> Self {
        Self { type_id: TypeId::new(ModuleId(module), ProtocolId(protocol)), name, types: PhantomData }
    }
}

impl<Request, Reply> Clone for Rpc<Request, Reply> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Request, Reply> Copy for Rpc<Request, Reply> {}

/// A message of a client that nobody answers.
pub type Notify<Message> = Rpc<Message, ()>;

/// A message that providers push to clients. `#[module(pushes(…))]` implements it.
pub trait Push: prost::Message + Default {
    const TYPE_ID: TypeId;
    /// `Module.Message`, for logs.
    const NAME: &'static str;
    /// What is given up first when more is sent than a linkd's line carries.
    const LEVEL: Level = Level::Normal;
}
