//! What a module is to the framework: its description and its handlers. `#[module]` writes the implementation.

use std::future::Future;
use std::sync::Arc;

use base::{ModuleId, ProtocolId, TypeId};
use prost::Message;
use wire::code;
use wire::link::message;
use wire::{Level, Rpc};

use crate::answer::Answer;
use crate::config::ModuleConfig;
use crate::cx::Cx;
use crate::error::{Error, Result};
use crate::job::Work;
use crate::tx::Tx;
use crate::tx::drive::{Ended, Way, drive};

/// A numbered group of protocols that gateways route to a provider. Written by `#[module]`.
pub trait Module: Send + Sync + Sized + 'static {
    /// What is announced to every gateway.
    const DESCRIPTOR: Descriptor;

    /// Puts each handler into the table.
    fn handlers(handlers: &mut Handlers<Self>);
}

/// What a module says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor {
    /// Unique in the cluster.
    pub id: i32,
    /// What its protocols are called, and what `[provider.modules.NAME]` names.
    pub name: &'static str,
    /// How a gateway picks a provider, unless the configuration says otherwise.
    pub choice: &'static str,
    /// Bound only by [`Cx::bind`](crate::Cx::bind).
    pub dynamic: bool,
    /// The package that implements it; two packages can't share one module.
    pub package: &'static str,
    /// One per handler.
    pub protocols: &'static [Protocol],
    /// Name and protocol id of each message it pushes.
    pub pushes: &'static [(&'static str, i32)],
}

/// One handler as gateways and the dispatch table see it.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    pub id: i32,
    /// `Module.handler`.
    pub name: &'static str,
    /// The number of the request's field by whose value it is routed; 0 is none.
    pub route_by: u32,
    /// What is given up first when there is too much.
    pub level: Level,
    /// May overlap with the session's other requests.
    pub parallel: bool,
    /// The client expects no answer.
    pub notify: bool,
    /// The name of the request's type, without its path.
    pub request: &'static str,
    /// The name of the reply's type, without its path; empty for `()`.
    pub reply: &'static str,
}

impl Descriptor {
    /// Two projects that implement one module differ in it; two versions of one do not.
    pub fn contract(&self) -> u64 {
        base::hash::parts([&self.id.to_le_bytes()[..], self.name.as_bytes(), self.package.as_bytes()])
    }

    /// The lines of `protocols.lock`, unsorted.
    pub fn lock_lines(&self) -> impl Iterator<Item = String> + '_ {
        let handlers = self.protocols.iter().map(|protocol| (protocol.name, protocol.id));
        handlers.chain(self.pushes.iter().copied()).map(|(name, id)| format!("{name} {}:{id}", self.id))
    }

    /// As it is announced.
    pub(crate) fn message(&self, config: Option<&ModuleConfig>, queue_max: usize) -> message::Module {
        let protocol = |protocol: &Protocol| message::Protocol {
            id: protocol.id,
            name: protocol.name.to_owned(),
            route_by: protocol.route_by,
            level: protocol.level as u32,
        };
        let choice = config.and_then(|config| config.choice);
        message::Module {
            id: self.id,
            name: self.name.to_owned(),
            dynamic: self.dynamic,
            choice: choice.map_or(self.choice, |choice| choice.as_str()).to_owned(),
            contract: self.contract(),
            protocols: self.protocols.iter().map(protocol).collect(),
            queue_max: u32::try_from(queue_max).unwrap_or(u32::MAX),
        }
    }
}

/// What a request, a reply or a push may be: anything that derives `prost::Message`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't travel between a client and a handler",
    label = "not a protobuf message",
    note = "derive it: `#[derive(Clone, PartialEq, prost::Message)]`, each field with `#[prost(…, tag = \"…\")]`"
)]
pub trait Payload: Message + Default + 'static {}

#[diagnostic::do_not_recommend]
impl<M: Message + Default + 'static> Payload for M {}

