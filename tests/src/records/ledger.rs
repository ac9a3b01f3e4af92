//! What is known of a run from outside: which transactions were committed where and what they saw, what of it is in the
//! storage, and what each provider believes. Everything that the invariants compare with.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::{Fence, Mono};
use tables::backend::Batch;
use tables::{Level, Mode};

use super::keys::{Keys, Seen as Record, read};
use super::storage::{COINS, FOUNDER};
use super::talk::Place;

/// A transaction that was committed.
#[derive(Debug, Clone)]
pub struct Run {
    pub id: u64,
    pub place: Place,
    pub level: Level,
    /// Records that it read, and what it saw.
    pub reads: Vec<(usize, Record)>,
    /// Records that it wrote; `None`: removed.
    pub writes: Vec<(usize, Option<i64>)>,
    /// Its answer waits for the storage.
    pub sync: bool,
    pub leased: bool,
}

/// What a provider believes of a record.
#[derive(Debug, Clone, Copy)]
pub struct Belief {
    pub key: usize,
    pub held: Mode,
}

/// A provider as it sees itself.
#[derive(Debug, Clone, Default)]
pub struct Mind {
    pub beliefs: Vec<Belief>,
    /// Until when commits may be made, of the true clock.
    pub until: Mono,
}

/// A provider's commits on their way to the storage.
#[derive(Debug, Default)]
struct Line {
    fence: Option<Fence>,
    /// It has a session, as far as anybody knows.
    alive: bool,
    unbatched: VecDeque<u64>,
}

/// See the module.
#[derive(Debug)]
pub struct Ledger {
    pub now: Mono,
    pub minds: BTreeMap<usize, Mind>,
    pub runs: BTreeMap<u64, Run>,
    lines: BTreeMap<Place, Line>,
    /// The transactions of each batch, by who wrote it and its first number.
    batches: BTreeMap<(Place, u64), Vec<u64>>,
    /// Of each record, what is committed and not in the storage, in order.
    pending: Vec<Vec<(Place, u64, Record)>>,
    /// What the storage has of each record.
    pub stored: Vec<Record>,
    /// All that ever became durable.
    pub durable: BTreeSet<u64>,
    money: Vec<usize>,
}

impl Ledger {
    pub fn new(keys: &Keys) -> Self {
        let record = |money: bool| money.then_some((COINS, FOUNDER));
        Self {
            now: Mono::ZERO,
            minds: BTreeMap::new(),
            runs: BTreeMap::new(),
            lines: BTreeMap::new(),
            batches: BTreeMap::new(),
            pending: vec![Vec::new(); keys.all.len()],
            stored: keys.all.iter().map(|info| record(info.money)).collect(),
            durable: BTreeSet::from([FOUNDER]),
            money: keys.money(),
        }
    }

    /// All coins there are.
    pub fn coins(&self) -> i64 {
        COINS * self.money.len() as i64
    }

    pub fn is_money(&self, key: usize) -> bool {
        self.money.contains(&key)
    }

    /// What a record is after all commits that still count.
    pub fn head(&self, key: usize) -> Record {
        self.pending[key].last().map_or(self.stored[key], |(_, _, record)| *record)
    }

    /// What this provider has committed in a record and the storage has not.
    pub fn unwritten(&self, key: usize, place: Place) -> Option<u64> {
        self.pending[key].iter().rev().find(|(by, ..)| *by == place).map(|(_, id, _)| *id)
    }

    pub fn any_unwritten(&self) -> bool {
        self.pending.iter().any(|pending| !pending.is_empty())
    }

    /// Whether this provider has a session that counts.
    pub fn is_alive(&self, place: Place) -> bool {
        self.lines.get(&place).is_some_and(|line| line.alive)
    }

    /// A session has begun, or goes on under this fence.
    pub fn opened(&mut self, place: Place, fence: Fence) {
        let line = self.lines.entry(place).or_default();
        (line.fence, line.alive) = (Some(fence), true);
    }

    /// Everything that this provider had and was in no batch is lost; what is on its way may still arrive.
    pub fn lost(&mut self, place: Place) {
        if let Some(line) = self.lines.get_mut(&place) {
            (line.alive, line.fence) = (false, None);
            line.unbatched.clear();
        }
        self.forget(place);
    }

    fn forget(&mut self, place: Place) {
        for pending in &mut self.pending {
            pending.retain(|(by, ..)| *by != place);
        }
    }

    /// Others may have what was held under such fences. The holder may not know yet.
    pub fn evicted(&mut self, which: impl Fn(Fence) -> bool) {
        let dead = self.lines.iter_mut().filter(|(_, line)| line.fence.is_some_and(&which));
        let dead: Vec<Place> = dead
            .map(|(place, line)| {
                line.alive = false;
                *place
            })
            .collect();
        for place in dead {
            self.forget(place);
        }
    }

    pub fn committed(&mut self, run: Run) {
        if !run.writes.is_empty() {
            let line = self.lines.entry(run.place).or_default();
            line.unbatched.push_back(run.id);
            for (key, coins) in run.writes.iter().filter(|_| line.alive) {
                self.pending[*key].push((run.place, run.id, coins.map(|coins| (coins, run.id))));
            }
        }
        self.runs.insert(run.id, run);
    }

    /// A batch of so many commits is on its way.
    pub fn taken(&mut self, place: Place, first: u64, commits: u64) {
        let line = self.lines.entry(place).or_default();
        let count = (commits as usize).min(line.unbatched.len());
        let ids = line.unbatched.drain(..count).collect();
        self.batches.insert((place, first), ids);
    }

    /// The transactions of a batch, in order.
    pub fn batch(&self, place: Place, first: u64) -> Vec<&Run> {
        let ids = self.batches.get(&(place, first)).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| self.runs.get(id)).collect()
    }

    /// What a batch says of each record, for comparison with its transactions.
    pub fn contents(keys: &Keys, batch: &Batch) -> BTreeMap<usize, Record> {
        let change = |change: &tables::backend::Change| {
            let key = keys.of_bytes(change.table, &change.key)?;
            Some((key, change.value.as_ref().and_then(|value| read(&keys.all[key], value))))
        };
        batch.changes.iter().filter_map(change).collect()
    }

    /// The storage has made a batch.
    pub fn applied(&mut self, place: Place, first: u64) {
        let ids = self.batches.get(&(place, first)).cloned().unwrap_or_default();
        for id in ids {
            let Some(run) = self.runs.get(&id) else { continue };
            for (key, coins) in &run.writes {
                self.stored[*key] = coins.map(|coins| (coins, id));
            }
            self.durable.insert(id);
        }
        let durable = &self.durable;
        for pending in &mut self.pending {
            pending.retain(|(_, id, _)| !durable.contains(id));
        }
    }
}
