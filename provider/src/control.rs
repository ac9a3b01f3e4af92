//! The control thread: follows the list of linkds, measures and reports load, and carries out a stop. It runs no
//! handler, so it goes on when the workers are swamped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use node::{Directory, Pass, Shutdown};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::dial::Target;
use crate::disable;
use crate::hub::Hub;
use crate::kick;
use crate::kicks;
use crate::linkds::{self, Key, Linkd, Linkds};
use crate::load::{self, Load};
use crate::sessions::Event;

/// Between two looks at the load.
const LOOK: Duration = Duration::from_millis(200);
/// Looks between two probes of the pool.
const LOOKS_PER_PROBE: u32 = 5;
/// How long a linkd has to answer a Disable.
const DISABLE: Duration = Duration::from_millis(500);

/// What the control thread holds.
pub(crate) struct Control {
    pub hub: Arc<Hub>,
    pub linkds: watch::Receiver<Arc<Vec<Linkd>>>,
    pub workers: Vec<mpsc::Sender<Target>>,
    pub ended: mpsc::Receiver<Key>,
    pub wanted: watch::Sender<BTreeSet<Key>>,
    pub shutdown: Shutdown,
    /// Held while requests are served, so that the drain waits for them.
    pub pass: Pass,
    pub directory: Option<Directory>,
    /// How long a stop waits for hooks and for what was cut off, and then for what is committed to be written.
    pub settle: Duration,
    /// Cancelled from outside: stop without waits.
    pub cancel: CancellationToken,
}

/// Until the provider has stopped.
pub(crate) async fn control(control: Control) -> Result<(), node::shutdown::StopError> {
    let Control { hub, linkds, workers, ended, wanted, shutdown, pass, directory, settle, cancel } = control;
    let stop_dialling = CancellationToken::new();
    let following =
        tokio::task::spawn_local(follow(hub.clone(), linkds, workers, ended, wanted, stop_dialling.clone()));
    let measuring = tokio::task::spawn_local(measure(hub.clone(), directory.clone()));
    let hurrying = tokio::task::spawn_local(hurry(shutdown.clone(), cancel));
    let ending =
        tokio::task::spawn_local(end_when_outlived(hub.clone(), directory.clone(), shutdown.clone()));
    let disabling = tokio::task::spawn_local(shut(hub.clone(), shutdown.stopping()));
    let close = || async {
        // In a short stop nothing else waits for linkds to know; in a long one they have known for a while.
        let _ = disabling.await;
        drain(&hub);
        tokio::task::spawn_local(hold_until_idle(hub.clone(), pass));
    };
    let save = || async {
        measuring.abort();
        stop_dialling.cancel();
        hub.goodbye.cancel();
        // Ends when the last connection has.
        let _ = following.await;
        // Sessions that ended with their connections still have their hooks to run. What the drain has cut off never
        // ends by itself, and the directory must hear of us in any case.
        if tokio::time::timeout(settle, hub.settled()).await.is_err() {
            tracing::warn!(in_flight = hub.in_flight(), "handlers are cut off");
        }
        if let Some(records) = hub.records.get()
            && tokio::time::timeout(settle, records.end()).await.is_err()
        {
            tracing::error!(records = %records.json(), "committed records could not be written in time and are lost");
        }
        if let Some(directory) = &directory {
            directory.leave().await;
        }
        Ok(())
    };
    let stopped = shutdown.run(close, save).await;
    hurrying.abort();
    ending.abort();
    stopped
}

