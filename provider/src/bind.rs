//! Dynamic modules: tying sessions to this provider and letting them go.

use std::sync::Arc;
use std::time::Duration;

use wire::code::{self, Code};
use wire::link::{self, BIND_SIDS_MAX, message};
use wire::node::Kind;

use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::links::LinkRef;
use crate::module::Descriptor;

const TIMEOUT: Duration = Duration::from_secs(5);

type Refused = Vec<(LinkRef, i32)>;

pub(crate) async fn bind(hub: &Arc<Hub>, module: &Descriptor, links: &[LinkRef]) -> Result<Refused> {
    let modules = vec![hub.describe(module)];
    let call = |link_sids| message::Bind { modules: modules.clone(), link_sids };
    each(hub, module, links, link::BIND, call).await
}

pub(crate) async fn unbind(hub: &Arc<Hub>, module: &Descriptor, links: &[LinkRef]) -> Result<Refused> {
    let call = |link_sids| message::UnBind { modules: vec![module.id], link_sids };
    each(hub, module, links, link::UNBIND, call).await
}

/// One call per connection and `BIND_SIDS_MAX` sessions.
async fn each<M: prost::Message>(
    hub: &Arc<Hub>,
    module: &Descriptor,
    links: &[LinkRef],
    kind: Kind,
    call: impl Fn(Vec<u64>) -> M,
) -> Result<Refused> {
    if !module.dynamic {
        let text = format!("module {} is static; the first request binds it", module.name);
        return Err(Error::framework(&code::NOT_OWNER, text));
    }
    let (groups, lost) = hub.conns.group(links);
    let mut refused: Refused = lost.into_iter().map(|link| (link, code::UNAVAILABLE.number)).collect();
    for (conn, sids) in groups.into_values() {
        let peer = &conn.link.peer;
        for chunk in sids.chunks(BIND_SIDS_MAX) {
            let message = call(chunk.iter().map(|sid| sid.0).collect());
            let result: message::BindResult = conn.link.call(kind, &message, TIMEOUT).await?;
            for (sid, code) in result.refused.iter().zip(&result.codes) {
                let (linkd, epoch) = (peer.node.clone(), peer.epoch);
                refused.push((LinkRef { linkd, epoch, sid: base::LinkSid(*sid) }, *code));
            }
        }
    }
    Ok(refused)
}

/// The outcome for a single session.
pub(crate) fn only(refused: &Refused) -> Result<()> {
    match refused.first() {
        None => Ok(()),
        Some((link, number)) => {
            let code = Code::find(*number).unwrap_or(&code::EXCEPTION);
            Err(Error::framework(code, format!("session {link}")))
        }
    }
}
