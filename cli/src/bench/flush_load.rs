//! The load of `bench flush`: commits as fast as they come, and some whose answers wait until they are in the storage.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use base::{Fence, NodeId};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use store::StoreId;
use tables::backend::{Answer, Applied, Batch, Csn, Stored, TableId};
use tables::tx::Options;
use tables::{Backend, Db, Durability, Table};
use tokio::task::JoinSet;

use super::load::Measured;
use super::records::{self, Purse, Storage, change};
use super::tally::{Pace, Tally};

/// Records of `grouped`.
const MANY: u64 = 10_000;
/// Transactions between two looks at the clock.
const BURST: u64 = 256;
/// Between a commit that waits and the next one, in `grouped`: each makes the pipeline write at once.
const PAUSE: Duration = Duration::from_millis(5);

/// One run of the load.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    #[arg(value_enum)]
    pub shape: Shape,
    #[arg(long, value_enum)]
    pub backend: Storage,
    #[command(flatten)]
    pub pace: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// Two threads commit on ten thousand records and wait for nothing; another one's commits wait.
    Grouped,
    /// As many tasks as the window, each with a record of its own, whose commits all wait.
    Sync,
}

/// What a run saw.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Seen {
    /// Commits that reached the storage, and how long those that waited for it did.
    #[serde(flatten)]
    pub measured: Measured,
    pub records_per_s: f64,
    pub batches_per_s: f64,
}

/// Runs the plan.
pub async fn run(plan: &Plan) -> Result<Seen> {
    let (inner, folder) = plan.backend.open()?;
    let counted = Arc::new(Counted { inner, commits: 0.into(), records: 0.into(), batches: 0.into() });
    let (db, purses) = records::alone(counted.clone())?;
    for key in 0..MANY {
        db.run(|tx| change(&purses, tx, key)).await?;
    }
    let tally = Tally::new(&plan.pace)?;
    let window = async {
        tokio::time::sleep(Duration::from_millis(plan.pace.warm_ms)).await;
        let (before, began) = (counted.now(), Instant::now());
        tokio::time::sleep(Duration::from_millis(plan.pace.measure_ms)).await;
        let (after, seconds) = (counted.now(), began.elapsed().as_secs_f64());
        [0, 1, 2].map(|at| (after[at] - before[at]) as f64 / seconds)
    };
    let load = async {
        match plan.shape {
            Shape::Grouped => grouped(plan, &db, &purses, tally).await,
            Shape::Sync => sync(plan, &db, &purses).await,
        }
    };
    let ([commits, records_per_s, batches_per_s], measured) = tokio::join!(window, load);
    let measured = Measured { ops_per_s: commits, ..measured? };
    db.stop().await;
    drop(folder);
    Ok(Seen { measured, records_per_s, batches_per_s })
}

/// A commit that is answered once it is in the storage.
async fn wait(db: &Db, purses: &Table<u64, Purse>, key: u64) -> Result<(), tables::Error> {
    let options = Options { durability: Durability::Sync, ..Options::default() };
    db.run_with(options, |tx| change(purses, tx, key)).await
}

async fn grouped(plan: &Plan, db: &Db, purses: &Table<u64, Purse>, mut tally: Tally) -> Result<Measured> {
    let end = Instant::now() + Duration::from_millis(plan.pace.warm_ms + plan.pace.measure_ms);
    let mut threads = Vec::new();
    for thread in 0..2u64 {
        let (db, purses) = (db.clone(), purses.clone());
        threads.push(tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            runtime.block_on(async {
                let mut number = thread << 40;
                while Instant::now() < end {
                    for _ in 0..BURST {
                        let key = base::hash::mix(number) % MANY;
                        db.run(|tx| change(&purses, tx, key)).await?;
                        number += 1;
                    }
                }
                Ok::<_, anyhow::Error>(())
            })
        }));
    }
    while !tally.is_over(Instant::now()) {
        let began = Instant::now();
        wait(db, purses, MANY).await?;
        tally.note(began, Instant::now());
        tokio::time::sleep(PAUSE).await;
    }
    for thread in threads {
        thread.await.map_err(|_| anyhow!("a thread panicked"))??;
    }
    Ok(tally.measured())
}

async fn sync(plan: &Plan, db: &Db, purses: &Table<u64, Purse>) -> Result<Measured> {
    let mut tasks = JoinSet::new();
    for key in 0..plan.pace.window as u64 {
        let (db, purses, mut tally) = (db.clone(), purses.clone(), Tally::new(&plan.pace)?);
        tasks.spawn(async move {
            while !tally.is_over(Instant::now()) {
                let began = Instant::now();
                wait(&db, &purses, key).await?;
                tally.note(began, Instant::now());
            }
            Ok::<_, tables::Error>(tally)
        });
    }
    let mut all = Tally::new(&plan.pace)?;
    for ended in tasks.join_all().await {
        all.add(&ended?)?;
    }
    Ok(all.measured())
}

/// A storage that counts what has reached it.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn Backend>,
    commits: AtomicU64,
    records: AtomicU64,
    batches: AtomicU64,
}

impl Counted {
    fn now(&self) -> [u64; 3] {
        [&self.commits, &self.records, &self.batches].map(|counter| counter.load(Ordering::Relaxed))
    }
}

impl Backend for Counted {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn id(&self) -> Option<StoreId> {
        self.inner.id()
    }

    fn load<'a>(&'a self, table: TableId, key: &'a [u8]) -> Answer<'a, Option<Stored>> {
        self.inner.load(table, key)
    }

    fn apply(&self, batch: Batch) -> Answer<'_, Applied> {
        let (commits, records) = (batch.last.0 - batch.first.0 + 1, batch.changes.len() as u64);
        Box::pin(async move {
            let applied = self.inner.apply(batch).await?;
            if applied == Applied::Now {
                self.commits.fetch_add(commits, Ordering::Relaxed);
                self.records.fetch_add(records, Ordering::Relaxed);
                self.batches.fetch_add(1, Ordering::Relaxed);
            }
            Ok(applied)
        })
    }

    fn raise_fence(&self, node: Option<NodeId>, below: Fence) -> Answer<'_, ()> {
        self.inner.raise_fence(node, below)
    }

    fn durable(&self, node: NodeId) -> Answer<'_, Option<(Fence, Csn)>> {
        self.inner.durable(node)
    }

    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Bound<&'a [u8]>,
        count: usize,
    ) -> Answer<'a, Vec<(Bytes, Stored)>> {
        self.inner.scan(table, from, count)
    }
}
