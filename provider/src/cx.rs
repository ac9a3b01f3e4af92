//! What a handler knows of the session it serves, and what it can do about it.

use std::sync::Arc;

use base::{Account, AppVersion, Role, ServerId};
use wire::payload::Head;

use crate::broadcast::{Audience, Reached};
use crate::error::{Error, Result};
use crate::links::{LinkRef, Links};
use crate::meters::Drop;
use crate::module::Module;
use crate::online::Online;
use crate::session::Session;
use crate::{Push, send};

/// The session a request came from. Cheap to clone, and a clone may outlive the request.
///
/// What a handler sends leaves at once and in the order it was said, all of it before the reply, which is last.
///
/// ```
/// use linkstead::{Cx, Error, Result, Role, module};
///
/// #[derive(Clone, PartialEq, prost::Message)]
/// pub struct Enter { #[prost(uint64, tag = "1")] pub role: u64 }
/// #[derive(Clone, PartialEq, prost::Message)]
/// pub struct Welcome { #[prost(string, tag = "1")] pub text: String }
///
/// pub struct Hall;
///
/// #[module(id = 5, choice = "hash_account", pushes(Welcome))]
/// impl Hall {
///     #[handler]
///     async fn enter(&self, cx: &Cx, request: Enter) -> Result<()> {
///         if request.role == 0 {
///             return Err(Error::code(1, "choose a role"));
///         }
///         cx.set_role(Some(Role(request.role)))?;
///         cx.push(&Welcome { text: format!("welcome, {}", cx.account()) })
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Cx {
    session: Arc<Session>,
}

impl Cx {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Who logged in on this session; never changes.
    pub fn account(&self) -> &Account {
        &self.session.account
    }

    /// The role played now, as this or another provider set it last.
    pub fn role(&self) -> Option<Role> {
        self.session.role()
    }

    /// The client's address as its linkd sees it, `host:port`.
    pub fn client_addr(&self) -> &str {
        &self.session.client_addr
    }

    /// The client's version; 0.0.0.0 when it did not say.
    pub fn app_version(&self) -> AppVersion {
        self.session.app_version
    }

    /// Where this session is, to be kept and sent to later.
    pub fn link(&self) -> LinkRef {
        self.session.link()
    }

    /// Why the session ended: 0 when the client closed it, else a number of the code registry. `None` while it lives;
    /// in `#[on_broken]` there is always one.
    pub fn end(&self) -> Option<i32> {
        self.session.end()
    }

    /// Sends to this session. `Ok` means queued. Errors, with nothing sent: `UNAVAILABLE` (its linkd is gone), `BUSY`
    /// (the linkd reads too slowly).
    pub fn push<P: Push>(&self, push: &P) -> Result<()> {
        let conn = &self.session.conn;
        let sent = send::to_one(
            conn,
            self.session.sid,
            P::TYPE_ID,
            Head::PROTOCOL,
            P::LEVEL,
            send::Body::Message(push),
        );
        let meters = &conn.hub.meters;
        match sent {
            Ok(()) => meters.pushes.add(1),
            Err(net::outbox::NotQueued::Full { .. }) => meters.dropped(Drop::PushFull),
            Err(net::outbox::NotQueued::Closed) => meters.dropped(Drop::PushNoLink),
        }
        sent.map_err(Error::from)
    }

    /// See [`Links::push_to`].
    pub fn push_to<P: Push>(&self, link: &LinkRef, push: &P) -> Result<()> {
        self.links().push_to(link, push)
    }

    /// See [`Links::push_all`].
    pub fn push_all<P: Push>(&self, links: &[LinkRef], push: &P) -> usize {
        self.links().push_all(links, push)
    }

    /// See [`Links::broadcast`].
    pub fn broadcast<P: Push>(&self, push: &P) -> usize {
        self.links().broadcast(push)
    }

    /// See [`Links::broadcast_to`].
    pub fn broadcast_to<P: Push>(&self, audience: Audience, push: &P) -> usize {
        self.links().broadcast_to(audience, push)
    }

    /// See [`Links::broadcast_counted`].
    pub async fn broadcast_counted<P: Push>(&self, audience: Audience, push: &P) -> Reached {
        self.links().broadcast_counted(audience, push).await
    }

    /// Ends this session. See [`Links::kick`].
    pub async fn kick(&self, code: i32, text: &str) -> Result<()> {
        self.kick_link(&self.link(), code, text).await
    }

    /// Ends another session. See [`Links::kick`].
    pub async fn kick_link(&self, link: &LinkRef, code: i32, text: &str) -> Result<()> {
        self.links().kick(link, code, text).await
    }

    /// Logs a role in on this session, or out with `None`. Every linkd decision and provider that sees a later message of
    /// this session sees the new role. Errors: `UNKNOWN_SESSION` when the session is over, `BUSY`, `UNAVAILABLE`.
    pub fn set_role(&self, role: Option<Role>) -> Result<()> {
        self.session.set_role(role)
    }

    /// Binds dynamic module `M` to this provider for this session. Errors: what the linkd refuses with, such as
    /// `UNKNOWN_SESSION` or `NOT_OWNER`.
    pub async fn bind<M: Module>(&self) -> Result<()> {
        let refused = self.links().bind::<M>(&[self.link()]).await?;
        crate::bind::only(&refused)
    }

    /// Undoes [`bind`](Self::bind).
    pub async fn unbind<M: Module>(&self) -> Result<()> {
        let refused = self.links().unbind::<M>(&[self.link()]).await?;
        crate::bind::only(&refused)
    }

    /// Who is here, at this provider.
    pub fn online(&self) -> &Online {
        &self.session.conn.hub.online
    }

    /// For sending later, from outside a handler.
    pub fn links(&self) -> Links {
        Links(self.session.conn.hub.clone())
    }

    /// This provider's number.
    pub fn server_id(&self) -> ServerId {
        self.session.conn.hub.identity.server_id
    }
}
