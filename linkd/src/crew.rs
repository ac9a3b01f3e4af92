//! The workers of a linkd: where they run, and how others reach them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Generation, hash};
use net::NetIo;
use node::Home;
use tokio::sync::oneshot;

use crate::config::{Config, Handshake, ProxyProtocol};
use crate::counters::{Counters, Totals};
use crate::gateway::{Env, StartError};
use crate::mailbox::Mailbox;
use crate::router::{Judge, Rate, Rules};
use crate::worker::{self, Layers, Letter, Settings, Shared};

/// Letters that may wait for one worker.
const LETTERS_MAX: usize = 4_096;

/// One worker as other threads see it.
pub struct Hand<N: NetIo> {
    pub mailbox: Mailbox<Letter<N>>,
    pub counters: Arc<Counters>,
}

/// All workers of a linkd.
pub struct Crew<N: NetIo> {
    pub workers: Vec<Hand<N>>,
    generations: AtomicU64,
}

impl<N: NetIo> Crew<N> {
    pub fn least_loaded(&self) -> &Hand<N> {
        let least = self.workers.iter().min_by_key(|worker| worker.counters.sessions());
        // There is always at least one worker.
        least.unwrap_or(&self.workers[0])
    }

    pub fn generation(&self) -> Generation {
        Generation(self.generations.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for worker in &self.workers {
            worker.counters.add_to(&mut totals);
        }
        totals
    }
}

/// Each is told when a worker has ended; one whose worker panicked is dropped instead.
pub type Ends = Vec<oneshot::Receiver<()>>;

/// Starts the workers.
pub fn hire<N: NetIo>(
    net: &N,
    home: Home,
    config: &Config,
    env: &Env,
    shared: &Shared,
) -> Result<(Crew<N>, Ends), StartError> {
    let (mut workers, mut ends) = (Vec::new(), Vec::new());
    for index in 0..config.worker_count() {
        let (mailbox, counters) = (Mailbox::new(LETTERS_MAX), Arc::new(Counters::default()));
        let settings = settings(config, shared.gate.judge(), env, index as u8);
        let hand = Hand { mailbox: mailbox.clone(), counters: counters.clone() };
        let (net, shared, (ended, end)) = (net.clone(), shared.clone(), oneshot::channel());
        let work = move || worker::run(net, settings, shared, counters, mailbox);
        // Nobody listens any more when the linkd was dropped without a stop.
        let after = |()| {
            let _ = ended.send(());
        };
        home.run(&format!("{}-w{index}", env.node), work, after).map_err(StartError::Thread)?;
        workers.push(hand);
        ends.push(end);
    }
    Ok((Crew { workers, generations: AtomicU64::new(0) }, ends))
}

fn settings(config: &Config, judge: Judge, env: &Env, worker: u8) -> Settings {
    let rules = Rules {
        worker,
        region: config.region.clone(),
        narrow: config.narrow(),
        sessions_max: config.connections_max,
        auth_timeout: config.auth_timeout.span(),
        idle_timeout: config.idle_timeout.span(),
        judge,
        owed_max: config.in_flight_max,
        unauthed_frames_max: 2,
        frames: Rate::new(config.frames_per_second.into(), config.frames_burst.into()),
        bytes: Rate::new(config.bytes_per_second.0, config.bytes_burst.0),
        out_bytes_per_second: config.out_bytes_per_second.0.div_ceil(config.worker_count() as u64),
        broadcasts_max: config.broadcasts_max,
        broadcast_bytes_max: config.broadcast_max.bytes(),
        seed: hash::parts([env.node.as_str().as_bytes(), &[worker]]),
    };
    let layers = Layers {
        handshake_timeout: config.handshake_timeout.0,
        proxy: config.proxy_protocol == ProxyProtocol::Required,
        origins: config.websocket.origins(),
        message_bytes_max: config.websocket.message_max.0,
    };
    Settings {
        rules,
        layers,
        bounds: config.bounds(),
        frame_bytes_max: config.frame_max.bytes() as u32,
        out_bytes_max: config.out_queue_max.bytes(),
        frame_timeout: config.frame_timeout.0,
        write_timeout: config.write_timeout.0,
        greet: config.handshake == Handshake::First,
        tls: env.tls.clone(),
    }
}
