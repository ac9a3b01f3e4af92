//! A thread that writes for many: whatever waits while the disk is busy goes out with the next flush, in the order it
//! came.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam::channel::{Receiver, Sender, TrySendError, bounded};

use crate::{Batch, Durability, Store, StoreError};

/// Batches that one flush takes together, and their bytes.
const GROUP_MAX: usize = 1_024;
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Called once, on the writer's thread, in the order in which the batches came: it must not block.
pub type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

struct Job {
    batch: Batch,
    done: Done,
}

/// The sending half of a writer's thread. Dropping it waits until everything that was taken is written.
pub struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    waiting_max: usize,
    failed: Arc<AtomicBool>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.jobs.as_ref().map_or(0, Sender::len);
        f.debug_struct("Writer").field("waiting", &waiting).finish_non_exhaustive()
    }
}

impl Writer {
    /// At most `waiting_max` batches wait, at least one.
    ///
    /// Errors: the system gives no thread.
    pub fn start(store: Arc<dyn Store>, waiting_max: usize) -> std::io::Result<Self> {
        let waiting_max = waiting_max.max(1);
        let (jobs, receiver) = bounded(waiting_max);
        let failed = Arc::new(AtomicBool::new(false));
        let fails = failed.clone();
        let work = move || run(&*store, &receiver, &fails);
        let thread = std::thread::Builder::new().name("store-writer".into()).spawn(work)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), waiting_max, failed })
    }

    /// Has the batch written and flushed, then calls `done`. After a failure nothing more is written: what comes later
    /// would be durable without what came before.
    ///
    /// Errors: [`StoreError::Busy`] at the bound, [`StoreError::Failed`] after a failure; `done` is not called then.
    pub fn submit(
        &self,
        batch: Batch,
        done: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) -> Result<(), StoreError> {
        batch.check()?;
        let over = || StoreError::Failed("its writer has ended".to_owned());
        if self.has_failed() {
            return Err(over());
        }
        let job = Job { batch, done: Box::new(done) };
        match self.jobs.as_ref().ok_or_else(over)?.try_send(job) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(StoreError::Busy { waiting: self.waiting_max }),
            Err(TrySendError::Disconnected(_)) => Err(over()),
        }
    }

    /// Whether a write has failed: the store must be opened again.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writer of a store panicked");
        }
    }
}

fn run(store: &dyn Store, jobs: &Receiver<Job>, failed: &AtomicBool) {
    let mut broken: Option<StoreError> = None;
    while let Ok(first) = jobs.recv() {
        let (batch, waiters) = group(first, jobs);
        let written = match &broken {
            Some(error) => Err(StoreError::Failed(error.to_string())),
            None => store.write(&batch, Durability::Durable),
        };
        if let (Err(error), None) = (&written, &broken) {
            tracing::error!(%error, "a store can't be written any more");
            broken = Some(error.clone());
            failed.store(true, Ordering::Release);
        }
        waiters.into_iter().for_each(|done| done(written.clone()));
    }
}

/// What waits, as one batch.
fn group(first: Job, jobs: &Receiver<Job>) -> (Batch, Vec<Done>) {
    let (mut batch, mut waiters) = (first.batch, vec![first.done]);
    while waiters.len() < GROUP_MAX && batch.bytes() < GROUP_BYTES_MAX {
        let Ok(next) = jobs.try_recv() else { break };
        batch.append(next.batch);
        waiters.push(next.done);
    }
    (batch, waiters)
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use bytes::Bytes;
    use parking_lot::Mutex;

    use super::*;
    use crate::{Each, Memory};

    /// A disk that writes when it is let, and is full from some write on.
    #[derive(Debug)]
    struct Disk {
        memory: Memory,
        go: Receiver<()>,
        writes: Mutex<Vec<usize>>,
        full_after: usize,
    }

    impl Store for Disk {
        fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
            self.memory.get(key)
        }

        fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, each: &mut Each<'_>) -> Result<(), StoreError> {
            self.memory.range(from, to, each)
        }

        fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
            self.go.recv().unwrap();
            self.writes.lock().push(batch.len());
            match self.writes.lock().len() > self.full_after {
                true => Err(StoreError::Full { path: "/d".into() }),
                false => self.memory.write(batch, durability),
            }
        }

        fn size_bytes(&self) -> Result<u64, StoreError> {
            self.memory.size_bytes()
        }
    }

    struct World {
        disk: Arc<Disk>,
        writer: Writer,
        go: Sender<()>,
        told: Receiver<(u8, Result<(), StoreError>)>,
        tell: Sender<(u8, Result<(), StoreError>)>,
    }

    fn world(full_after: usize) -> World {
        let (go, gone) = bounded(100);
        let (tell, told) = bounded(100);
        let disk =
            Arc::new(Disk { memory: Memory::default(), go: gone, writes: Mutex::default(), full_after });
        let writer = Writer::start(disk.clone(), 4).unwrap();
        World { disk, writer, go, told, tell }
    }

    impl World {
        fn submit(&self, n: u8) -> Result<(), StoreError> {
            let tell = self.tell.clone();
            let mut batch = Batch::default();
            batch.put([n], [n]);
            self.writer.submit(batch, move |done| tell.send((n, done)).unwrap())
        }
    }

    #[test]
    fn what_waits_goes_out_with_one_flush_in_order_and_the_queue_is_bounded() {
        let world = world(100);
        world.submit(0).unwrap();
        while !world.writer.jobs.as_ref().unwrap().is_empty() {
            std::thread::yield_now();
        }
        for n in 1..=4 {
            world.submit(n).unwrap();
        }
        assert_eq!(world.submit(5), Err(StoreError::Busy { waiting: 4 }));
        world.go.send(()).unwrap();
        world.go.send(()).unwrap();
        let told: Vec<_> = world.told.iter().take(5).collect();
        assert_eq!(told, (0..=4).map(|n| (n, Ok(()))).collect::<Vec<_>>());
        assert_eq!(*world.disk.writes.lock(), [1, 4]);
    }

    #[test]
    fn after_a_failure_nothing_more_is_written() {
        let world = world(1);
        world.submit(1).unwrap();
        world.go.send(()).unwrap();
        assert_eq!(world.told.recv().unwrap(), (1, Ok(())));
        world.submit(2).unwrap();
        world.go.send(()).unwrap();
        assert_eq!(world.told.recv().unwrap(), (2, Err(StoreError::Full { path: "/d".into() })));
        assert!(matches!(world.submit(3), Err(StoreError::Failed(_))));
        assert_eq!(world.disk.writes.lock().len(), 2);
    }

    #[test]
    fn dropping_it_writes_what_it_took() {
        let world = world(100);
        let disk = world.disk.clone();
        for n in 0..3 {
            world.submit(n).unwrap();
            world.go.send(()).unwrap();
        }
        drop(world.writer);
        assert_eq!(world.told.try_iter().count(), 3);
        assert!(disk.get(&[2]).unwrap().is_some());
    }
}
