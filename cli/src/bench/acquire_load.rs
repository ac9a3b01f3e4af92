//! The load of `bench acquire`: one or two sessions at an arbiter that ask again as soon as they are answered, all on one
//! thread.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use base::{Epoch, Fence, Mono, NodeId};
use bytes::Bytes;
use net::{Security, Tcp};
use node::Clock;
use node::config::{NodeConfig, Time};
use parking_lot::Mutex;
use tables::arbiter::client::{Client, Env, Place};
use tables::{Arbiter, Hear, Heard, Mode, Word};
use tokio::sync::Notify;

use super::load::Measured;
use super::process;
use super::tally::{Pace, Tally};

/// A load that takes so much longer than it is to run has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// One run of the load.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    #[arg(value_enum)]
    pub shape: Shape,
    /// The arbiter.
    #[arg(long)]
    pub addr: String,
    #[command(flatten)]
    pub pace: Pace,
    /// Ask for so many records and hold them all, instead of for a time.
    #[arg(long)]
    pub total: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// One session asks to change records that nobody holds.
    Modify,
    /// One session, and all that is outstanding at a time in one message.
    Many,
    /// Two sessions read each record, one after the other.
    Share,
    /// Two sessions take each record from one another.
    Pingpong,
}

impl Shape {
    fn sessions(self) -> u64 {
        match self {
            Self::Modify | Self::Many => 1,
            Self::Share | Self::Pingpong => 2,
        }
    }

    fn mode(self) -> Mode {
        if self == Self::Share { Mode::Share } else { Mode::Modify }
    }

    /// Which session makes this request, and for which record. Requests of one slot are a window apart.
    fn place(self, request: u64, window: u64) -> (usize, u64) {
        let (turn, slot) = (request / window, request % window);
        match self {
            Self::Modify | Self::Many => (0, request),
            Self::Share => ((turn % 2) as usize, turn / 2 * window + slot),
            Self::Pingpong => ((turn % 2) as usize, slot),
        }
    }
}

/// An arbiter in memory mode that grants from the first moment on, until the process is killed.
pub async fn serve_arbiter(listen: SocketAddr) -> Result<()> {
    let config = global_cache::Config { listen, grace: Some(Time::secs(0)), ..Default::default() };
    let (cluster, node) = (NodeConfig::default().cluster, NodeId::new("global-cache-1")?);
    let env = global_cache::Env { cluster, node, epoch: Epoch(1), security: Security::Insecure };
    let server = global_cache::start(&config, env).await?;
    process::say_ready(&server.addr.to_string());
    std::future::pending().await
}

/// A way to the arbiter at this address, as a start of its own of this node.
pub fn client(addr: &str, node: &str, clock: Clock) -> Result<Client> {
    let (cluster, node) = (NodeConfig::default().cluster, NodeId::new(node)?);
    let (security, epoch) = (Security::Insecure, Epoch(node::clock::unix_micros()));
    let place = Place::Listed(vec![addr.to_owned()]);
    Ok(Client::new(Env { cluster, node, epoch, security, clock, storages: Vec::new(), place }))
}

/// Runs the plan on this thread's runtime.
pub async fn run(plan: &Plan) -> Result<Measured> {
    tokio::task::LocalSet::new().run_until(measure(plan)).await
}

async fn measure(plan: &Plan) -> Result<Measured> {
    let load = Arc::new(Load::new(plan)?);
    let began = Instant::now();
    let sessions = plan.shape.sessions();
    let clients: Result<Vec<Client>> =
        (1..=sessions).map(|number| client(&plan.addr, &format!("load-{number}"), Clock::start())).collect();
    let clients = load.clients.get_or_init(|| clients.unwrap_or_default());
    if clients.is_empty() {
        bail!("no sessions");
    }
    for (session, client) in clients.iter().enumerate() {
        client.start_over(Tcp, Arc::new(Ear { load: load.clone(), session }))?;
    }
    let longest = Duration::from_millis(plan.pace.warm_ms + plan.pace.measure_ms) + PATIENCE;
    let ended = tokio::time::timeout(longest, load.ended.notified()).await;
    let failed = load.state.lock().failed.take();
    if let Some(failed) = failed {
        bail!(failed);
    }
    ended.map_err(|_| anyhow!("the load did not come to its end"))?;
    if let Some(total) = plan.total {
        let rate = total as f64 / began.elapsed().as_secs_f64();
        process::say_ready(&rate.to_string());
        std::future::pending::<()>().await;
    }
    for client in clients {
        client.leave().await;
    }
    Ok(load.state.lock().tally.measured())
}

struct Load {
    plan: Plan,
    clients: OnceLock<Vec<Client>>,
    state: Mutex<State>,
    ended: Notify,
}

