//! To everybody: one frame for each worker of each linkd, which hands it to its clients in turns.

use std::sync::Arc;
use std::time::Duration;

use base::{AppVersion, NodeId};
use bytes::BytesMut;
use wire::Level;
use wire::link::{self, message};
use wire::node::Meta;

use crate::conn::Conn;
use crate::error::Error;
use crate::hub::Hub;
use crate::meters::Drop;
use crate::send;

/// How long a worker may take to hand a broadcast to all its clients.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Which clients a broadcast is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audience {
    #[default]
    Everybody,
    /// Clients whose version has the same first number as this provider's, and those that state none.
    SameVersion,
}

/// What became of a broadcast.
#[derive(Debug, Clone, Default)]
pub struct Reached {
    /// Sessions it was queued for.
    pub sent: u64,
    /// Sessions that did not get it, because their linkd sends more than it may.
    pub shed: u64,
    /// Workers of linkds that did not take it, and why: `LIMIT` (too large), `BUSY` (too many at once), `TIMEOUT` and
    /// `UNAVAILABLE` (some of their clients may have got it).
    pub failed: Vec<(NodeId, Error)>,
}

impl Audience {
    fn version(self, hub: &Hub) -> AppVersion {
        match self {
            Audience::Everybody => AppVersion(0),
            Audience::SameVersion => hub.config.version(),
        }
    }
}

/// Sends and forgets. Answers for how many workers it was queued.
pub(crate) fn cast(hub: &Hub, audience: Audience, level: Level, frame: &[u8]) -> usize {
    let version = audience.version(hub);
    let sent = |conn: &Arc<Conn>| match send::to_all(conn, version, level, frame) {
        Ok(()) => true,
        Err(_) => {
            hub.meters.dropped(Drop::PushFull);
            false
        }
    };
    hub.conns.announced().iter().filter(|conn| sent(conn)).count()
}

/// Sends and waits until every worker has said what became of it.
pub(crate) async fn count(hub: &Arc<Hub>, audience: Audience, level: Level, frame: BytesMut) -> Reached {
    let (version, frame) = (audience.version(hub), frame.freeze());
    let (mut reached, mut asked) = (Reached::default(), Vec::new());
    for conn in hub.conns.announced() {
        let (node, frame) = (conn.link.peer.node.clone(), frame.clone());
        let meta = Meta::notice(link::BROADCAST).at(level);
        let asking = async move {
            let head = version.0.to_le_bytes();
            conn.link.call_with::<message::BroadcastResult>(meta, &head, &frame, TIMEOUT).await
        };
        asked.push((node, hub.spawn(asking)));
    }
    for (node, answer) in asked {
        match answer.await {
            Ok(Ok(message::BroadcastResult { sent, shed })) => {
                reached.sent += sent;
                reached.shed += shed;
            }
            Ok(Err(error)) => reached.failed.push((node, error.into())),
            Err(_) => {
                let text = "the provider stopped meanwhile";
                reached.failed.push((node, Error::framework(&wire::code::SHUTTING_DOWN, text)));
            }
        }
    }
    reached
}
