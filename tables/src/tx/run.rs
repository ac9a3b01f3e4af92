//! Runs a transaction again until it is done: what is not at hand is waited for without any lock, and who was overtaken
//! runs again.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use base::{Mono, Span};
use parking_lot::Mutex;

use super::calls::Call;
use super::first::abort;
use super::queue::{Queued, in_order};
use super::{Chore, Committed, Finish, Home, Level, Tx};
use crate::arbiter::Mode;
use crate::cache::Cache;
use crate::cache::cell::{CellRef, address};
use crate::cache::waiter::Waiter;
use crate::error::Error;
use crate::record::Durability;

/// Runs after which a transaction that is overtaken each time is given up.
pub const OVERTAKEN_MAX: u32 = 256;
/// How long a transaction may take with all its runs, unless it is told otherwise.
pub const RUN_TIMEOUT: Span = Span::secs(5);
/// Runs of that kind after which it queues on its records.
const OVERTAKEN_FREE: u32 = 3;
/// The shortest wait after a refusal.
const AGAIN: Span = Span::millis(5);

/// How a transaction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub level: Level,
    /// Its answer waits at least for this.
    pub durability: Durability,
    /// How long it may take with all its runs.
    pub timeout: Span,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: Level::default(), durability: Durability::Memory, timeout: RUN_TIMEOUT }
    }
}

/// The records that a run waited for: it has a turn with them, which ends when this is dropped.
struct Turn {
    cache: Arc<Cache>,
    wants: Vec<(CellRef, Mode)>,
    waiter: Arc<Waiter>,
}

impl Turn {
    fn take(cache: &Arc<Cache>, mut wants: Vec<(CellRef, Mode)>) -> Self {
        let waiter = Arc::new(Waiter::new(wants.len()));
        cache.want(&mut wants, &waiter);
        Self { cache: cache.clone(), wants, waiter }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.cache.done(&self.wants, &self.waiter);
    }
}

/// What happens if nothing comes of a transaction, also when nobody waits for it any more.
struct Aborts {
    cache: Arc<Cache>,
    calls: Mutex<Vec<Call>>,
}

impl Drop for Aborts {
    fn drop(&mut self) {
        let calls = std::mem::take(self.calls.get_mut());
        if !calls.is_empty() {
            self.cache.calls.push(calls);
            self.cache.calls.run();
        }
    }
}

/// One transaction with all its runs: what handlers and [`Db::run`](crate::Db::run) go through.
///
/// Each run begins with [`begin`](Self::begin) and ends with [`end`](Self::end), until that says that it is over.
pub struct Attempt {
    cache: Home,
    options: Options,
    runs: u32,
    /// Runs that were overtaken, or that lost a record again which they had waited for.
    overtaken: u32,
    /// The records that were waited for. One that has left memory comes back in another cell.
    waited: BTreeSet<u128>,
    until: Option<Mono>,
    turns: Vec<Turn>,
    aborts: Option<Aborts>,
    /// The records of the last run, for whoever queues.
    last: Vec<(CellRef, Mode)>,
}

/// How a run ended, if it is not to be run again.
#[derive(Debug)]
pub enum End {
    /// Its result stands. If it committed, this is what to wait for.
    Over(Committed),
    /// It can't be committed.
    Failed(Error),
}

impl Attempt {
    pub fn new(cache: Home, options: Options) -> Self {
        let (waited, turns, last) = (BTreeSet::new(), Vec::new(), Vec::new());
        Self { cache, options, runs: 0, overtaken: 0, waited, until: None, turns, aborts: None, last }
    }

    /// Begins a run.
    pub fn begin(&mut self) -> Tx {
        self.runs += 1;
        let mut tx = Tx::new(self.cache.clone(), self.options.level);
        tx.require(self.options.durability);
        tx
    }

