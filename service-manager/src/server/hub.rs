//! The loop that owns the core: sessions' messages in, actions out. Its queues are bounded both ways; a session that does
//! not read is closed and counted, and lists anew when it comes back.
//!
//! With a store, what one turn of the loop brought is saved at once, and nothing that the core said in it leaves before
//! that: nobody hears of what a crash could take back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::Generation;
use bytes::Bytes;
use node::Clock;
use parking_lot::Mutex;
use store::StoreError;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};
use wire::directory::from_directory::Kind;

use super::dialer::Dial;
use super::disk::Disk;
use super::outbox::{Outbox, encode};
use super::session::Input;
use crate::directory::{Action, Cause, Directory, Event, Save, Status};

/// How often the core looks at leases and probes.
const TICK: Duration = Duration::from_millis(100);
/// Ticks between two looks at the size of the store, which asks the file system.
const TICKS_PER_SIZE: u32 = 100;
/// Messages of one turn: they share one write to the disk.
const INPUTS_PER_TURN: usize = 256;
/// When what a turn has to say takes this much, it is said before the turn goes on.
const SAID_BYTES: usize = 1024 * 1024;

/// The core with its sessions' queues.
#[derive(Debug)]
pub(super) struct Hub {
    core: Directory,
    clock: Clock,
    open: BTreeMap<Generation, Open>,
    status: Arc<Mutex<Status>>,
    disk: Option<Disk>,
    /// Holds as many as the core has dialled at once.
    dials: mpsc::Sender<Dial>,
    /// What this turn must save before it says anything.
    saves: Vec<Save>,
    /// What it says, in order.
    said: VecDeque<Said>,
    said_bytes: usize,
}

#[derive(Debug)]
struct Open {
    outbox: Outbox,
    /// Ends the reading half with the writing one.
    _over: DropGuard,
}

#[derive(Debug)]
enum Said {
    /// The same bytes to each of these.
    Send(Vec<Generation>, Bytes),
    Close(Generation),
    Count(Cause),
}

impl Hub {
    pub fn new(core: Directory, clock: Clock, disk: Option<Disk>, dials: mpsc::Sender<Dial>) -> Self {
        let status = Arc::new(Mutex::new(core.status()));
        let (open, saves, said) = (BTreeMap::new(), Vec::new(), VecDeque::new());
        Self { core, clock, open, status, disk, dials, saves, said, said_bytes: 0 }
    }

    /// The core's numbers, at most one tick old.
    pub fn status(&self) -> Arc<Mutex<Status>> {
        self.status.clone()
    }

