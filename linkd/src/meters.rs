//! What monitoring sees: the workers' counters, carried over once a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, gauge};
use net::NetIo;

use crate::admission::Door;
use crate::counters::Totals;
use crate::crew::Crew;

const EVERY: Duration = Duration::from_secs(1);

/// Carries over until the task is dropped.
pub async fn keep<N: NetIo>(crew: Arc<Crew<N>>, door: Door) {
    let mut meters = Meters::default();
    loop {
        meters.carry(crew.totals(), door.turned());
        tokio::time::sleep(EVERY).await;
    }
}

/// What was carried over already. Only the difference is added: several linkds in one process share each series.
#[derive(Debug, Default)]
struct Meters {
    totals: Totals,
    turned: BTreeMap<&'static str, u64>,
}

impl Meters {
    fn carry(&mut self, now: Totals, turned: BTreeMap<&'static str, u64>) {
        let before = std::mem::replace(&mut self.totals, now);
        let now = &self.totals;
        let by_transport = |name, all: u64, ws: u64, all_before: u64, ws_before: u64| {
            counter!(name, "transport" => "tcp").increment((all - ws) - (all_before - ws_before));
            counter!(name, "transport" => "websocket").increment(ws - ws_before);
        };
        let (all, ws) = (now.accepted, now.websocket_accepted);
        let accepted = "linkstead_linkd_accepted_total";
        by_transport(accepted, all, ws, before.accepted, before.websocket_accepted);
        let inside = |transport, now: u64, before: u64| {
            gauge!("linkstead_linkd_sessions", "transport" => transport)
                .increment(now as f64 - before as f64);
        };
        let tcp = |totals: &Totals| totals.sessions - totals.websocket_sessions;
        inside("tcp", tcp(now), tcp(&before));
        inside("websocket", now.websocket_sessions, before.websocket_sessions);
        counter!("linkstead_linkd_frames_in_total").increment(now.frames_in - before.frames_in);
        counter!("linkstead_linkd_frames_out_total").increment(now.frames_out - before.frames_out);
        counter!("linkstead_linkd_dispatched_total").increment(now.dispatched - before.dispatched);
        let grown = |map: &BTreeMap<&'static str, u64>, before: &BTreeMap<&'static str, u64>| {
            let grown =
                |(&name, &n): (&&'static str, &u64)| (name, n - before.get(name).copied().unwrap_or(0));
            map.iter().map(grown).collect::<Vec<_>>()
        };
        for (code, n) in grown(&now.refused_by, &before.refused_by) {
            counter!("linkstead_linkd_refused_total", "code" => code).increment(n);
        }
        for (cause, n) in grown(&now.dropped, &before.dropped) {
            counter!("linkstead_linkd_dropped_total", "cause" => cause).increment(n);
        }
        for (code, n) in grown(&now.closed_by, &before.closed_by) {
            counter!("linkstead_linkd_closed_total", "code" => code).increment(n);
        }
        for (cause, n) in grown(&turned, &self.turned) {
            counter!("linkstead_linkd_turned_away_total", "cause" => cause).increment(n);
        }
        self.turned = turned;
    }
}
