//! Tickets: the signature here, the single use at the directory. A ticket is consumed before its session is logged in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base::LinkSid;
use node::directory::{Claim, ClaimError};
use node::{Directory, files};
use parking_lot::Mutex;
use wire::code::{self, Code};
use wire::ticket::{Expect, Hex, KEY_FILE_BYTES_MAX, Key, Keys, Ticket};

use super::{Begun, Judgement};
use crate::router::Proof;

/// How long the directory has to decide who was first.
const CLAIM: Duration = Duration::from_secs(3);

/// Where used tickets are remembered.
#[derive(Debug)]
pub enum Replay {
    /// One memory for all linkds.
    Directory { directory: Directory, node: String },
    /// This linkd's own: a ticket can be used once at each linkd, and again after a restart.
    Local(Arc<Used>),
}

/// What was used once, for as long as it could be used again.
#[derive(Debug)]
pub struct Used {
    used_max: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    used: BTreeSet<String>,
    due: BTreeMap<u64, Vec<String>>,
}

impl Used {
    pub fn new(used_max: usize) -> Self {
        Self { used_max, table: Mutex::default() }
    }

    fn first(&self, now_unix: u64, key: String, seconds: u64) -> Result<(), &'static Code> {
        let mut table = self.table.lock();
        while let Some(over) = table.due.first_entry().filter(|over| *over.key() <= now_unix) {
            for key in over.remove() {
                table.used.remove(&key);
            }
        }
        if table.used.contains(&key) {
            return Err(&code::TICKET_REPLAYED);
        }
        // Never forgotten to make room: that would make it good again.
        if table.used.len() >= self.used_max {
            return Err(&code::BUSY);
        }
        table.used.insert(key.clone());
        table.due.entry(now_unix + seconds).or_default().push(key);
        Ok(())
    }
}

impl Replay {
    /// Consumes what is called `key`, once. A session that asks again for itself is not refused.
    pub fn consume(&self, sid: LinkSid, key: String, now_unix: u64, seconds: u64) -> Consumed {
        if base::planted::is("ticket_not_consumed") {
            return Consumed::Here(Ok(()));
        }
        match self {
            Self::Local(used) => Consumed::Here(used.first(now_unix, key, seconds)),
            Self::Directory { directory, node } => {
                let value = format!("{node} {} {sid}", directory.current_epoch().0).into_bytes();
                let ttl = Duration::from_secs(seconds);
                Consumed::There(directory.clone(), Claim { key, value, ttl, outlives_node: true })
            }
        }
    }
}

/// Decided, or to be decided by the directory.
pub enum Consumed {
    Here(Result<(), &'static Code>),
    There(Directory, Claim),
}

impl Consumed {
    /// Lets `judgement` in if it was the first.
    pub fn then(self, judgement: Judgement) -> Begun {
        match self {
            Self::Here(Ok(())) => Begun::Judged(judgement),
            Self::Here(Err(code)) => code.into(),
            Self::There(directory, claim) => Begun::Waits(Box::pin(async move {
                match directory.claim(claim, CLAIM).await {
                    Ok(()) => judgement,
                    Err(ClaimError::Taken) => Err(&code::TICKET_REPLAYED),
                    Err(ClaimError::Refused { name, text }) => {
                        tracing::error!(code = name, text, "the directory refuses to consume a ticket");
                        Err(&code::AUTH_REFUSED)
                    }
                    // Without the directory nobody knows whether the ticket was used: better nobody comes in.
                    Err(ClaimError::NotNow | ClaimError::Unknown | ClaimError::Full) => Err(&code::BUSY),
                }
            })),
        }
    }
}

/// Judges tickets.
#[derive(Debug)]
pub struct Tickets {
    /// What tickets must be made for: the cluster's name.
    audience: String,
    paths: Vec<PathBuf>,
    /// Keys that are in no file.
    given: Vec<Key>,
    keys: ArcSwap<Keys>,
    replay: Replay,
}

impl Tickets {
    /// `Err`: which file, and why.
    pub fn new(
        audience: String,
        paths: Vec<PathBuf>,
        given: Vec<Key>,
        replay: Replay,
    ) -> Result<Self, String> {
        let keys = load(&paths, &given)?;
        Ok(Self { audience, paths, given, keys: ArcSwap::from_pointee(keys), replay })
    }

    pub fn begin(&self, sid: LinkSid, proof: &Proof) -> Begun {
        let now_unix = node::clock::unix_seconds();
        let expect = Expect {
            now_unix,
            audience: &self.audience,
            app: proof.app_version,
            account: proof.account.as_ref(),
        };
        match Ticket::verify(proof.token.expose(), &self.keys.load(), expect) {
            Ok(ticket) => {
                let (key, seconds) =
                    (format!("ticket/{}", Hex(&ticket.id)), ticket.remembered_seconds(now_unix));
                self.replay.consume(sid, key, now_unix, seconds).then(Ok(ticket.account))
            }
            Err(error) => error.code().into(),
        }
    }

    pub fn reload(&self) {
        match load(&self.paths, &self.given) {
            Ok(keys) if keys == **self.keys.load() => {}
            Ok(keys) => {
                tracing::info!(kids = ?keys.kids().collect::<Vec<_>>(), "ticket keys were read anew");
                self.keys.store(Arc::new(keys));
            }
            Err(why) => bad_reload(&why),
        }
    }
}

/// The old keys stay; somebody must look.
pub fn bad_reload(why: &str) {
    metrics::counter!("linkstead_linkd_auth_key_reload_failures_total").increment(1);
    tracing::error!(why, "keys could not be read anew; those before stay in use");
}

fn load(paths: &[PathBuf], given: &[Key]) -> Result<Keys, String> {
    let read = |path: &PathBuf| {
        let at = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let text = files::read(path, KEY_FILE_BYTES_MAX).map_err(|error| at(&error))?;
        Key::parse(&String::from_utf8_lossy(&text)).map_err(|error| at(&error))
    };
    let mut keys = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    keys.extend(given.iter().cloned());
    Keys::new(keys).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: BI-021.
    #[test]
    fn a_local_memory_refuses_the_second_use_and_at_its_bound_everybody() {
        let used = Used::new(2);
        let first = |now, key: &str| used.first(now, key.to_owned(), 10).map_err(|code| code.name);
        assert_eq!((first(100, "a"), first(100, "a")), (Ok(()), Err("TICKET_REPLAYED")));
        assert_eq!((first(101, "b"), first(101, "c")), (Ok(()), Err("BUSY")));
        assert_eq!((first(109, "a"), first(110, "c")), (Err("TICKET_REPLAYED"), Ok(())));
    }
}
