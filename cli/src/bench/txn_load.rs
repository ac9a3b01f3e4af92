//! The load of `bench txn`: threads that run one transaction after another on records that are in memory.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use hdrhistogram::Histogram;
use tables::tx::{Attempt, End, Options};
use tables::{Db, Error, Table, Tx};

use super::load::Measured;
use super::records::{self, Purse, Storage, change};

/// Transactions between two looks at the clock; one of them is timed.
const BURST: u64 = 256;
/// Records of `many-keys`.
const MANY: u64 = 10_000;

/// One run of the load.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    #[arg(value_enum)]
    pub shape: Shape,
    #[arg(long, value_enum, default_value = "sled")]
    pub backend: Storage,
    /// As a handler runs: an async function that owns its transaction.
    #[arg(long)]
    pub handler: bool,
    #[arg(long, default_value_t = 300)]
    pub warm_ms: u64,
    #[arg(long, default_value_t = 0)]
    pub measure_ms: u64,
    /// On one thread exactly so many, untimed, in [`counted`].
    #[arg(long)]
    pub count: Option<u64>,
}

/// Who changes what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// One thread, one record.
    OneThread,
    /// Two, each a record of its own.
    TwoThreads,
    /// Two, any of ten thousand records.
    ManyKeys,
    /// Two, the same record.
    OneKey,
    /// Two that read, each a record of its own.
    ReadOnly,
}

impl Shape {
    fn threads(self) -> u64 {
        if self == Self::OneThread { 1 } else { 2 }
    }

    /// The record of a thread's transaction of this number.
    fn key(self, thread: u64, number: u64) -> u64 {
        match self {
            Self::OneThread | Self::OneKey => 0,
            Self::TwoThreads | Self::ReadOnly => thread,
            // Each thread in an order of its own that meets every record about as often.
            Self::ManyKeys => (base::hash::mix(number.wrapping_add(thread << 40))) % MANY,
        }
    }

    fn keys(self) -> u64 {
        match self {
            Self::ManyKeys => MANY,
            other => other.threads(),
        }
    }
}

/// Runs the plan on threads of its own.
pub fn run(plan: &Plan) -> Result<Measured> {
    let (backend, folder) = plan.backend.open()?;
    let (db, purses) = records::alone(backend)?;
    let runtime = runtime()?;
    // Nothing is loaded or asked for while it is measured.
    for key in 0..plan.shape.keys() {
        runtime.block_on(db.run(|tx| change(&purses, tx, key)))?;
    }
    let measured = match plan.count {
        Some(count) => {
            let mut ran = Ok(());
            counted(&mut || ran = runtime.block_on(exactly(plan, &db, &purses, count)));
            ran.map(|()| Measured { ops_per_s: 0.0, p50_us: 0.0, p99_us: 0.0, p999_us: 0.0, errors: 0 })
        }
        None => timed(plan, &db, &purses),
    };
    runtime.block_on(db.stop());
    drop(folder);
    measured
}

/// What an observer of instructions looks at: this function and what it calls on its own thread, and nothing else.
#[inline(never)]
pub fn counted(run: &mut dyn FnMut()) {
    run();
    // Not left by a jump into what it calls.
    std::hint::black_box(());
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()
}

async fn exactly(plan: &Plan, db: &Db, purses: &Table<u64, Purse>, count: u64) -> Result<()> {
    for number in 0..count {
        let key = plan.shape.key(0, number);
        match plan.shape {
            Shape::ReadOnly => read(db, purses, key).await?,
            _ => db.run(|tx| change(purses, tx, key)).await?,
        }
    }
    Ok(())
}

