//! Handlers that are transactions: their changes and what they send happen together, or nothing of it does.
//!
//! | module | is |
//! |---|---|
//! | [`effects`] | what is sent when it is committed |
//! | [`drive`] | runs a handler until it is done |
//! | [`once`] | a request that is sent again is answered again, and not done again |

pub(crate) mod drive;
mod effects;
mod once;

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use base::{Account, AppVersion, Role, ServerId};
use parking_lot::Mutex;

use crate::Push;
use crate::broadcast::Audience;
use crate::cx::Cx;
use crate::links::LinkRef;
use effects::{Effect, Effects};
pub(crate) use once::Done;

/// One run of a handler that is a transaction. It may run again, so its code has no effects but those of this type: they
/// happen once, after the commit, in the order in which they were said, and before the reply. See [`tables::Tx`] for what a
/// transaction can do beside it, and [`Table`](crate::Table) for reading and writing.
///
/// ```
/// use linkstead::{Error, Record, Result, Table, Tx, module};
///
/// #[derive(Clone, PartialEq, prost::Message, Record)]
/// #[record(table = "score", id = 101, key = String)]
/// pub struct Score { #[prost(uint64, tag = "1")] pub best: u64 }
/// #[derive(Clone, PartialEq, prost::Message)]
/// pub struct Submit { #[prost(uint64, tag = "1")] pub score: u64 }
/// #[derive(Clone, PartialEq, prost::Message)]
/// pub struct NewBest { #[prost(uint64, tag = "1")] pub best: u64 }
///
/// pub struct Rank { scores: Table<String, Score> }
///
/// #[module(id = 7, choice = "hash_account", pushes(NewBest))]
/// impl Rank {
///     #[handler]
///     async fn submit(&self, tx: &mut Tx, request: Submit) -> Result<()> {
///         let account = tx.account().as_str().to_owned();
///         let score = self.scores.get_or_default(tx, &account)?;
///         if request.score > score.best {
///             score.best = request.score;
///             tx.push(&NewBest { best: request.score });
///         }
///         Ok(())
///     }
/// }
/// # fn main() { linkstead::provider("rank").module(|setup| Ok(Rank { scores: setup.table()? })); }
/// ```
pub struct Tx {
    inner: Inner,
    cx: Cx,
    slot: Slot,
}

/// The run of a transaction and what it has said.
pub(crate) struct Inner {
    /// Taken out only while it is given back.
    tx: Option<tables::Tx>,
    effects: Effects,
}

/// Where a run is left when its handler has ended, whichever way.
pub(crate) type Slot = Arc<Mutex<Option<Inner>>>;

impl Tx {
    pub(crate) fn new(tx: tables::Tx, cx: Cx, slot: Slot) -> Self {
        Self { inner: Inner { tx: Some(tx), effects: Effects::default() }, cx, slot }
    }

    /// Who logged in on this session; never changes.
    pub fn account(&self) -> &Account {
        self.cx.account()
    }

    /// The role played now, or as [`set_role`](Self::set_role) will have it.
    pub fn role(&self) -> Option<Role> {
        self.inner.effects.role().unwrap_or_else(|| self.cx.role())
    }

    /// Where this session is, to be kept and sent to later.
    pub fn link(&self) -> LinkRef {
        self.cx.link()
    }

    /// The client's address as its linkd sees it, `host:port`.
    pub fn client_addr(&self) -> &str {
        self.cx.client_addr()
    }

    /// The client's version; 0.0.0.0 when it did not say.
    pub fn app_version(&self) -> AppVersion {
        self.cx.app_version()
    }

    /// This provider's number.
    pub fn server_id(&self) -> ServerId {
        self.cx.server_id()
    }

    /// Logs a role in on this session, or out with `None`: before everything else that this transaction says.
    pub fn set_role(&mut self, role: Option<Role>) {
        self.inner.effects.set_role(role);
    }

    /// Sends to this session. What can't be sent then is counted, as with [`Cx::push`].
    pub fn push<P: Push>(&mut self, push: &P) {
        let links = vec![self.cx.link()];
        self.inner.effects.add(Effect::push(links, push));
    }

    /// Sends to another session.
    pub fn push_to<P: Push>(&mut self, link: &LinkRef, push: &P) {
        self.inner.effects.add(Effect::push(vec![link.clone()], push));
    }

    /// Sends to many sessions.
    pub fn push_all<P: Push>(&mut self, links: &[LinkRef], push: &P) {
        self.inner.effects.add(Effect::push(links.to_vec(), push));
    }

    /// Sends to every client of this audience.
    pub fn broadcast<P: Push>(&mut self, audience: Audience, push: &P) {
        self.inner.effects.add(Effect::broadcast(audience, push));
    }

    /// Ends a session, of this handler or another. See [`Links::kick`](crate::Links::kick).
    pub fn kick(&mut self, link: &LinkRef, code: i32, text: &str) {
        self.inner.effects.add(Effect::Kick { link: link.clone(), code, text: text.to_owned() });
    }

    /// Begins a task after the commit, with everything that a handler outside of transactions can do. Nobody waits for it.
    pub fn after<F>(&mut self, task: impl FnOnce(Cx) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.inner.effects.add(Effect::Task(Box::new(move |cx| Box::pin(task(cx)))));
    }

    /// Runs `part`, whose changes, and what it says, are kept if it succeeds and undone if it fails.
    pub fn nested<T, E>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let (savepoint, said) = (self.savepoint(), self.inner.effects.mark());
        let result = part(self);
        if result.is_ok() {
            self.keep(savepoint);
        } else {
            self.rollback(savepoint);
            self.inner.effects.back(said);
        }
        result
    }
}

impl Deref for Tx {
    type Target = tables::Tx;

    #[expect(clippy::expect_used, reason = "it is taken out in `drop` only")]
    fn deref(&self) -> &tables::Tx {
        self.inner.tx.as_ref().expect("a run has a transaction until it is dropped")
    }
}

impl DerefMut for Tx {
    #[expect(clippy::expect_used, reason = "it is taken out in `drop` only")]
    fn deref_mut(&mut self) -> &mut tables::Tx {
        self.inner.tx.as_mut().expect("a run has a transaction until it is dropped")
    }
}

impl Drop for Tx {
    /// Also when the handler has panicked: whether that was its own doing is to be seen from what it has read.
    fn drop(&mut self) {
        let (tx, effects) = (self.inner.tx.take(), std::mem::take(&mut self.inner.effects));
        *self.slot.lock() = Some(Inner { tx, effects });
    }
}
