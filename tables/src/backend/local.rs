//! A backend over a store that this process alone has opened. One thread writes: what waits while the disk is busy is
//! judged in order and made durable with one flush.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::thread::JoinHandle;

use base::{Fence, NodeId};
use bytes::Bytes;
use crossbeam::channel::{Receiver, Sender, TrySendError, bounded};
use store::{Durability, Kind, Memory, Opened, Store, StoreError, StoreId};
use tokio::sync::oneshot;

use super::{Answer, Applied, Backend, BackendError, Batch, Csn, Stored, TableId, layout};

/// Batches that wait; further ones are refused with [`BackendError::Busy`].
const WAITING_MAX: usize = 256;
/// Batches that one flush makes durable.
const GROUP_MAX: usize = 64;

/// Keeps records in a store of this process. Several providers of one process share one.
pub struct Local {
    name: &'static str,
    id: StoreId,
    store: Arc<dyn Store>,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is asked for, and who waits.
enum Job {
    Apply(Batch, oneshot::Sender<Result<Applied, BackendError>>),
    Raise(Option<NodeId>, Fence, oneshot::Sender<Result<(), BackendError>>),
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").field("name", &self.name).field("id", &self.id).finish_non_exhaustive()
    }
}

impl Local {
    /// Over a store on the disk.
    ///
    /// Errors: the system gives no thread.
    pub fn new(opened: &Opened) -> std::io::Result<Self> {
        let name = match opened.kind {
            Kind::Sled => "sled",
            Kind::Redb => "redb",
        };
        Self::over(name, opened.id, opened.store.clone())
    }

    /// Keeps nothing beyond the process. `id`: another one for each, so that two never pose as one.
    ///
    /// Errors: the system gives no thread.
    pub fn memory(id: StoreId) -> std::io::Result<Self> {
        Self::over("memory", id, Arc::new(Memory::default()))
    }

    /// Over any store.
    ///
    /// Errors: the system gives no thread.
    pub fn over(name: &'static str, id: StoreId, store: Arc<dyn Store>) -> std::io::Result<Self> {
        let (jobs, receiver) = bounded(WAITING_MAX);
        let writer = Writer { store: store.clone(), fences: BTreeMap::new(), watermarks: BTreeMap::new() };
        let work = move || writer.run(&receiver);
        let thread = std::thread::Builder::new().name("backend-writer".into()).spawn(work)?;
        Ok(Self { name, id, store, jobs: Some(jobs), thread: Some(thread) })
    }

    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, BackendError>>) -> Job,
    ) -> Answer<'_, T> {
        let over = || BackendError::Storage(StoreError::Failed("its writer has ended".to_owned()));
        let (sender, answer) = oneshot::channel();
        let sent = match self.jobs.as_ref().map(|jobs| jobs.try_send(job(sender))) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => Err(BackendError::Busy { waiting: WAITING_MAX }),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(over()),
        };
        Box::pin(async move {
            sent?;
            answer.await.unwrap_or_else(|_| Err(over()))
        })
    }

    /// Reads where blocking keeps nobody waiting.
    fn read<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, BackendError> + Send + 'static,
    ) -> Answer<'a, T> {
        let store = self.store.clone();
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || work(&*store)).await;
            reading.unwrap_or_else(|error| Err(BackendError::Storage(StoreError::Failed(error.to_string()))))
        })
    }
}

impl Drop for Local {
    /// Waits until everything that was taken is written.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writer of a backend panicked");
        }
    }
}

impl Backend for Local {
    fn name(&self) -> &'static str {
        self.name
    }

    fn id(&self) -> Option<StoreId> {
        Some(self.id)
    }

    fn load<'a>(&'a self, table: TableId, key: &'a [u8]) -> Answer<'a, Option<Stored>> {
        let key = layout::record(table, key);
        self.read(move |store| store.get(&key)?.as_ref().map(layout::read_record).transpose())
    }

    fn apply(&self, batch: Batch) -> Answer<'_, Applied> {
        if let Err(error) = batch.check() {
            return Box::pin(async move { Err(error) });
        }
        self.ask(|answer| Job::Apply(batch, answer))
    }

    fn raise_fence(&self, node: Option<NodeId>, below: Fence) -> Answer<'_, ()> {
        self.ask(|answer| Job::Raise(node, below, answer))
    }

    fn durable(&self, node: NodeId) -> Answer<'_, Option<(Fence, Csn)>> {
        self.read(move |store| {
            store.get(&layout::watermark(&node))?.map(|bytes| layout::read_watermark(&bytes)).transpose()
        })
    }

    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Bound<&'a [u8]>,
        count: usize,
    ) -> Answer<'a, Vec<(Bytes, Stored)>> {
        let from = from.map(|key| layout::record(table, key));
        let all = layout::table(table);
        let from = if from == Bound::Unbounded { Bound::Included(all.clone()) } else { from };
        self.read(move |store| {
            let mut found = Vec::new();
            let mut bad = None;
            store.range(from.as_ref().map(Vec::as_slice), Bound::Unbounded, &mut |key, value| {
                let Some(key) = key.strip_prefix(all.as_slice()).filter(|_| found.len() < count) else {
                    return ControlFlow::Break(());
                };
                match layout::read_record(&Bytes::copy_from_slice(value)) {
                    Ok(stored) => found.push((Bytes::copy_from_slice(key), stored)),
                    Err(error) => bad = Some(error),
                }
                if bad.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            bad.map_or(Ok(found), Err)
        })
    }
}