    /// Ends a run at once if that can be: it is over, or is to be run again at once (`None`). What else is to be done is in
    /// [`Again`].
    fn end_now(&mut self, tx: &mut Tx, succeeded: bool) -> Result<Option<End>, Again> {
        let finish = tx.finish(succeeded);
        match finish {
            Finish::Committed(committed) => {
                self.forget_aborts();
                self.cache.calls.run();
                Ok(Some(End::Over(committed)))
            }
            Finish::Aborted => {
                self.forget_aborts();
                self.abort(tx);
                Ok(Some(End::Over(Committed::default())))
            }
            Finish::Refused(error) => {
                self.forget_aborts();
                self.abort(tx);
                Ok(Some(End::Failed(error)))
            }
            Finish::Conflict if self.overtaken + 1 < OVERTAKEN_FREE => {
                self.overtaken += 1;
                Ok(None)
            }
            other => {
                self.keep_aborts(tx);
                Err(match other {
                    Finish::NotYet if !tx.chores.is_empty() => Again::Chores(std::mem::take(&mut tx.chores)),
                    Finish::NotYet => Again::Records(std::mem::take(&mut tx.wants)),
                    Finish::NoLease => Again::Lease,
                    _ => Again::Queue,
                })
            }
        }
    }

    /// Ends a run whose code has succeeded or not; `None`: it is to be run again. What it waits for, it waits for here.
    pub async fn end(&mut self, tx: Tx, succeeded: bool) -> Option<End> {
        let mut tx = tx;
        let ended = self.end_now(&mut tx, succeeded);
        self.remember(&tx);
        drop(tx);
        match ended {
            // Overtaken by somebody here: it keeps what it waited for, or each hand-over would serve one transaction only.
            Ok(None) => None,
            Ok(over) => {
                self.turns.clear();
                over
            }
            Err(again) => {
                self.turns.clear();
                self.again(again).await
            }
        }
    }

    async fn again(&mut self, again: Again) -> Option<End> {
        let now = self.cache.now();
        let until = *self.until.get_or_insert(now + self.options.timeout);
        let again_late = match &again {
            Again::Records(wants) => {
                wants.iter().fold(false, |late, (cell, _)| !self.waited.insert(cell.lock().record) || late)
            }
            Again::Queue => true,
            Again::Lease | Again::Chores(_) => false,
        };
        self.overtaken += u32::from(again_late);
        if self.overtaken >= OVERTAKEN_MAX {
            return Some(End::Failed(Error::Conflict { runs: self.runs }));
        }
        let left = until.since(now);
        let cache = self.cache.cache().clone();
        let waiting = async {
            tokio::select! {
                biased;
                () = cache.stopped() => Err(Error::Stopping),
                waited = self.wait(again) => waited,
            }
        };
        let waited = tokio::time::timeout(left.into(), waiting).await;
        let waited = waited.unwrap_or_else(|_| Err(self.late()));
        match waited {
            Ok(()) => None,
            Err(error) => self.retry(until, error).await.err().map(End::Failed),
        }
    }

    /// What it has waited for all its time.
    fn late(&self) -> Error {
        if self.cache.is_leased() { Error::Timeout(self.options.timeout) } else { Error::NoLease }
    }

    /// Waits for as long as a refusal says, if there is time for it. Errors: this one.
    async fn retry(&self, until: Mono, error: Error) -> Result<(), Error> {
        match error {
            Error::Denied { code, retry_after } if retry_after < until.since(self.cache.now()) => {
                tracing::debug!(code, "a record is refused for now");
                tokio::time::sleep(retry_after.max(AGAIN).into()).await;
                Ok(())
            }
            error => Err(error),
        }
    }

    async fn wait(&mut self, again: Again) -> Result<(), Error> {
        match again {
            Again::Records(wants) if self.overtaken < OVERTAKEN_FREE => {
                let turn = Turn::take(self.cache.cache(), wants);
                turn.waiter.wait().await?;
                self.turns.push(turn);
            }
            // They are waited for in the queue, with all others.
            Again::Records(wants) => self.last.extend(wants),
            Again::Chores(chores) => {
                for chore in chores {
                    chore.await?;
                }
            }
            Again::Lease => self.cache.leased().await,
            Again::Queue => {}
        }
        Ok(())
    }