/// Stops the provider when another start of its node was admitted: linkds refuse this one's epoch, so dialling on would
/// never end and serve nobody.
async fn end_when_outlived(hub: Arc<Hub>, directory: Option<Directory>, shutdown: Shutdown) {
    let told = async {
        match &directory {
            Some(directory) => directory.outlived().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = hub.outlived.cancelled() => {}
        () = told => {}
    }
    hub.outlived.cancel();
    let node = &hub.identity.node;
    tracing::error!(%node, "another start of this node was admitted since; this one stops, start it again");
    shutdown.stop();
}

/// Keeps a connection to each worker of each linkd. After `stop` it only waits for the last of them to end.
async fn follow(
    hub: Arc<Hub>,
    mut linkds: watch::Receiver<Arc<Vec<Linkd>>>,
    workers: Vec<mpsc::Sender<Target>>,
    mut ended: mpsc::Receiver<Key>,
    wanted: watch::Sender<BTreeSet<Key>>,
    stop: CancellationToken,
) {
    let mut core = Linkds::default();
    let mut redials: BTreeMap<Key, CancellationToken> = BTreeMap::new();
    let mut next = 0;
    let mut event = Some(linkds::Event::Listed(linkds.borrow_and_update().to_vec()));
    let mut listing = true;
    while !stop.is_cancelled() {
        let mut actions = Vec::new();
        if let Some(event) = event.take() {
            if let linkds::Event::Listed(linkds) = &event {
                kick::step(&hub, kicks::Event::Listed(linkds));
            }
            core.step(event, &mut actions);
        }
        for action in actions {
            match action {
                linkds::Action::Dial { key, address } => {
                    let redial = stop.child_token();
                    redials.insert(key.clone(), redial.clone());
                    next = (next + 1) % workers.len();
                    // A worker ends only after this function has dropped its sender.
                    let _ = workers[next].send(Target { key, address, redial }).await;
                }
                linkds::Action::Forget { key } => {
                    if let Some(redial) = redials.remove(&key) {
                        redial.cancel();
                    }
                }
            }
        }
        wanted.send_replace(core.wanted());
        hub.connections_changed();
        event = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            changed = linkds.changed(), if listing => match changed {
                Ok(()) => Some(linkds::Event::Listed(linkds.borrow_and_update().to_vec())),
                Err(_) => {
                    // Whoever listed them is gone: what is known stays.
                    listing = false;
                    None
                }
            },
            Some(key) = ended.recv() => Some(linkds::Event::Ended(key)),
        };
    }
    drop(workers);
    while ended.recv().await.is_some() {}
}

/// Looks at the load a few times a second and tells linkds when it is time, and the directory for whoever observes.
async fn measure(hub: Arc<Hub>, directory: Option<Directory>) {
    let mut load = Load::new(&hub.config);
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for look in 0u32.. {
        ticks.tick().await;
        let now = hub.clock.now();
        kick::step(&hub, kicks::Event::Tick);
        if look % LOOKS_PER_PROBE == 0 && hub.gauge.probe(now) {
            let probed = hub.clone();
            hub.pool().spawn(async move { probed.gauge.probed(probed.clock.now()) });
        }
        let conns = hub.conns.all();
        let sessions: usize = conns.iter().map(|conn| conn.session_count()).sum();
        hub.meters.sessions.set(sessions as f64);
        if let Some(records) = hub.records.get() {
            records.look();
        }
        let sample = load::Sample {
            online: u32::try_from(sessions).unwrap_or(u32::MAX),
            logins: hub.meters.logins.get(),
            overload: hub.gauge.look(now, hub.in_flight()) as u32,
        };
        let mut actions = Vec::new();
        load.step(now, load::Event::Look(sample), &mut actions);
        for load::Action::Report(report) in actions {
            hub.report.send_replace(report);
            if let Some(directory) = &directory {
                directory.report_load(hub.config.load(&report));
            }
            conns.iter().filter(|conn| conn.is_introduced()).for_each(|conn| conn.report(&report));
        }
    }
}

async fn hurry(shutdown: Shutdown, cancel: CancellationToken) {
    cancel.cancelled().await;
    shutdown.hurry();
}

/// From the first moment of a stop on no linkd chooses this provider for anything new.
async fn shut(hub: Arc<Hub>, stopping: CancellationToken) {
    stopping.cancelled().await;
    hub.stopping.store(true, Ordering::SeqCst);
    let mut calls = tokio::task::JoinSet::new();
    for conn in hub.conns.announced() {
        calls.spawn_local(async move {
            if let Err(error) = disable::tell(&conn, DISABLE).await {
                tracing::warn!(linkd = %conn.link.peer.node, %error, "the linkd was not told that this provider stops");
            }
        });
    }
    while calls.join_next().await.is_some() {}
}

/// Nothing new begins from here on.
fn drain(hub: &Arc<Hub>) {
    hub.draining.store(true, Ordering::Release);
    for conn in hub.conns.all() {
        conn.step(Event::Drain);
    }
}

async fn hold_until_idle(hub: Arc<Hub>, pass: Pass) {
    loop {
        let idle = hub.idle.notified();
        tokio::pin!(idle);
        idle.as_mut().enable();
        if hub.in_flight() == 0 {
            break;
        }
        tokio::select! {
            biased;
            () = idle => {}
            // A connection that breaks takes its requests out of the sum without a word.
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    drop(pass);
}