/// What the thread knows without asking the store.
struct Writer {
    store: Arc<dyn Store>,
    fences: BTreeMap<Option<NodeId>, Fence>,
    watermarks: BTreeMap<NodeId, Option<(Fence, Csn)>>,
}

/// Whoever waits for the flush.
type Done = Box<dyn FnOnce(Result<(), BackendError>) + Send>;

impl Writer {
    fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut done: Vec<Done> = Vec::new();
            let mut all = store::Batch::default();
            // Of this group, what the store does not show yet.
            let mut records = BTreeMap::new();
            for job in std::iter::once(first).chain(jobs.try_iter().take(GROUP_MAX - 1)) {
                self.take(job, &mut all, &mut records, &mut done);
            }
            let written = match all.is_empty() {
                true => Ok(()),
                false => self.store.write(&all, Durability::Durable).map_err(BackendError::from),
            };
            if written.is_err() {
                // What is in the store is known only by asking it again.
                self.fences.clear();
                self.watermarks.clear();
            }
            done.into_iter().for_each(|done| done(written.clone()));
        }
    }

    fn take(
        &mut self,
        job: Job,
        all: &mut store::Batch,
        records: &mut BTreeMap<Vec<u8>, super::Granted>,
        done: &mut Vec<Done>,
    ) {
        match job {
            Job::Apply(batch, answer) => match self.judge(&batch, records) {
                Ok(Applied::Now) => {
                    self.add(batch, all, records);
                    // Who waits no longer needs no answer.
                    done.push(Box::new(|written| drop(answer.send(written.map(|()| Applied::Now)))));
                }
                // Of this group or of one before: durable when this group is.
                Ok(Applied::Before) => {
                    done.push(Box::new(|written| drop(answer.send(written.map(|()| Applied::Before)))));
                }
                Err(error) => drop(answer.send(Err(error))),
            },
            Job::Raise(node, below, answer) => match self.fence(node.as_ref()) {
                Ok(now) => {
                    if now < below {
                        all.put(layout::fence(node.as_ref()), layout::write_fence(below));
                        self.fences.insert(node, below);
                    }
                    done.push(Box::new(|written| drop(answer.send(written))));
                }
                Err(error) => drop(answer.send(Err(error))),
            },
        }
    }

    /// Below which fence nobody of this node writes.
    fn fence(&mut self, node: Option<&NodeId>) -> Result<Fence, BackendError> {
        let node = node.cloned();
        if let Some(fence) = self.fences.get(&node) {
            return Ok(*fence);
        }
        let stored = self.store.get(&layout::fence(node.as_ref()))?;
        let fence = stored.map_or(Ok(Fence::default()), |bytes| layout::read_fence(&bytes))?;
        self.fences.insert(node, fence);
        Ok(fence)
    }

    fn watermark(&mut self, node: &NodeId) -> Result<Option<(Fence, Csn)>, BackendError> {
        if let Some(known) = self.watermarks.get(node) {
            return Ok(*known);
        }
        let stored = self.store.get(&layout::watermark(node))?;
        let known = stored.map(|bytes| layout::read_watermark(&bytes)).transpose()?;
        self.watermarks.insert(node.clone(), known);
        Ok(known)
    }

    /// Whether a batch may be made.
    fn judge(
        &mut self,
        batch: &Batch,
        records: &BTreeMap<Vec<u8>, super::Granted>,
    ) -> Result<Applied, BackendError> {
        let watermark = self.watermark(&batch.node)?;
        // A later session of the node has written: the one before is over.
        let begun = watermark.map(|(fence, _)| fence).unwrap_or_default();
        let below = self.fence(Some(&batch.node))?.max(self.fence(None)?).max(begun);
        if !below.admits(batch.fence) && !base::planted::is("backend_ignores_fences") {
            return Err(BackendError::Fenced { node: batch.node.clone(), fence: batch.fence, below });
        }
        if let Some((fence, durable)) = watermark.filter(|(fence, _)| *fence == batch.fence) {
            if batch.last <= durable {
                return Ok(Applied::Before);
            }
            if batch.first != Csn(durable.0 + 1) {
                let Batch { first, last, .. } = *batch;
                tracing::error!(%fence, first = first.0, durable = durable.0, "a batch out of order");
                return Err(BackendError::Order { first, last, durable });
            }
        }
        for change in &batch.changes {
            let key = layout::record(change.table, &change.key);
            let stored = match records.get(&key) {
                Some(granted) => Some(*granted),
                None => {
                    self.store.get(&key)?.as_ref().map(layout::read_record).transpose()?.map(|s| s.granted)
                }
            };
            let later = |stored: &super::Granted| {
                *stored > change.granted && !base::planted::is("backend_forgets_grants")
            };
            if let Some(stored) = stored.filter(later) {
                let (table, granted) = (change.table, change.granted);
                return Err(BackendError::Superseded { table, granted, stored });
            }
        }
        Ok(Applied::Now)
    }

    fn add(&mut self, batch: Batch, all: &mut store::Batch, records: &mut BTreeMap<Vec<u8>, super::Granted>) {
        all.put(layout::watermark(&batch.node), layout::write_watermark(batch.fence, batch.last));
        self.watermarks.insert(batch.node, Some((batch.fence, batch.last)));
        for change in batch.changes {
            let key = layout::record(change.table, &change.key);
            records.insert(key.clone(), change.granted);
            match change.value {
                Some(value) => {
                    all.put(key, layout::write_record(change.granted, change.version, &value));
                }
                None => {
                    all.remove(key);
                }
            }
        }
    }
}