struct State {
    tally: Tally,
    /// When each slot last asked.
    sent: Vec<Instant>,
    /// Keys of this run begin here, so that they are nobody's from a run before.
    first_key: u64,
    opened: u64,
    granted: u64,
    /// Of `Many`: what the present message still waits for.
    due: usize,
    /// What each session says next.
    said: [Vec<Word>; 2],
    failed: Option<&'static str>,
}

impl Load {
    fn new(plan: &Plan) -> Result<Self> {
        let window = plan.pace.window;
        let state = State {
            tally: Tally::new(&plan.pace)?,
            sent: vec![Instant::now(); window],
            // More apart than one microsecond grants records.
            first_key: node::clock::unix_micros() << 8,
            opened: 0,
            granted: 0,
            due: window,
            said: Default::default(),
            failed: None,
        };
        Ok(Self {
            plan: plan.clone(),
            clients: OnceLock::new(),
            state: Mutex::new(state),
            ended: Notify::new(),
        })
    }

    fn window(&self) -> u64 {
        self.plan.pace.window as u64
    }

    fn ask(&self, state: &mut State, request: u64, now: Instant) {
        let (session, number) = self.plan.shape.place(request, self.window());
        let key = key(state.first_key.wrapping_add(number));
        let key = Bytes::copy_from_slice(&key);
        state.sent[(request % self.window()) as usize] = now;
        state.said[session].push(Word::Ask { request, want: self.plan.shape.mode(), have: 0, key });
    }

    /// The request was answered: the next of its slot, unless it is over.
    fn go_on(&self, state: &mut State, request: u64, now: Instant) {
        state.granted += 1;
        let over = match self.plan.total {
            Some(total) => state.granted >= total,
            None => state.tally.is_over(now),
        };
        if over {
            return self.ended.notify_one();
        }
        let next = request + self.window();
        if self.plan.total.is_some_and(|total| next >= total) {
            return;
        }
        if self.plan.shape != Shape::Many {
            return self.ask(state, next, now);
        }
        state.due -= 1;
        if state.due == 0 {
            state.due = self.plan.pace.window;
            let first = next - next % self.window();
            (first..first + self.window()).for_each(|request| self.ask(state, request, now));
        }
    }

    /// Says what there is. What the session that was heard says leaves by itself.
    fn say(&self, state: &mut State, heard: Option<usize>) {
        for (session, client) in self.clients.get().into_iter().flatten().enumerate() {
            if state.said[session].is_empty() {
                continue;
            }
            client.say(&mut state.said[session]);
            if heard != Some(session) {
                client.send();
            }
        }
    }

    fn fail(&self, why: &'static str) {
        self.state.lock().failed.get_or_insert(why);
        self.ended.notify_one();
    }
}

/// Twelve bytes: a table's number and a key of 64 bits.
fn key(number: u64) -> [u8; 12] {
    let mut key = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

struct Ear {
    load: Arc<Load>,
    session: usize,
}

impl Hear for Ear {
    fn heard(&self, words: &mut Vec<Heard>) {
        let load = &*self.load;
        let mut state = load.state.lock();
        let now = Instant::now();
        for word in words.drain(..) {
            match word {
                Heard::Granted { request, .. } => {
                    let began = state.sent[(request % load.window()) as usize];
                    state.tally.note(began, now);
                    load.go_on(&mut state, request, now);
                }
                Heard::Denied { request, .. } => {
                    state.tally.errors += 1;
                    load.go_on(&mut state, request, now);
                }
                Heard::Reduce { record, seq, to, .. } => {
                    state.said[self.session].push(Word::Reduced { record, seq, to, flushed: 0 });
                }
                Heard::Reasserted { .. } => {}
            }
        }
        load.say(&mut state, Some(self.session));
    }

    fn opened(&self, _epoch: Epoch, _fence: Fence, _until: Mono) {
        let load = &*self.load;
        let mut state = load.state.lock();
        state.opened += 1;
        if state.opened == load.plan.shape.sessions() {
            let now = Instant::now();
            (0..load.window()).for_each(|request| load.ask(&mut state, request, now));
            load.say(&mut state, None);
        }
    }

    fn reopened(&self, _epoch: Epoch, _fence: Fence) -> Vec<Word> {
        self.load.fail("the arbiter was started anew");
        Vec::new()
    }

    fn resumed(&self) {
        self.load.fail("a connection was lost");
    }

    fn extended(&self, _until: Mono) {}

    fn released(&self) {}

    fn lost(&self) {
        self.load.fail("a session was lost");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sessions_take_turns_at_the_records_of_their_slots() {
        let places = |shape: Shape| (0..6).map(|request| shape.place(request, 2)).collect::<Vec<_>>();
        assert_eq!(places(Shape::Modify), [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
        assert_eq!(places(Shape::Share), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3)]);
        assert_eq!(places(Shape::Pingpong), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0), (0, 1)]);
    }
}
