//! The loop that owns the core: sessions' messages in, actions out. Its queues are bounded both ways; a session that does
//! not read is closed and counted, and lists anew when it comes back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Generation;
use node::Clock;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status as TonicStatus;
use wire::directory as msg;

use super::session::Input;
use crate::directory::{Action, Directory, Event, Status};

/// How often the core looks at leases and probes.
const TICK: Duration = Duration::from_millis(100);

/// The core with its sessions' queues.
#[derive(Debug)]
pub(super) struct Hub {
    core: Directory,
    clock: Clock,
    outboxes: BTreeMap<Generation, Outbox>,
    status: Arc<Mutex<Status>>,
}

#[derive(Debug)]
struct Outbox {
    to: mpsc::Sender<Result<msg::FromDirectory, TonicStatus>>,
    /// Ends the reading half with the writing one.
    _over: DropGuard,
}

impl Hub {
    pub fn new(core: Directory, clock: Clock) -> Self {
        let status = Arc::new(Mutex::new(core.status()));
        Self { core, clock, outboxes: BTreeMap::new(), status }
    }

    /// The core's numbers, at most one tick old.
    pub fn status(&self) -> Arc<Mutex<Status>> {
        self.status.clone()
    }

    pub async fn run(mut self, mut inputs: mpsc::Receiver<Input>, over: CancellationToken) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = over.cancelled() => return,
                _ = tick.tick() => {
                    self.step(Event::Tick);
                    self.publish();
                }
                input = inputs.recv() => match input {
                    Some(input) => self.take(input),
                    None => return,
                },
            }
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Opened { session, outbox, over } => {
                self.outboxes.insert(session, Outbox { to: outbox, _over: over.drop_guard() });
                self.step(Event::Opened { session });
            }
            Input::Said { session, message } => self.step(Event::Said { session, message }),
            Input::Closed { session } => {
                self.outboxes.remove(&session);
                self.step(Event::Closed { session });
            }
            // Who asked may have given up.
            Input::Nodes { reply } => drop(reply.send(self.core.nodes())),
        }
    }

    fn step(&mut self, event: Event) {
        let now = self.clock.now();
        let mut events = vec![event];
        let mut actions = Vec::new();
        // Each further event is the end of a session that did not read, so this ends.
        while let Some(event) = events.pop() {
            self.core.step(now, event, &mut actions);
            for action in actions.drain(..) {
                if let Some(slow) = perform(&mut self.outboxes, action) {
                    events.push(Event::Closed { session: slow });
                }
            }
        }
        if cfg!(debug_assertions) {
            self.core.check();
        }
    }

    fn publish(&self) {
        let status = self.core.status();
        metrics::gauge!("linkstead_directory_nodes").set(status.nodes as f64);
        metrics::gauge!("linkstead_directory_services").set(status.services as f64);
        metrics::gauge!("linkstead_directory_sessions").set(status.sessions as f64);
        metrics::gauge!("linkstead_directory_claims").set(status.claims as f64);
        metrics::gauge!("linkstead_directory_revision").set(status.revision as f64);
        metrics::gauge!("linkstead_directory_warming").set(f64::from(u8::from(status.warming)));
        *self.status.lock() = status;
    }
}

/// Does what the core says; returns the session whose queue was full.
fn perform(outboxes: &mut BTreeMap<Generation, Outbox>, action: Action) -> Option<Generation> {
    match action {
        Action::Send { session, message } => {
            let message = Ok(msg::FromDirectory { kind: Some(message) });
            let sent = outboxes.get(&session)?.to.try_send(message);
            if matches!(sent, Err(mpsc::error::TrySendError::Full(_))) {
                metrics::counter!("linkstead_directory_slow_total").increment(1);
                tracing::warn!(%session, "a session does not read; closing it");
                outboxes.remove(&session);
                return Some(session);
            }
            // A closed queue is a client that went away: its reading half reports it.
            None
        }
        Action::Close { session } => {
            outboxes.remove(&session);
            None
        }
        Action::Count(cause) => {
            metrics::counter!("linkstead_directory_sessions_total", "cause" => cause.name()).increment(1);
            None
        }
    }
}

#[cfg(test)]
mod tests;
