//! What the cache asks of its surroundings: a thread that reads and writes the storage for it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::{Mono, Span};
use futures_util::FutureExt;
use parking_lot::Mutex;
use store::StoreError;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::arbiter::{Arbiter, Evicted};
use crate::backend::{Backend, BackendError};
use crate::cache::{Cache, Load, Outward};
use crate::flush::pipeline::Cut;

/// The waits after a failed write or a fence that could not be raised.
const AGAIN_FIRST: Duration = Duration::from_millis(10);
const AGAIN_MAX: Duration = Duration::from_secs(1);
/// The waits for a storage that gives old copies.
const STALE: Duration = Duration::from_millis(5);
/// How often the cache looks by itself.
const LOOK: Duration = Duration::from_millis(50);

/// The cache's end: says what is to be done.
pub(crate) struct Hands {
    jobs: mpsc::UnboundedSender<Job>,
    shared: Arc<Shared>,
    arbiter: Arc<dyn Arbiter>,
}

/// What both ends see.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    flush: Notify,
    soon: AtomicBool,
    /// Failed writes of the storage, since the start.
    write_errors: AtomicU64,
    /// From the first commit of the last cut until it was durable, in microseconds.
    lag_us: AtomicU64,
    failing: Mutex<Option<String>>,
}

impl Shared {
    pub fn write_errors(&self) -> u64 {
        self.write_errors.load(Ordering::Relaxed)
    }

    pub fn lag(&self) -> Span {
        Span(self.lag_us.load(Ordering::Relaxed))
    }

    /// Why the storage can't be written to now.
    pub fn failing(&self) -> Option<String> {
        self.failing.lock().clone()
    }
}

enum Job {
    Load(Load),
    Raise(Vec<Evicted>),
    LookAt(Mono),
}

impl Outward for Hands {
    fn load(&self, load: Load) {
        // At the end of the process nobody waits for it.
        let _ = self.jobs.send(Job::Load(load));
    }

    fn raise(&self, evicted: Vec<Evicted>) {
        let _ = self.jobs.send(Job::Raise(evicted));
    }

    fn look_at(&self, at: Mono) {
        let _ = self.jobs.send(Job::LookAt(at));
    }

    fn flush(&self, soon: bool) {
        if soon {
            self.shared.soon.store(true, Ordering::Release);
        }
        self.shared.flush.notify_one();
    }

    fn abandon(&self) {
        self.arbiter.abandon();
    }
}

/// The other end, before it runs.
pub(crate) struct Work {
    jobs: mpsc::UnboundedReceiver<Job>,
    pub shared: Arc<Shared>,
}

/// Both ends.
pub(crate) fn pair(arbiter: Arc<dyn Arbiter>) -> (Hands, Work) {
    let ((sender, jobs), shared) = (mpsc::unbounded_channel(), Arc::<Shared>::default());
    (Hands { jobs: sender, shared: shared.clone(), arbiter }, Work { jobs, shared })
}

impl Work {
    /// Works until `stop`, and then until everything that was committed is written, or can't be.
    pub async fn run(
        self,
        cache: Arc<Cache>,
        backend: Arc<dyn Backend>,
        interval: Duration,
        stop: Arc<Notify>,
    ) {
        let Self { mut jobs, shared } = self;
        let flusher = flush(cache.clone(), backend.clone(), shared, interval, stop);
        tokio::pin!(flusher);
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut flusher => return,
                job = jobs.recv() => match job {
                    Some(job) => begin(job, &cache, &backend),
                    None => return,
                },
                _ = looks.tick() => {
                    cache.look();
                    cache.make_room();
                }
            }
        }
    }
}

fn begin(job: Job, cache: &Arc<Cache>, backend: &Arc<dyn Backend>) {
    let (cache, backend) = (cache.clone(), backend.clone());
    match job {
        Job::Load(load) => drop(tokio::spawn(async move {
            if load.stale > 0 {
                tokio::time::sleep(STALE).await;
            }
            // A backend that panics has not read it; whoever waits is told.
            let reading = AssertUnwindSafe(backend.load(load.table, &load.key)).catch_unwind().await;
            let failed = |_| Err(BackendError::Storage(StoreError::Failed("it panicked".to_owned())));
            cache.loaded(load, reading.unwrap_or_else(failed));
        })),
        Job::Raise(evicted) => drop(tokio::spawn(async move {
            for one in evicted {
                raise(&*backend, one).await;
            }
            cache.raised();
        })),
        Job::LookAt(at) => drop(tokio::spawn(async move {
            tokio::time::sleep(at.since(cache.now()).into()).await;
            cache.look();
        })),
    }
}

/// Until it is done: nothing is loaded before.
async fn raise(backend: &dyn Backend, evicted: Evicted) {
    let mut wait = AGAIN_FIRST;
    while let Err(error) = backend.raise_fence(evicted.node.clone(), evicted.below).await {
        tracing::warn!(%error, "a fence could not be raised; nothing is loaded before it is");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AGAIN_MAX);
    }
}

/// One batch after another.
async fn flush(
    cache: Arc<Cache>,
    backend: Arc<dyn Backend>,
    shared: Arc<Shared>,
    interval: Duration,
    stop: Arc<Notify>,
) {
    let stopped = stop.notified();
    tokio::pin!(stopped);
    let mut stopping = false;
    loop {
        if !stopping {
            tokio::select! {
                biased;
                () = &mut stopped => stopping = true,
                () = shared.flush.notified() => {}
            }
        }
        let began = Instant::now();
        let due = tokio::time::sleep_until(began + interval);
        tokio::pin!(due);
        while !stopping && !shared.soon.swap(false, Ordering::AcqRel) {
            tokio::select! {
                biased;
                () = &mut stopped => stopping = true,
                () = &mut due => break,
                () = shared.flush.notified() => {}
            }
        }
        let Some(cut) = cache.take() else {
            if stopping {
                return;
            }
            continue;
        };
        write(&cache, &*backend, &shared, cut).await;
        let lag = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        shared.lag_us.store(lag, Ordering::Relaxed);
        if cache.pipeline.open.records() > 0 {
            // What came meanwhile has told nobody, since there was something to write already.
            shared.flush.notify_one();
        }
    }
}

/// Until it is durable, or refused for ever.
async fn write(cache: &Cache, backend: &dyn Backend, shared: &Shared, cut: Cut) {
    let batch = cut.batch();
    let mut wait = AGAIN_FIRST;
    loop {
        let error = match backend.apply(batch.clone()).await {
            Ok(_) => {
                shared.failing.lock().take();
                return cache.applied(cut.cut);
            }
            Err(error) => error,
        };
        match &error {
            BackendError::Busy { .. } => {}
            BackendError::Storage(_) | BackendError::Damaged { .. } => {
                shared.write_errors.fetch_add(1, Ordering::Relaxed);
                if shared.failing.lock().replace(error.to_string()).is_none() {
                    tracing::error!(%error, "the storage can't be written to; what is committed waits");
                }
            }
            _ => return cache.refused(&cut, &error),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AGAIN_MAX);
    }
}
