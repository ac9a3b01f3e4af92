//! Module `Guests`: what one guest does to another. Each request is routed by the other's account, and that hashes as
//! `hash_account` does: it arrives at the provider where that guest's own requests go, so the guest is found there.

use linkstead::{Account, Cx, LinkRef, Result, module};

use crate::messages::{Kick, Whisper, Whispered};
use crate::{KEEPER, codes};

#[derive(Debug)]
pub struct Guests;

#[module(id = 3, dynamic, choice = "hash_account", pushes(Whispered))]
impl Guests {
    /// Only the one it is for hears it.
    #[handler(route_by = 1)]
    async fn whisper(&self, cx: &Cx, request: Whisper) -> Result<()> {
        codes::check_text(&request.text).map_err(codes::refuse)?;
        let to = find(cx, &request.to)?;
        cx.push_to(&to, &Whispered { from: cx.account().to_string(), text: request.text })
    }

    /// Ends a guest's session; an answer means that it has ended.
    #[handler(route_by = 1)]
    async fn kick(&self, cx: &Cx, request: Kick) -> Result<()> {
        if cx.account().as_str() != KEEPER {
            return Err(codes::refuse(codes::NOT_KEEPER));
        }
        let guest = find(cx, &request.account)?;
        cx.kick_link(&guest, codes::SHOWN_OUT, codes::text(codes::SHOWN_OUT)).await
    }
}

fn find(cx: &Cx, account: &str) -> Result<LinkRef> {
    let account = Account::new(account).ok();
    account.and_then(|account| cx.online().account(&account)).ok_or_else(|| codes::refuse(codes::NOT_HERE))
}