    /// Ends with `over`, or when the store has failed: what can't be saved may not be said.
    pub async fn run(
        mut self,
        mut inputs: mpsc::Receiver<Input>,
        over: CancellationToken,
    ) -> Result<(), StoreError> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut turn = Vec::with_capacity(INPUTS_PER_TURN);
        let mut ticks = 0u32;
        loop {
            tokio::select! {
                biased;
                () = over.cancelled() => return Ok(()),
                _ = tick.tick() => {
                    self.step(Event::Tick);
                    self.publish();
                    if ticks.is_multiple_of(TICKS_PER_SIZE) {
                        self.publish_size();
                    }
                    ticks = ticks.wrapping_add(1);
                }
                count = inputs.recv_many(&mut turn, INPUTS_PER_TURN) => match count {
                    0 => return Ok(()),
                    _ => for input in turn.drain(..) {
                        self.take(input);
                        if self.said_bytes > SAID_BYTES {
                            self.settle().await?;
                        }
                    }
                },
            }
            self.settle().await?;
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Opened { session, loopback, outbox, over } => {
                self.open.insert(session, Open { outbox, _over: over.drop_guard() });
                self.step(Event::Opened { session, loopback });
            }
            Input::Said { session, message } => self.step(Event::Said { session, message }),
            Input::Closed { session } => {
                self.open.remove(&session);
                self.step(Event::Closed { session });
            }
            Input::Dialled { node, name, address, failed } => {
                self.step(Event::Dialled { node, name, address, failed });
            }
            // Who asked may have given up.
            Input::Nodes { reply } => drop(reply.send(self.core.nodes())),
        }
    }

    fn step(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.core.step(self.clock.now(), event, &mut actions);
        if cfg!(debug_assertions) {
            self.core.check();
        }
        for action in actions {
            match action {
                Action::Save(save) => self.saves.push(save),
                // Never full, and without a dialler everything ends.
                Action::Dial { node, name, address } => {
                    drop(self.dials.try_send(Dial { node, name, address }));
                }
                Action::Send { session, message } => self.say(vec![session], message),
                Action::SendAll { sessions, message } => self.say(sessions, message),
                Action::Close { session } => self.said.push_back(Said::Close(session)),
                Action::Count(cause) => self.said.push_back(Said::Count(cause)),
            }
        }
    }

    fn say(&mut self, sessions: Vec<Generation>, message: Kind) {
        let bytes = encode(message);
        self.said_bytes += bytes.len();
        self.said.push_back(Said::Send(sessions, bytes));
    }

    /// Saves what the turn brought, then says what the core said.
    async fn settle(&mut self) -> Result<(), StoreError> {
        // Each further turn is the end of a session that did not read, so this ends.
        while !self.saves.is_empty() || !self.said.is_empty() {
            let saves = std::mem::take(&mut self.saves);
            if let Some(disk) = &self.disk
                && !saves.is_empty()
                && !base::planted::is("directory_answers_before_saving")
            {
                let began = std::time::Instant::now();
                disk.save(saves).await?;
                metrics::histogram!("linkstead_directory_save_seconds").record(began.elapsed().as_secs_f64());
            }
            self.said_bytes = 0;
            for said in std::mem::take(&mut self.said) {
                for slow in perform(&mut self.open, said) {
                    self.step(Event::Closed { session: slow });
                }
            }
        }
        Ok(())
    }

    fn publish_size(&self) {
        if let Some(disk) = &self.disk {
            metrics::gauge!("linkstead_directory_store_bytes").set(disk.size_bytes() as f64);
        }
    }

    fn publish(&self) {
        let status = self.core.status();
        metrics::gauge!("linkstead_directory_nodes").set(status.nodes as f64);
        metrics::gauge!("linkstead_directory_services").set(status.services as f64);
        metrics::gauge!("linkstead_directory_sessions").set(status.sessions as f64);
        metrics::gauge!("linkstead_directory_claims").set(status.claims as f64);
        metrics::gauge!("linkstead_directory_unreachable").set(status.unreachable as f64);
        metrics::gauge!("linkstead_directory_left_behind").set(status.left as f64);
        metrics::gauge!("linkstead_directory_revision").set(status.revision as f64);
        metrics::gauge!("linkstead_directory_warming").set(f64::from(u8::from(status.warming)));
        *self.status.lock() = status;
    }
}

/// Does what the core says; returns the sessions whose outbox was full.
fn perform(open: &mut BTreeMap<Generation, Open>, said: Said) -> Vec<Generation> {
    match said {
        Said::Send(sessions, bytes) => {
            sessions.into_iter().filter(|session| !send(open, *session, bytes.clone())).collect()
        }
        Said::Close(session) => {
            open.remove(&session);
            Vec::new()
        }
        Said::Count(cause) => {
            metrics::counter!("linkstead_directory_sessions_total", "cause" => cause.name()).increment(1);
            Vec::new()
        }
    }
}

/// Queues it; false: the outbox was full, which ends the session.
fn send(open: &mut BTreeMap<Generation, Open>, session: Generation, bytes: Bytes) -> bool {
    let Some(known) = open.get(&session) else { return true };
    if known.outbox.push(bytes).is_ok() {
        return true;
    }
    metrics::counter!("linkstead_directory_slow_total").increment(1);
    tracing::warn!(%session, "a session does not read; closing it");
    open.remove(&session);
    false
}

#[cfg(test)]
mod tests;
