//! What the provider counts. Each number goes to the metrics recorder and can be read back for `/status`; none is
//! labelled by account, role or node.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::utils::CachePadded;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use serde_json::{Map, Value, json};
use wire::code::{self, Code};

/// A counter that can be read.
pub(crate) struct Count {
    exported: Counter,
    /// On a cache line of its own: every worker adds to it.
    value: CachePadded<AtomicU64>,
}

impl Count {
    fn new(exported: Counter) -> Self {
        Self { exported, value: CachePadded::default() }
    }

    pub fn add(&self, n: u64) {
        self.exported.increment(n);
        self.value.fetch_add(n, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

/// Why something was lost. Each has its own series of `linkstead_provider_dropped_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drop {
    /// A request of a session that never opened, or is gone.
    NotOpen,
    /// A request behind its session's end.
    Late,
    /// A request of a session that is being kicked.
    Kicked,
    /// A request that waited when the connection broke.
    LinkClosed,
    /// A reply for which the connection was gone.
    ReplyLinkClosed,
    /// A notify of a protocol that no module has.
    UnknownNotify,
    /// A notify whose body could not be read.
    BadNotify,
    /// A response: nobody here asked a client.
    Response,
    /// A payload without a readable head.
    BadPayload,
    /// A push to a linkd that is not connected, or has started anew since.
    PushNoLink,
    /// A push to a linkd that reads too slowly.
    PushFull,
    /// A second Opened, or the end of an unknown session.
    Ignored,
    /// A role that a transaction has set on a session that is over or can't be told.
    RoleNotSet,
}

const DROPS: [(Drop, &str); 13] = [
    (Drop::NotOpen, "not_open"),
    (Drop::Late, "late"),
    (Drop::Kicked, "kicked"),
    (Drop::LinkClosed, "link_closed"),
    (Drop::ReplyLinkClosed, "reply_link_closed"),
    (Drop::UnknownNotify, "unknown_notify"),
    (Drop::BadNotify, "bad_notify"),
    (Drop::Response, "response"),
    (Drop::BadPayload, "bad_payload"),
    (Drop::PushNoLink, "push_no_link"),
    (Drop::PushFull, "push_full"),
    (Drop::Ignored, "ignored"),
    (Drop::RoleNotSet, "role_not_set"),
];

/// Codes with which requests are refused before a handler saw them.
const REFUSALS: [&Code; 4] =
    [&code::BUSY, &code::SHUTTING_DOWN, &code::UNKNOWN_PROTOCOL, &code::DECODE_ERROR];

/// All of them.
pub(crate) struct Meters {
    pub requests: Count,
    /// Ended in their first poll, on the I/O worker.
    pub inline: Count,
    pub pooled: Count,
    /// Handlers that returned an error, panics included.
    pub errors: Count,
    pub panics: Count,
    pub pushes: Count,
    /// Times reading stopped because a linkd read too slowly.
    pub pauses: Count,
    pub logins: Count,
    /// Requests whose handler is a transaction, and was committed.
    pub commits: Count,
    /// Their runs that had to be made again.
    pub runs_again: Count,
    /// Those that were given up since others changed the same records each time.
    pub conflicts: Count,
    /// Those that were given up since their records did not come in time.
    pub timeouts: Count,
    pub wait: Histogram,
    pub sessions: Gauge,
    pub links: Gauge,
    dropped: [Count; DROPS.len()],
    refused: [Count; REFUSALS.len()],
}

impl Meters {
    /// Takes the handles from the recorder that is installed now.
    pub fn new() -> Self {
        let dropped = |(_, cause): (Drop, &'static str)| {
            Count::new(counter!("linkstead_provider_dropped_total", "cause" => cause))
        };
        let refused = |code: &'static Code| {
            Count::new(counter!("linkstead_provider_refused_total", "code" => code.name))
        };
        Self {
            requests: Count::new(counter!("linkstead_provider_requests_total")),
            inline: Count::new(counter!("linkstead_provider_inline_total")),
            pooled: Count::new(counter!("linkstead_provider_pooled_total")),
            errors: Count::new(counter!("linkstead_provider_handler_errors_total")),
            panics: Count::new(counter!("linkstead_provider_panics_total")),
            pushes: Count::new(counter!("linkstead_provider_pushes_total")),
            pauses: Count::new(counter!("linkstead_provider_read_pauses_total")),
            logins: Count::new(counter!("linkstead_provider_logins_total")),
            commits: Count::new(counter!("linkstead_records_commits_total")),
            runs_again: Count::new(counter!("linkstead_records_runs_again_total")),
            conflicts: Count::new(counter!("linkstead_records_conflicts_total")),
            timeouts: Count::new(counter!("linkstead_records_timeouts_total")),
            wait: histogram!("linkstead_provider_queue_wait_seconds"),
            sessions: gauge!("linkstead_provider_sessions"),
            links: gauge!("linkstead_provider_links"),
            dropped: DROPS.map(dropped),
            refused: REFUSALS.map(refused),
        }
    }

    pub fn dropped(&self, why: Drop) {
        self.dropped_many(why, 1);
    }

    pub fn dropped_many(&self, why: Drop, n: u64) {
        if let Some(at) = DROPS.iter().position(|(drop, _)| *drop == why) {
            self.dropped[at].add(n);
        }
    }

    pub fn refused(&self, code: &Code) {
        if let Some(at) = REFUSALS.iter().position(|known| known.number == code.number) {
            self.refused[at].add(1);
        }
    }

    /// Everything, for `/status`.
    pub fn json(&self) -> Value {
        let named = |names: &[&str], counts: &[Count]| {
            let pairs =
                names.iter().zip(counts).map(|(name, count)| ((*name).to_owned(), json!(count.get())));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        json!({
            "requests": self.requests.get(),
            "inline": self.inline.get(),
            "pooled": self.pooled.get(),
            "handler_errors": self.errors.get(),
            "panics": self.panics.get(),
            "pushes": self.pushes.get(),
            "read_pauses": self.pauses.get(),
            "logins": self.logins.get(),
            "commits": self.commits.get(),
            "runs_again": self.runs_again.get(),
            "conflicts": self.conflicts.get(),
            "timeouts": self.timeouts.get(),
            "dropped": named(&DROPS.map(|(_, cause)| cause), &self.dropped),
            "refused": named(&REFUSALS.map(|code| code.name), &self.refused),
        })
    }
}