/// Begins one request: reads the body where it was received and builds the work that ends with the answer.
pub(crate) type Start = Box<dyn Fn(Cx, Answer, &[u8]) -> Result<Work, prost::DecodeError> + Send + Sync>;
/// Runs when a session is over.
pub(crate) type Hook = Arc<dyn Fn(Cx) -> Work + Send + Sync>;

/// One row of the dispatch table.
pub(crate) struct Entry {
    pub type_id: TypeId,
    pub protocol: &'static Protocol,
    pub start: Start,
}

/// The handlers of one module, as `#[module]` lists them.
pub struct Handlers<M> {
    module: Arc<M>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) hook: Option<Hook>,
    /// Some handlers are transactions.
    pub(crate) transactional: bool,
}

impl<M: Module> Handlers<M> {
    pub(crate) fn of(module: M) -> Self {
        let mut handlers =
            Self { module: Arc::new(module), entries: Vec::new(), hook: None, transactional: false };
        M::handlers(&mut handlers);
        handlers
    }

    /// Adds a handler, which gives the session back with its result: the reply needs it.
    pub fn request<Q, A, F, R>(&mut self, protocol: &'static Protocol, _rpc: Rpc<Q, A>, handler: F)
    where
        Q: Payload,
        A: Payload,
        F: Fn(Arc<M>, Cx, Q) -> R + Send + Sync + Copy + 'static,
        R: Future<Output = (Cx, Result<A>)> + Send + 'static,
    {
        let type_id = TypeId::new(ModuleId(M::DESCRIPTOR.id), ProtocolId(protocol.id));
        let module = self.module.clone();
        let start: Start = Box::new(move |cx, answer, body| {
            let request = Q::decode(body)?;
            let module = module.clone();
            Ok(Box::pin(async move {
                let (cx, result) = handler(module, cx, request).await;
                if let Err(unsent) = answer.finish(&cx, protocol, result) {
                    // In a box of its own: every request carries the room for what is written here.
                    Box::pin(answer.wait(&cx, unsent)).await;
                }
            }))
        });
        self.entries.push(Entry { type_id, protocol, start });
    }

    /// Adds a handler that is a transaction. `once`: the request's field that says which request it is, if it is done once.
    pub fn transaction<Q, A, F, R>(
        &mut self,
        protocol: &'static Protocol,
        once: u32,
        _rpc: Rpc<Q, A>,
        handler: F,
    ) where
        Q: Payload,
        A: Payload,
        F: Fn(Arc<M>, Tx, Q) -> R + Send + Sync + Copy + 'static,
        R: Future<Output = Result<A>> + Send + 'static,
    {
        let type_id = TypeId::new(ModuleId(M::DESCRIPTOR.id), ProtocolId(protocol.id));
        let module = self.module.clone();
        let way = Way { once, protocol: protocol.name };
        let start: Start = Box::new(move |cx, answer, body| {
            let mut first = Some(Q::decode(body)?);
            let (module, body) = (module.clone(), body.to_vec());
            Ok(Box::pin(async move {
                let run = |tx| {
                    // The first run has what was decoded to see whether it can be.
                    let request = first.take().map_or_else(|| Q::decode(body.as_slice()), Ok)?;
                    Ok(handler(module.clone(), tx, request))
                };
                let result = match drive(&cx, way, &body, run).await {
                    Ended::Ran(result) => result,
                    Ended::Before(reply) => A::decode(reply.as_slice()).map_err(|error| {
                        Error::framework(
                            &code::EXCEPTION,
                            format!("a reply that was kept can't be read: {error}"),
                        )
                    }),
                };
                if let Err(unsent) = answer.finish(&cx, protocol, result) {
                    Box::pin(answer.wait(&cx, unsent)).await;
                }
            }))
        });
        self.entries.push(Entry { type_id, protocol, start });
        self.transactional = true;
    }

    /// Adds what runs after the last request of a session that ended.
    pub fn broken<F, R>(&mut self, handler: F)
    where
        F: Fn(Arc<M>, Cx) -> R + Send + Sync + Copy + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let module = self.module.clone();
        self.hook = Some(Arc::new(move |cx| Box::pin(handler(module.clone(), cx))));
    }
}