    fn remember(&mut self, tx: &Tx) {
        if self.overtaken + 1 >= OVERTAKEN_FREE {
            // A run that ended early has not come to all of them.
            self.last.extend(tx.touched());
            self.last.sort_by_key(|(cell, mode)| (address(cell), std::cmp::Reverse(*mode)));
            self.last.dedup_by_key(|(cell, _)| address(cell));
        }
    }

    /// Waits until another run may begin; what is given is kept until it has ended.
    pub async fn turn(&mut self) -> Result<Queued, Error> {
        let now = self.cache.now();
        let until = *self.until.get_or_insert(now + self.options.timeout);
        let queues = self.overtaken >= OVERTAKEN_FREE && !self.last.is_empty();
        if !queues && self.cache.may_begin_now() {
            // Nearly always; a timer would cost as much as the whole transaction.
            return Ok(Queued::default());
        }
        let cache = self.cache.cache().clone();
        let turn = async {
            cache.may_begin().await?;
            if !queues {
                return Ok(Queued::default());
            }
            let queued = cache.queue.turn(self.last.iter().map(|(cell, _)| address(cell))).await;
            tokio::select! {
                biased;
                () = cache.stopped() => Err(Error::Stopping),
                taken = self.take_all() => taken.map(|()| queued),
            }
        };
        let waited = tokio::time::timeout(until.since(now).into(), turn).await;
        match waited.unwrap_or_else(|_| Err(self.late())) {
            Ok(queued) => Ok(queued),
            // The run will find it missing and come back here.
            Err(error) => self.retry(until, error).await.map(|()| Queued::default()),
        }
    }

    /// Takes all records of the last run, one after another in the same order as everybody, so that nobody waits in a circle;
    /// and keeps each until the run has ended.
    async fn take_all(&mut self) -> Result<(), Error> {
        for want in in_order(self.last.clone()) {
            let turn = Turn::take(self.cache.cache(), vec![want]);
            turn.waiter.wait().await?;
            self.cache.keep(&turn.wants);
            self.turns.push(turn);
        }
        Ok(())
    }

    /// Waits until a commit is as durable as it must be before anybody hears of it.
    ///
    /// Errors: [`Error::Unknown`].
    pub async fn durable(&self, committed: Committed) -> Result<(), Error> {
        self.cache.durable(committed).await
    }

    fn abort(&self, tx: &mut Tx) {
        abort(&self.cache, tx);
    }

    fn keep_aborts(&mut self, tx: &mut Tx) {
        self.forget_aborts();
        let calls = Mutex::new(tx.calls.aborted());
        self.aborts = Some(Aborts { cache: self.cache.cache().clone(), calls });
    }

    /// The run that came after has its own.
    fn forget_aborts(&mut self) {
        if let Some(mut aborts) = self.aborts.take() {
            aborts.calls.get_mut().clear();
        }
    }

    /// Runs `code` until it is done.
    pub async fn run<T, E: From<Error>>(
        &mut self,
        mut code: impl FnMut(&mut Tx) -> Result<T, E>,
    ) -> Result<T, E> {
        loop {
            let queued = self.turn().await.map_err(E::from)?;
            let mut tx = self.begin();
            let ran = catch_unwind(AssertUnwindSafe(|| code(&mut tx)));
            let succeeded = matches!(ran, Ok(Ok(_)));
            let ended = self.end(tx, succeeded).await;
            drop(queued);
            let Some(ended) = ended else { continue };
            return match (ended, ran) {
                (End::Failed(error), _) => Err(error.into()),
                // What it had read was true: the panic is its own.
                (End::Over(_), Err(panic)) => resume_unwind(panic),
                (End::Over(committed), Ok(result)) => {
                    self.cache.durable(committed).await.map_err(E::from)?;
                    result
                }
            };
        }
    }
}

/// Why it is to be run again, but not at once.
enum Again {
    Records(Vec<(CellRef, Mode)>),
    Chores(Vec<Chore>),
    Lease,
    Queue,
}
