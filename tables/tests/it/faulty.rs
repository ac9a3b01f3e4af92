//! A storage that fails as a test says, and an arbiter that says what a test says.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Epoch, Fence, Mono, NodeId};
use bytes::Bytes;
use node::Clock;
use parking_lot::Mutex;
use store::{StoreError, StoreId};
use tables::backend::{Answer, Applied, Backend, BackendError, Batch, Csn, Stored, TableId};
use tables::{Arbiter, Db, Hear, Heard, Mode, Word};
use tokio::sync::Notify;

use crate::world;

/// Over another storage.
#[derive(Debug)]
pub struct Faulty {
    pub over: Arc<dyn Backend>,
    /// Writes fail.
    pub broken: AtomicBool,
    /// Of the version of each record as it was written, in order.
    pub written: Mutex<Vec<(Bytes, u64)>>,
    pub failed: AtomicU64,
    pub raised: AtomicU64,
}

impl Faulty {
    pub fn new(over: Arc<dyn Backend>) -> Arc<Self> {
        let (written, failed, raised) = (Mutex::default(), AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { over, broken: AtomicBool::new(false), written, failed, raised })
    }

    pub fn set_broken(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }
}

impl Backend for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn id(&self) -> Option<StoreId> {
        self.over.id()
    }

    fn load<'a>(&'a self, table: TableId, key: &'a [u8]) -> Answer<'a, Option<Stored>> {
        self.over.load(table, key)
    }

    fn apply(&self, batch: Batch) -> Answer<'_, Applied> {
        if self.broken.load(Ordering::SeqCst) {
            self.failed.fetch_add(1, Ordering::SeqCst);
            return Box::pin(async { Err(BackendError::Storage(StoreError::Failed("planned".into()))) });
        }
        let written = batch.changes.iter().map(|change| (change.key.clone(), change.version));
        self.written.lock().extend(written);
        self.over.apply(batch)
    }

    fn raise_fence(&self, node: Option<NodeId>, below: Fence) -> Answer<'_, ()> {
        self.raised.fetch_add(1, Ordering::SeqCst);
        self.over.raise_fence(node, below)
    }

    fn durable(&self, node: NodeId) -> Answer<'_, Option<(Fence, Csn)>> {
        self.over.durable(node)
    }

    fn scan<'a>(
        &'a self,
        table: TableId,
        from: Bound<&'a [u8]>,
        count: usize,
    ) -> Answer<'a, Vec<(Bytes, Stored)>> {
        self.over.scan(table, from, count)
    }
}

/// What the provider says is kept for the test, which answers.
#[derive(Debug, Default)]
pub struct Scripted {
    said: Mutex<Vec<Word>>,
    more: Notify,
    abandoned: AtomicBool,
}

impl Arbiter for Scripted {
    fn say(&self, words: &mut Vec<Word>) {
        self.said.lock().append(words);
        self.more.notify_one();
    }

    fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
        self.more.notify_one();
    }
}

impl Scripted {
    /// The next word.
    pub async fn word(&self) -> Word {
        loop {
            let next = {
                let mut said = self.said.lock();
                if said.is_empty() { None } else { Some(said.remove(0)) }
            };
            match next {
                Some(word) => return word,
                None => self.more.notified().await,
            }
        }
    }

    /// The next word, which asks for a record: the number of the question, and what is had.
    pub async fn asked(&self, mode: Mode) -> (u64, u64) {
        match self.word().await {
            Word::Ask { request, want, have, .. } if want == mode => (request, have),
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the session is given up.
    pub async fn abandoned(&self) {
        while !self.abandoned.load(Ordering::SeqCst) {
            self.more.notified().await;
        }
    }

    pub fn is_silent(&self) -> bool {
        self.said.lock().is_empty()
    }
}

/// A permission of this number.
pub fn grant(request: u64, mode: Mode, seq: u64, must_reload: bool) -> Heard {
    Heard::Granted { request, mode, seq, must_reload, version_min: 0, evicted: Vec::new() }
}

pub fn say(hear: &Arc<dyn Hear>, heard: Heard) {
    hear.heard(&mut vec![heard]);
}

/// A provider with a session whose lease does not end.
pub fn provider(backend: &Arc<dyn Backend>) -> (Db, Arc<Scripted>, Arc<dyn Hear>) {
    let (arbiter, clock) = (Arc::new(Scripted::default()), Clock::start());
    let opening = Db::with(world::settings("game-1"), backend.clone(), arbiter.clone(), clock).unwrap();
    let hear = opening.hear();
    hear.opened(Epoch(1), Fence::new(Epoch(1), 1), Mono(u64::MAX));
    (opening.done(), arbiter, hear)
}
