//! A request that is sent again is answered again, and not done again: its result stands in a table, written in the
//! transaction that did it.
//!
//! The request says which of its account's requests it is, by a number that grows. Each account has as many places as a
//! window has results, and a request's place is its number modulo that: so looking and writing touch one record, and an
//! account never has more.

use prost::Message;
use tables::{Record, Table};
use wire::{code, skim};

use super::drive::Way;
use crate::cx::Cx;
use crate::error::{Error, Result};

/// Results that are kept of each account.
const RESULTS_MAX: u64 = base::request::RESULTS_MAX as u64;

/// The last result in one place of an account.
#[derive(Clone, PartialEq, prost::Message, Record)]
#[record(crate = "tables", table = "_once", id = 0xF000_0002, key = (String, u64), durability = "sync")]
pub(crate) struct Done {
    /// Which request.
    #[prost(fixed64, tag = "1")]
    pub request: u64,
    /// What it said.
    #[prost(fixed64, tag = "2")]
    pub digest: u64,
    /// What it was answered.
    #[prost(bytes = "vec", tag = "3")]
    pub reply: Vec<u8>,
}

/// One request that is done once.
pub(super) struct Once {
    table: Table<(String, u64), Done>,
    place: (String, u64),
    request: u64,
    digest: u64,
}

/// What is known of it.
pub(super) enum Seen {
    New,
    Before(Vec<u8>),
}

/// `None`: the handler may be done again. Errors: the request does not say which it is.
pub(super) fn of(way: Way, cx: &Cx, body: &[u8]) -> Result<Option<Once>> {
    if way.once == 0 {
        return Ok(None);
    }
    let hub = &cx.session().conn.hub;
    let (Ok(Some(skim::Key::Number(request @ 1..))), Some(table)) =
        (skim::field(body, way.once), hub.once.get())
    else {
        let text = format!("field {} of {} says which request it is: 1 or more", way.once, way.protocol);
        return Err(Error::framework(&code::DECODE_ERROR, text));
    };
    let account = format!("{}\u{0}{}", cx.account().as_str(), way.protocol);
    let digest = base::hash::parts([way.protocol.as_bytes(), body]);
    let place = (account, request % RESULTS_MAX);
    Ok(Some(Once { table: table.clone(), place, request, digest }))
}

impl Once {
    pub fn look(&self, tx: &mut tables::Tx) -> Result<Seen> {
        let Some(done) = self.table.get(tx, &self.place)? else { return Ok(Seen::New) };
        if done.request < self.request {
            return Ok(Seen::New);
        }
        if done.request > self.request {
            let text = format!("request {} is older than what is remembered", self.request);
            return Err(Error::framework(&code::RESYNC_REQUIRED, text));
        }
        if done.digest != self.digest {
            let text = format!("request {} said something else before", self.request);
            return Err(Error::framework(&code::ID_CONFLICT, text));
        }
        Ok(Seen::Before(done.reply.clone()))
    }

    pub fn record(&self, tx: &mut tables::Tx, reply: &impl Message) -> Result<()> {
        let done = Done { request: self.request, digest: self.digest, reply: reply.encode_to_vec() };
        Ok(self.table.put(tx, &self.place, done)?)
    }
}
