//! Ending a session at its linkd, again and again until that linkd has confirmed it or can't be alive any more.

use std::sync::Arc;
use std::time::Duration;

use net::calls::CallError;
use net::dial::Backoff;
use tokio::time::Instant;
use wire::code;
use wire::link::{self, message};

use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::links::LinkRef;
use crate::sessions::Event;

/// How long one try waits for its answer.
const TRY: Duration = Duration::from_secs(2);
/// A linkd that was not seen for as long as its lease at the directory has no sessions.
const LEASE: Duration = Duration::from_secs(15);

pub(crate) async fn kick(hub: &Arc<Hub>, link: &LinkRef, code: i32, text: &str) -> Result<()> {
    let (hub_, link) = (hub.clone(), link.clone());
    let kick = message::Kick { link_sid: link.sid.0, code, text: text.to_owned(), report_only: false };
    // The task goes on when the caller stops waiting: a kick once begun is not forgotten.
    let task = hub.spawn(async move { repeat(&hub_, &link, &kick).await });
    task.await
        .unwrap_or_else(|_| Err(Error::framework(&code::SHUTTING_DOWN, "the provider stopped meanwhile")))
}

async fn repeat(hub: &Arc<Hub>, link: &LinkRef, kick: &message::Kick) -> Result<()> {
    let until = Instant::now() + LEASE;
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1), link.sid.0);
    loop {
        let failed = match hub.conns.find(link) {
            Ok(conn) => {
                conn.step(Event::Kicked { sid: link.sid });
                match conn.link.call::<()>(link::KICK, kick, TRY).await {
                    Ok(()) => return Ok(()),
                    // Gone is what was asked for.
                    Err(CallError::Refused(refusal)) if refusal.code == code::UNKNOWN_SESSION.number => {
                        return Ok(());
                    }
                    Err(error @ CallError::Refused(_)) => return Err(error.into()),
                    Err(error) => Error::from(error),
                }
            }
            Err(Error::Framework { code, .. }) if code.number == code::UNKNOWN_SESSION.number => {
                return Ok(());
            }
            Err(error) => error,
        };
        let next = Instant::now() + backoff.wait();
        if next > until {
            return Err(failed);
        }
        tokio::time::sleep_until(next).await;
    }
}
