//! Cuts become batches, one after another, and durable.

use std::sync::atomic::{AtomicU64, Ordering};

use base::{Epoch, Fence, NodeId};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::open::{Open, Taken};
use crate::backend::{Batch, Change, Csn, Granted, TableId};
use crate::cache::cell::Held;
use crate::error::Error;

/// How far commits are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Durable {
    /// All cuts up to this one are, of those that were not lost.
    pub cut: u64,
    /// How often a session has ended with commits that were not.
    pub losses: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Pipeline {
    pub open: Open,
    node: NodeId,
    state: Mutex<State>,
    durable: watch::Sender<Durable>,
    /// The same two, for those who only look.
    cut: AtomicU64,
    losses: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Under which batches are written; `None`: none are.
    fence: Option<Fence>,
    /// The last commit that is in a batch.
    csn: Csn,
    /// A batch is on its way.
    in_flight: Option<u64>,
    /// For each loss: up to which cut all was durable.
    floors: Vec<u64>,
    lost: u64,
}

/// A batch to be, whose values are not bytes yet.
#[derive(Debug)]
pub struct Cut {
    pub cut: u64,
    pub commits: u64,
    node: NodeId,
    fence: Fence,
    first: Csn,
    last: Csn,
    changes: Vec<Unwritten>,
    /// By how many bytes the records have grown in memory.
    pub grown: isize,
    /// The sessions that were lost before it was taken.
    losses: u64,
}

struct Unwritten {
    table: TableId,
    key: Box<[u8]>,
    granted: Granted,
    version: u64,
    value: Held,
}

impl std::fmt::Debug for Unwritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwritten").field("table", &self.table).field("version", &self.version).finish()
    }
}

impl Cut {
    pub fn records(&self) -> usize {
        self.changes.len()
    }

    /// Writes the values as bytes; may be said again.
    pub fn batch(&self) -> Batch {
        let change = |change: &Unwritten| Change {
            table: change.table,
            key: bytes::Bytes::copy_from_slice(&change.key),
            granted: change.granted,
            version: change.version,
            value: change.value.as_ref().map(|value| value.encode()),
        };
        let changes = self.changes.iter().map(change).collect();
        let Self { node, fence, first, last, .. } = self;
        Batch { node: node.clone(), fence: *fence, first: *first, last: *last, changes }
    }
}

impl Pipeline {
    pub fn new(node: NodeId) -> Self {
        let (open, state) = (Open::default(), Mutex::default());
        let durable = watch::channel(Durable::default()).0;
        Self { open, node, state, durable, cut: AtomicU64::new(0), losses: AtomicU64::new(0) }
    }

    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// Up to which cut all is durable.
    pub fn durable(&self) -> u64 {
        self.cut.load(Ordering::Acquire)
    }

    /// How often a session ended with commits that were not durable: taken at a commit, for [`wait`](Self::wait).
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Commits that were never written.
    pub fn lost(&self) -> u64 {
        self.state.lock().lost
    }

    /// The life of the arbiter that the present session is of.
    pub fn epoch(&self) -> Epoch {
        self.state.lock().fence.unwrap_or_default().epoch
    }

    /// Batches are written under this fence from now on.
    pub fn resume(&self, fence: Fence) {
        self.state.lock().fence = Some(fence);
    }

    /// The session is over: what was committed and is in no batch will never be written. The caller has seen to it that
    /// nothing more is committed in the session.
    ///
    /// `close`: ends the lease. Whoever would extend it at this moment does so before, or no more.
    pub fn halt(&self, close: impl FnOnce()) {
        let mut state = self.state.lock();
        close();
        if state.fence.take().is_none() || base::planted::is("flush_outlives_the_session") {
            return;
        }
        let taken = self.open.take();
        state.lost += taken.commits;
        let durable = state.in_flight.map_or(taken.cut - 1, |cut| cut - 1);
        state.floors.push(durable.min(taken.cut - 1));
        drop(state);
        self.losses.fetch_add(1, Ordering::AcqRel);
        self.durable.send_modify(|durable| durable.losses += 1);
    }

    /// Does this, which makes commits possible, unless what is committed would never be written.
    pub fn if_writing(&self, extend: impl FnOnce()) {
        let state = self.state.lock();
        if state.fence.is_some() {
            extend();
        }
    }

    /// Whether what a batch has changed was dropped since it was taken, together with the session that it was of.
    pub fn is_dropped(&self, cut: &Cut) -> bool {
        cut.losses != self.losses()
    }

    /// The next batch, if there is something to write and nothing is on its way.
    pub fn take(&self) -> Option<Cut> {
        let mut state = self.state.lock();
        let fence = state.fence.filter(|_| state.in_flight.is_none() && self.open.records() > 0)?;
        let taken = self.open.take();
        let changes = changes(&taken);
        let Taken { cut, commits, grown, .. } = taken;
        state.in_flight = Some(cut);
        let first = Csn(state.csn.0 + 1);
        let last = Csn(state.csn.0 + commits.max(1));
        state.csn = last;
        let (node, losses) = (self.node.clone(), self.losses());
        Some(Cut { cut, commits, node, fence, first, last, changes, grown, losses })
    }

    /// What was taken is durable.
    pub fn applied(&self, cut: u64) {
        self.state.lock().in_flight = None;
        self.cut.fetch_max(cut, Ordering::AcqRel);
        self.durable.send_modify(|durable| durable.cut = durable.cut.max(cut));
    }

    /// What was taken is refused for ever. The session is over, and its loss is said by [`halt`](Self::halt).
    pub fn refused(&self) {
        self.state.lock().in_flight = None;
    }

    /// Waits until a commit is durable.
    ///
    /// Errors: [`Error::Unknown`].
    pub async fn wait(&self, cut: u64, losses: u64) -> Result<(), Error> {
        let mut durable = self.durable.subscribe();
        let known = durable.wait_for(|now| now.losses != losses || now.cut >= cut).await.map(|now| *now);
        let Ok(now) = known else { return Err(Error::Unknown) };
        if now.losses == losses {
            return Ok(());
        }
        let floor = usize::try_from(losses).ok().and_then(|at| self.state.lock().floors.get(at).copied());
        if floor.is_some_and(|floor| cut <= floor) { Ok(()) } else { Err(Error::Unknown) }
    }
}

/// Takes from each record what it was when the cut ended.
fn changes(taken: &Taken) -> Vec<Unwritten> {
    let mut changes = Vec::with_capacity(taken.cells.len());
    for cell in &taken.cells {
        let mut cell = cell.lock();
        if let Some(written) = cell.take(taken.cut) {
            changes.push(Unwritten {
                table: cell.shelf.meta().id,
                key: cell.key.clone(),
                granted: cell.granted(),
                version: written.version,
                value: written.value,
            });
        }
    }
    changes
}
