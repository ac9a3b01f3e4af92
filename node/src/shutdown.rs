//! The shell around [`Lifecycle`]: a gate that requests pass, and the task that runs a stop's hooks in order. It decides
//! nothing; the core does.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Mono;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::lifecycle::{Action, BadBudgets, Budgets, Event, Lifecycle, Outcome, Stage, Statistics};

/// The node is stopping. Nothing was executed; ask another node at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this node is stopping; nothing was done, ask another")]
pub struct ShuttingDown;

/// A stop that did not end cleanly. The process exits all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// Requests in flight did not end within the drain's budget, or a second signal cut them off.
    #[error("{cut_off} requests were cut off{}", save_error.as_ref().map(|why| format!(", and the save failed: {why}")).unwrap_or_default())]
    DrainTimeout { cut_off: u64, save_error: Option<String> },
    #[error("everything was drained, but the save failed: {0}")]
    Save(String),
}

/// A node's lifecycle. Clones share it.
#[derive(Debug, Clone)]
pub struct Shutdown {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    core: Mutex<Core>,
    /// The core has something for the runner.
    changed: Notify,
    /// One runner performs the stop; others wait for it.
    running: AtomicBool,
    stopping: CancellationToken,
    closed: CancellationToken,
}

#[derive(Debug)]
struct Core {
    lifecycle: Lifecycle,
    /// Not yet performed: at most a handful for each of the four stages.
    actions: Vec<Action>,
    outcome: Outcome,
}

/// A request that was let in; dropping it counts it out.
#[derive(Debug)]
#[must_use = "a request is in flight only while its pass lives"]
pub struct Pass {
    inner: Arc<Inner>,
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.inner.with(|core, now| core.lifecycle.end(now, &mut core.actions));
    }
}

impl Inner {
    fn with<R>(&self, work: impl FnOnce(&mut Core, Mono) -> R) -> R {
        let now = self.clock.now();
        let mut core = self.core.lock();
        let result = work(&mut core, now);
        let wake = !core.actions.is_empty();
        drop(core);
        if wake {
            self.changed.notify_one();
        }
        result
    }
}

impl Shutdown {
    /// Refuses budgets that don't fit in the grace.
    pub fn new(budgets: Budgets, clock: Clock) -> Result<Self, BadBudgets> {
        let lifecycle = Lifecycle::new(budgets)?;
        let core = Mutex::new(Core { lifecycle, actions: Vec::new(), outcome: Outcome::default() });
        let inner = Inner {
            clock,
            core,
            changed: Notify::new(),
            running: AtomicBool::new(false),
            stopping: CancellationToken::new(),
            closed: CancellationToken::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Lets a request in, or refuses it at once.
    pub fn enter(&self) -> Result<Pass, ShuttingDown> {
        let admitted = self.inner.with(|core, _| core.lifecycle.begin());
        if admitted { Ok(Pass { inner: self.inner.clone() }) } else { Err(ShuttingDown) }
    }

    /// Begins the stop. Safe to call again and from anywhere.
    pub fn stop(&self) {
        self.event(Event::Stop);
    }

    /// Skips the waits of the stop; what must be saved is saved.
    pub fn hurry(&self) {
        self.event(Event::Hurry);
    }

    /// Fires when the stop begins and readiness goes off.
    pub fn stopping(&self) -> CancellationToken {
        self.inner.stopping.clone()
    }

    /// Fires when the stop has ended.
    pub fn closed(&self) -> CancellationToken {
        self.inner.closed.clone()
    }

    /// Never waits for a stop.
    pub fn statistics(&self) -> Statistics {
        self.inner.core.lock().lifecycle.statistics()
    }

    fn event(&self, event: Event) {
        self.inner.with(|core, now| core.lifecycle.step(now, event, &mut core.actions));
        if !self.statistics().ready {
            self.inner.stopping.cancel();
        }
    }

    /// Waits for [`stop`](Self::stop) and performs it: `close` when listeners must close, `save` once at the end.
    /// A second concurrent call performs nothing and waits for the first. Hooks are dropped at the end of their budget.
    pub async fn run<C, S>(
        &self,
        close: impl FnOnce() -> C + Send,
        save: impl FnOnce() -> S + Send,
    ) -> Result<(), StopError>
    where
        C: Future<Output = ()> + Send,
        S: Future<Output = Result<(), String>> + Send,
    {
        if self.inner.running.swap(true, Ordering::SeqCst) {
            self.inner.closed.cancelled().await;
            return verdict(self.inner.core.lock().outcome.clone());
        }
        let (mut close, mut save) = (Some(close), Some(save));
        let mut closing: Hook<'_, ()> = Box::pin(std::future::pending());
        let mut saving: Hook<'_, Result<(), String>> = Box::pin(std::future::pending());
        loop {
            let (actions, due) = {
                let mut core = self.inner.core.lock();
                (std::mem::take(&mut core.actions), core.lifecycle.due())
            };
            for action in actions {
                log(&action);
                match action {
                    Action::CloseListeners => {
                        if let Some(close) = close.take() {
                            closing = Box::pin(close());
                        }
                    }
                    Action::Save => {
                        if let Some(save) = save.take() {
                            saving = Box::pin(save());
                        }
                    }
                    Action::Exit(outcome) => {
                        self.inner.core.lock().outcome = outcome.clone();
                        self.inner.closed.cancel();
                        return verdict(outcome);
                    }
                    Action::ReadinessOff | Action::Started { .. } | Action::Ended { .. } => {}
                }
            }
            let due = due.map_or_else(far, |due| self.inner.clock.instant(due));
            let event = tokio::select! {
                biased;
                () = &mut closing => {
                    closing = Box::pin(std::future::pending());
                    Event::Done { stage: Stage::Close, error: None }
                }
                saved = &mut saving => {
                    saving = Box::pin(std::future::pending());
                    Event::Done { stage: Stage::Save, error: saved.err() }
                }
                () = self.inner.changed.notified() => Event::Tick,
                () = tokio::time::sleep_until(due) => Event::Tick,
            };
            self.inner.with(|core, now| core.lifecycle.step(now, event, &mut core.actions));
        }
    }
}

type Hook<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// No stop is under way: a day is as good as never, and the loop looks again.
fn far() -> Instant {
    Instant::now() + std::time::Duration::from_secs(86_400)
}

fn verdict(outcome: Outcome) -> Result<(), StopError> {
    match outcome {
        Outcome { cut_off: 0, save_error: None } => Ok(()),
        Outcome { cut_off: 0, save_error: Some(why) } => Err(StopError::Save(why)),
        Outcome { cut_off, save_error } => Err(StopError::DrainTimeout { cut_off, save_error }),
    }
}

fn log(action: &Action) {
    match action {
        Action::Started { stage, budget } => tracing::info!(?stage, %budget, "stop: stage begins"),
        Action::Ended { stage, took, how } => tracing::info!(?stage, %took, ?how, "stop: stage ends"),
        Action::ReadinessOff => tracing::info!("stop: readiness off"),
        Action::Exit(outcome) => {
            tracing::info!(cut_off = outcome.cut_off, save_error = outcome.save_error, "stop: over");
        }
        Action::CloseListeners | Action::Save => {}
    }
}

#[cfg(test)]
mod tests;
