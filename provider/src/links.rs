//! The gateways this provider is connected to, and how to reach a session through them from anywhere.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::{Epoch, LinkSid, NodeId};

use crate::broadcast::{self, Audience, Reached};
use crate::counted;
use crate::disable::{self, Acknowledged};
use crate::error::Result;
use crate::hub::Hub;
use crate::kick;
use crate::meters::Drop;
use crate::module::Module;
use crate::{Push, bind, send};

/// One client session, for ever: a linkd's start never uses a link sid twice, and another start has another epoch. Keep
/// it in memory as long as you like; sending to a session that is gone does nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkRef {
    /// The gateway that holds the connection.
    pub linkd: NodeId,
    /// Which start of it.
    pub epoch: Epoch,
    pub sid: LinkSid,
}

impl fmt::Display for LinkRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.linkd, self.epoch, self.sid)
    }
}

/// Reaches sessions from outside a handler: timers, tasks, other threads. Cheap to clone; get it from
/// [`Setup::links`](crate::Setup::links) or [`Cx::links`](crate::Cx::links).
///
/// ```no_run
/// # #[derive(Clone, PartialEq, prost::Message)] struct Tick {}
/// # impl linkstead::Push for Tick {
/// #     const TYPE_ID: linkstead::private::TypeId = linkstead::private::type_id(1, 1);
/// #     const NAME: &'static str = "Clock.Tick";
/// # }
/// # async fn example(links: linkstead::Links, guest: linkstead::LinkRef) -> linkstead::Result<()> {
/// links.push_to(&guest, &Tick {})?;
/// links.kick(&guest, 3, "closing time").await?;
/// links.broadcast(&Tick {});
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Links(pub(crate) Arc<Hub>);

impl Links {
    /// Sends to one session. `Ok` means queued on its linkd's connection. Errors, with nothing sent: `UNAVAILABLE` (no
    /// connection to that linkd), `UNKNOWN_SESSION` (that linkd has started anew), `BUSY` (it reads too slowly).
    pub fn push_to<P: Push>(&self, link: &LinkRef, push: &P) -> Result<()> {
        let meters = &self.0.meters;
        let conn = self.0.conns.find(link).inspect_err(|_| meters.dropped(Drop::PushNoLink))?;
        let head = wire::payload::Head::PROTOCOL;
        send::to_one(&conn, link.sid, P::TYPE_ID, head, P::LEVEL, send::Body::Message(push))
            .inspect_err(|_| meters.dropped(Drop::PushFull))?;
        meters.pushes.add(1);
        Ok(())
    }

    /// Sends to many sessions, encoding once. Answers for how many it was queued; the rest is counted under
    /// `linkstead_provider_dropped_total`.
    pub fn push_all<P: Push>(&self, links: &[LinkRef], push: &P) -> usize {
        self.send_all(links, P::LEVEL, &send::whole(P::TYPE_ID, push))
    }

    /// As [`push_all`](Self::push_all), of what is a client's frame already.
    pub(crate) fn send_all(&self, links: &[LinkRef], level: wire::Level, frame: &[u8]) -> usize {
        let mut queued = 0;
        let (groups, lost) = self.0.conns.group(links);
        for (conn, sids) in groups.values() {
            let sent = send::to_many(conn, sids, level, frame);
            self.0.meters.dropped_many(Drop::PushFull, (sids.len() - sent) as u64);
            queued += sent;
        }
        self.0.meters.dropped_many(Drop::PushNoLink, lost.len() as u64);
        self.0.meters.pushes.add(queued as u64);
        queued
    }

    /// Sends to every client of every connected linkd, whoever serves it. Answers for how many workers of linkds it was
    /// queued; a linkd has at least one.
    pub fn broadcast<P: Push>(&self, push: &P) -> usize {
        self.broadcast_to(Audience::Everybody, push)
    }

    /// As [`broadcast`](Self::broadcast), to the clients of this audience.
    pub fn broadcast_to<P: Push>(&self, audience: Audience, push: &P) -> usize {
        broadcast::cast(&self.0, audience, P::LEVEL, &send::whole(P::TYPE_ID, push))
    }

    /// As [`broadcast_to`](Self::broadcast_to), and waits until each worker of each linkd has said what became of it.
    pub async fn broadcast_counted<P: Push>(&self, audience: Audience, push: &P) -> Reached {
        broadcast::count(&self.0, audience, P::LEVEL, send::whole(P::TYPE_ID, push)).await
    }

    /// As [`push_all`](Self::push_all), and waits until the linkds have said whom it did not reach: sessions that are
    /// gone, whose linkd can't be reached or takes no more. A client that reads too slowly is closed instead, which is
    /// heard as the end of its session.
    pub async fn push_counted<P: Push>(&self, links: &[LinkRef], push: &P) -> Vec<LinkRef> {
        counted::push(&self.0, links, P::LEVEL, send::whole(P::TYPE_ID, push)).await
    }

    /// Asks the linkds whether these sessions are still there, to clean up after those that are not.
    pub async fn check(&self, links: &[LinkRef]) -> Checked {
        counted::check(&self.0, links).await
    }

    /// Closes this provider to new players, or opens it again: from the acknowledgement of a linkd on it sends nobody
    /// new here; who is here stays. Waits for all connected linkds, at most `timeout` (more than 5 s are 5 s), and says
    /// who has not answered; ask again then.
    pub async fn set_disabled(&self, disabled: bool, timeout: Duration) -> Acknowledged {
        disable::set(&self.0, disabled, timeout.min(Duration::from_secs(5))).await
    }

    /// Ends a session: the client receives `code` and `text`, and nothing of the session runs here any more. It is
    /// repeated until its linkd has confirmed it or can hold the session no more (it has started anew, or its lease at the
    /// directory is over). Returns then; fails with `UNAVAILABLE` after 15 s, and with `BUSY` when too many kicks wait.
    /// The kick goes on, also when this future is dropped.
    pub async fn kick(&self, link: &LinkRef, code: i32, text: &str) -> Result<()> {
        kick::kick(&self.0, link, code, text).await
    }

    /// Binds dynamic module `M` to this provider for these sessions: their requests to it come here until unbound.
    /// Answers the sessions for which nothing was done, each with a number of the code registry.
    pub async fn bind<M: Module>(&self, links: &[LinkRef]) -> Result<Vec<(LinkRef, i32)>> {
        bind::bind(&self.0, &M::DESCRIPTOR, links).await
    }

    /// Undoes [`bind`](Self::bind).
    pub async fn unbind<M: Module>(&self, links: &[LinkRef]) -> Result<Vec<(LinkRef, i32)>> {
        bind::unbind(&self.0, &M::DESCRIPTOR, links).await
    }
}

/// What a [`Links::check`] found. Those that are in neither list are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// These have ended and never come back.
    pub gone: Vec<LinkRef>,
    /// Nobody knows: their linkd can't be reached.
    pub unknown: Vec<LinkRef>,
}
