//! Module `Tavern`: guests come in. Static and placed by account, so that all of a guest's requests to static modules
//! reach one provider.

use std::collections::BTreeMap;

use linkstead::{Cx, LinkRef, Result, Role, module};
use parking_lot::Mutex;

use crate::messages::{Announce, Announced, Login, Welcome};
use crate::{KEEPER, codes};

/// Names that a login is told.
pub const ONLINE_SHOWN_MAX: usize = 50;

/// Who has logged in at this provider. As many as the gateways let in.
#[derive(Debug, Default)]
pub struct Tavern {
    guests: Mutex<BTreeMap<String, LinkRef>>,
}

#[module(id = 1, choice = "hash_account", pushes(Announced))]
impl Tavern {
    /// Comes in, or in again: the account's newest session counts.
    #[handler(level = "critical")]
    async fn login(&self, cx: &Cx, _request: Login) -> Result<Welcome> {
        let account = cx.account().as_str();
        // A guest plays one role, numbered by the name so that every session of the account plays the same.
        cx.set_role(Some(Role(base::hash::bytes(account.as_bytes()))))?;
        let mut guests = self.guests.lock();
        guests.insert(account.to_owned(), cx.link());
        let others = guests.keys().filter(|name| *name != account).take(ONLINE_SHOWN_MAX).cloned();
        Ok(Welcome { account: account.to_owned(), online: others.collect(), guests: guests.len() as u32 })
    }

    /// Speaks to every client of the cluster.
    #[handler]
    async fn announce(&self, cx: &Cx, request: Announce) -> Result<()> {
        if cx.account().as_str() != KEEPER {
            return Err(codes::refuse(codes::NOT_KEEPER));
        }
        codes::check_text(&request.text).map_err(codes::refuse)?;
        cx.broadcast(&Announced { text: request.text });
        Ok(())
    }

    /// The session is over. A newer one of the same account stays.
    #[on_broken]
    async fn gone(&self, cx: &Cx) {
        let mut guests = self.guests.lock();
        if guests.get(cx.account().as_str()) == Some(&cx.link()) {
            guests.remove(cx.account().as_str());
        }
    }
}