fn timed(plan: &Plan, db: &Db, purses: &Table<u64, Purse>) -> Result<Measured> {
    let threads = plan.shape.threads();
    let together = Barrier::new(threads as usize);
    let stints = std::thread::scope(|scope| {
        let stint = |thread| {
            let together = &together;
            scope.spawn(move || {
                together.wait();
                let start = Instant::now() + Duration::from_millis(plan.warm_ms);
                let stint = Stint {
                    shape: plan.shape,
                    thread,
                    start,
                    end: start + Duration::from_millis(plan.measure_ms),
                };
                runtime()?.block_on(stint.run(plan, db, purses))
            })
        };
        let running: Vec<_> = (0..threads).map(stint).collect();
        running.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?).collect()
    });
    let stints: Result<Vec<(u64, Histogram<u64>)>> = stints;
    let (mut all, mut done) = (histogram()?, 0);
    for (count, times) in stints? {
        all.add(times)?;
        done += count;
    }
    let micros = |quantile| all.value_at_quantile(quantile) as f64 / 1_000.0;
    Ok(Measured {
        ops_per_s: done as f64 / (plan.measure_ms as f64 / 1_000.0),
        p50_us: micros(0.5),
        p99_us: micros(0.99),
        p999_us: micros(0.999),
        errors: 0,
    })
}

/// Nanoseconds, up to a minute.
fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000_000, 3)?)
}

/// One thread's part.
#[derive(Debug, Clone, Copy)]
struct Stint {
    shape: Shape,
    thread: u64,
    start: Instant,
    end: Instant,
}

impl Stint {
    async fn run(self, plan: &Plan, db: &Db, purses: &Table<u64, Purse>) -> Result<(u64, Histogram<u64>)> {
        match (plan.shape, plan.handler) {
            (Shape::ReadOnly, false) => self.repeat(async |key| read(db, purses, key).await).await,
            (_, false) => self.repeat(async |key| db.run(|tx| change(purses, tx, key)).await).await,
            (Shape::ReadOnly, true) => {
                self.repeat(async |key| handle(db, |tx| handler_reads(purses, tx, key)).await).await
            }
            (_, true) => {
                self.repeat(async |key| handle(db, |tx| handler_changes(purses, tx, key)).await).await
            }
        }
    }

    /// One transaction after another; how many ended while it was measured, and how long a sample of them took.
    async fn repeat(self, one: impl AsyncFn(u64) -> Result<(), Error>) -> Result<(u64, Histogram<u64>)> {
        let (mut times, mut done, mut number) = (histogram()?, 0, 0);
        loop {
            let began = Instant::now();
            if began >= self.end {
                return Ok((done, times));
            }
            one(self.shape.key(self.thread, number)).await?;
            let took = began.elapsed();
            for number in number + 1..number + BURST {
                one(self.shape.key(self.thread, number)).await?;
            }
            number += BURST;
            if began >= self.start {
                times.saturating_record(took.as_nanos() as u64);
                done += BURST;
            }
        }
    }
}

async fn read(db: &Db, purses: &Table<u64, Purse>, key: u64) -> Result<(), Error> {
    db.run(|tx| purses.get(tx, &key).map(|purse| drop(std::hint::black_box(purse)))).await
}

async fn handler_changes(purses: &Table<u64, Purse>, mut tx: Tx, key: u64) -> (Tx, Result<(), Error>) {
    let result = change(purses, &mut tx, key);
    (tx, result)
}

async fn handler_reads(purses: &Table<u64, Purse>, mut tx: Tx, key: u64) -> (Tx, Result<(), Error>) {
    let result = purses.get(&mut tx, &key).map(|purse| drop(std::hint::black_box(purse)));
    (tx, result)
}

/// As a provider runs a handler: a turn, a transaction that the handler owns, the handler in a box, the end.
async fn handle<F: Future<Output = (Tx, Result<(), Error>)>>(
    db: &Db,
    handler: impl Fn(Tx) -> F,
) -> Result<(), Error> {
    let mut attempt: Attempt = db.attempt(Options::default());
    loop {
        let turn = attempt.turn().await?;
        let (tx, result) = Box::pin(handler(attempt.begin())).await;
        let ended = attempt.end(tx, result.is_ok()).await;
        drop(turn);
        match ended {
            None => {}
            Some(End::Failed(error)) => return Err(error),
            Some(End::Over(committed)) => {
                attempt.durable(committed).await?;
                return result;
            }
        }
    }
}
