//! What linkds say of sessions: whom a push missed, and who is still there.

use std::sync::Arc;
use std::time::Duration;

use base::LinkSid;
use bytes::BytesMut;
use wire::Level;
use wire::link::{self, BIND_SIDS_MAX, SEND_SIDS_MAX, message};
use wire::node::Meta;

use crate::conn::Conn;
use crate::error::Error;
use crate::hub::Hub;
use crate::links::{Checked, LinkRef};
use crate::meters::Drop;

const TIMEOUT: Duration = Duration::from_secs(5);

fn refs(conn: &Conn, sids: impl IntoIterator<Item = u64>) -> impl Iterator<Item = LinkRef> {
    sids.into_iter().map(|sid| conn.link_ref(LinkSid(sid)))
}

/// Sends to many sessions and answers those it did not reach.
pub(crate) async fn push(hub: &Arc<Hub>, links: &[LinkRef], level: Level, frame: BytesMut) -> Vec<LinkRef> {
    let frame = frame.freeze();
    let (groups, mut missed) = hub.conns.group(links);
    hub.meters.dropped_many(Drop::PushNoLink, missed.len() as u64);
    for (conn, sids) in groups.into_values() {
        for chunk in sids.chunks(SEND_SIDS_MAX) {
            let head: Vec<u8> = chunk.iter().flat_map(|sid| sid.0.to_le_bytes()).collect();
            let meta = Meta::notice(link::SEND).at(level);
            match conn.link.call_with::<message::SendResult>(meta, &head, &frame, TIMEOUT).await {
                Ok(result) => {
                    hub.meters.pushes.add(chunk.len().saturating_sub(result.missed.len()) as u64);
                    missed.extend(refs(&conn, result.missed));
                }
                Err(_) => {
                    hub.meters.dropped_many(Drop::PushFull, chunk.len() as u64);
                    missed.extend(refs(&conn, chunk.iter().map(|sid| sid.0)));
                }
            }
        }
    }
    missed
}

/// Asks each linkd about its sessions.
pub(crate) async fn check(hub: &Arc<Hub>, links: &[LinkRef]) -> Checked {
    let mut checked = Checked::default();
    let mut asked = Vec::new();
    for link in links {
        match hub.conns.find(link) {
            Ok(_) => asked.push(link.clone()),
            // Its linkd has started anew.
            Err(Error::Framework { code, .. }) if code.number == wire::code::UNKNOWN_SESSION.number => {
                checked.gone.push(link.clone());
            }
            Err(_) => checked.unknown.push(link.clone()),
        }
    }
    let (groups, lost) = hub.conns.group(&asked);
    checked.unknown.extend(lost);
    for (conn, sids) in groups.into_values() {
        for chunk in sids.chunks(BIND_SIDS_MAX) {
            let check = message::Check { link_sids: chunk.iter().map(|sid| sid.0).collect() };
            match conn.link.call::<message::CheckResult>(link::CHECK, &check, TIMEOUT).await {
                Ok(result) => checked.gone.extend(refs(&conn, result.gone)),
                Err(_) => checked.unknown.extend(refs(&conn, check.link_sids)),
            }
        }
    }
    checked
}
